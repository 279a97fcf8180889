"""Masked transformer against the outputs of Halton-MaskGIT's transformer."""

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from pgm.masked_transformer import MaskedTransformer, MaskedTransformerConfig

CLOSE = {"atol": 1e-4, "rtol": 1e-4}


@pytest.fixture(scope="module")
def model(image_parity):
    config = MaskedTransformerConfig(codebook_size=32, grid=4, width=64, layers=3, heads=4, num_classes=10)
    model = MaskedTransformer(config)
    model.load_state_dict(load_file(image_parity("maskgit_tiny_weights.safetensors")), strict=True)
    return model.eval()


@torch.no_grad()
def test_forward(model, image_parity, labels):
    recorded = load_file(image_parity("maskgit_tiny_forward.safetensors"))
    classes = labels(recorded["y"], recorded["drop_label"])
    assert_close(model(recorded["x"].flatten(1), classes), recorded["logits"], **CLOSE)


@torch.no_grad()
def test_the_head_may_run_on_some_positions_only(model, image_parity, labels):
    recorded = load_file(image_parity("maskgit_tiny_forward.safetensors"))
    prepared = model.prepare(model.condition(labels(recorded["y"], recorded["drop_label"])))
    positions = torch.tensor([[3, 0, 15], [1, 2, 8], [7, 7, 4]])
    logits = model.predict(recorded["x"].flatten(1), prepared, positions)
    expected = recorded["logits"].gather(1, positions[..., None].expand(-1, -1, 33))
    assert_close(logits, expected, **CLOSE)


@torch.no_grad()
def test_intermediate_outputs(model, image_parity, labels):
    recorded = load_file(image_parity("maskgit_tiny_forward.safetensors"))
    seen = {}
    for name in ("transformer.layers.0", "transformer.layers.0.attn", "transformer.layers.0.ff"):
        model.get_submodule(name).register_forward_hook(lambda *a, name=name: seen.__setitem__(name, a[-1]))
    model(recorded["x"].flatten(1), labels(recorded["y"], recorded["drop_label"]))
    for name, value in seen.items():
        assert_close(value, recorded[f"inter.{name}"], **CLOSE)
