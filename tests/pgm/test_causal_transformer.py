"""The left-to-right transformer: blind to what follows, the same with every kernel, saved and loaded."""

import pytest
import torch
from torch.testing import assert_close

from pgm.causal_transformer import CausalTransformer, CausalTransformerConfig
from pgm.models import load_model, save_model, unwrapped

CONFIG = CausalTransformerConfig(
    vocab_size=20, length=9, width=16, heads=2, layers=2, mask_id=19, bos_id=0, dropout=0.0
)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    model = CausalTransformer(CONFIG)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


@torch.no_grad()
def test_logits_depend_on_what_came_before_only(model):
    tokens = torch.randint(0, 19, (2, 10), generator=torch.Generator().manual_seed(0))
    changed = tokens.clone()
    changed[:, 6] = (tokens[:, 6] + 1) % 19
    before, after = model(tokens), model(changed)
    assert_close(before[:, :6], after[:, :6], rtol=0, atol=1e-6)
    assert (before[:, 6:] - after[:, 6:]).abs().amax((0, 2)).min() > 1e-4


@torch.no_grad()
def test_a_fresh_model_is_uniform():
    assert (CausalTransformer(CONFIG)(torch.zeros(1, 4, dtype=torch.int64)) == 0).all()


@torch.no_grad()
def test_kernels_agree_and_a_saved_model_comes_back(model, tmp_path):
    tokens = torch.arange(10)[None]
    save_model(model, tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.config == CONFIG
    loaded.set_attention_backend("math")
    assert_close(loaded(tokens), model(tokens), rtol=1e-4, atol=1e-4)


def test_wrappers_are_seen_through(model):
    assert unwrapped(torch.nn.DataParallel(model)) is model
    assert unwrapped(torch.compile(model)) is model
