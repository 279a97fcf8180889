"""Public text checkpoints: the miniature ones give their recorded logits, the full-size ones fit our models."""

import json

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from pgm.diffusion_transformer import DiffusionTransformer
from pgm.foreign_weights import strip_prefixes
from pgm.partition_transformer import PartitionTransformer
from pgm_text.checkpoints import PUBLIC_CHECKPOINTS, config_from_state, read_checkpoint
from pgm_text.lightning_checkpoint import NETWORK_PREFIXES, ema_param_order

UNRELEASED = ["pgm_6_6_lm1b_unreleased", "mdlm_lm1b_unreleased", "pgm_6_6_owt_unreleased"]


@pytest.mark.parametrize("use_ema", [True, False])
@pytest.mark.parametrize("kind", ["pgm", "mdlm"])
@torch.no_grad()
def test_miniature_checkpoints_give_the_recorded_logits(text_parity, kind, use_ema):
    model = read_checkpoint(text_parity(f"official_like_{kind}.ckpt"), use_ema=use_ema)
    recorded = load_file(text_parity("official_like_io.safetensors"))
    assert (model.config.mask_id, model.config.bos_id, model.config.length) == (39, 38, 15)
    inputs = [recorded[f"{kind}/x"]]
    if kind == "pgm":
        inputs.append(recorded["pgm/group_idxs"])
    logits = model(*inputs, torch.zeros(2))
    assert_close(logits, recorded[f"{kind}/logits_{'ema' if use_ema else 'raw'}"], atol=5e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["pgm_8_8.ckpt", "pgm_6_6_dim1024.ckpt", "mdlm.ckpt", *UNRELEASED])
def test_full_size_models_have_the_published_names_and_shapes(text_parity, name):
    published = json.loads(text_parity("official_state_dicts.json").read_text())[name]
    shapes = {key: torch.empty(shape, device="meta") for key, shape in published["state_dict"].items()}
    state = strip_prefixes(shapes, name, NETWORK_PREFIXES)
    config = config_from_state(state, published["model"])
    with torch.device("meta"):
        model = (PartitionTransformer if "encoder" in published["model"] else DiffusionTransformer)(config)
    assert {k: v.shape for k, v in model.state_dict().items()} == {k: v.shape for k, v in state.items()}
    assert sum(parameter.numel() for parameter in model.parameters()) == published["num_parameters"]
    order = [key.removeprefix("backbone.") for key in published["ema_param_order"]]
    assert [key for key, _ in model.named_parameters()] == order == ema_param_order(state)
    if name not in UNRELEASED:
        assert (config.vocab_size, config.mask_id, config.bos_id) == (50258, 50257, 50256)


def test_every_published_text_file_is_known(text_parity):
    published = json.loads(text_parity("official_state_dicts.json").read_text())
    files = {name for name in published if name.endswith(".ckpt")} | set(published["same_layout_as"])
    assert files <= set(PUBLIC_CHECKPOINTS)
