"""The tokenizer against numbers recorded from LlamaGen's and taming's own code, in their checkpoints' key layout."""

import json

import pytest
import torch
from safetensors.torch import load_file

from tokenizer import VQGAN
from tokenizer.config import llamagen, taming_f16
from tokenizer.convert import clean, convert, convert_key, family

CLOSE = {"atol": 1e-4, "rtol": 1e-4}


@pytest.fixture(scope="module", params=["llamagen", "taming"])
def recorded(request, shared_parity):
    """(our model from the reference's weights, the reference's inputs and outputs)."""
    folder = shared_parity / "image"
    stored = load_file(folder / f"vq_{request.param}_tiny_weights.safetensors")
    state = {key.removeprefix("w."): value for key, value in stored.items()}
    assert family(state) == request.param
    return convert(state, image_size=16), load_file(folder / f"vq_{request.param}_tiny_io.safetensors")


@torch.no_grad()
def test_latents_before_quantisation_agree(recorded):
    model, io = recorded
    torch.testing.assert_close(model.latents(io["image"]), io["prequant"], **CLOSE)


@torch.no_grad()
def test_codes_agree_exactly(recorded):
    model, io = recorded
    codes = model.encode(io["image"])
    assert torch.equal(codes.flatten(), io["indices"].flatten())
    torch.testing.assert_close(model.quantizer.lookup(codes).permute(0, 3, 1, 2), io["quant"], **CLOSE)


@torch.no_grad()
def test_reconstructions_agree(recorded):
    model, io = recorded
    torch.testing.assert_close(model(io["image"]).images, io["recon"], **CLOSE)
    torch.testing.assert_close(model.decode(model.encode(io["image"])), io["recon"].clamp(-1, 1), **CLOSE)


@torch.no_grad()
def test_decoding_of_given_codes_agrees(recorded):
    model, io = recorded
    codes = io["code"].reshape(-1, 4, 4)
    torch.testing.assert_close(model.decode(codes), io["decoded"].clamp(-1, 1), **CLOSE)


@pytest.mark.parametrize(
    "name, config",
    [
        ("llamagen_vq8", llamagen(8)),
        ("llamagen_vq16", llamagen(16)),
        ("taming_f16_1024", taming_f16(1024)),
        ("taming_f16_16384", taming_f16(16384)),
    ],
)
def test_full_size_models_have_the_published_tensors(name, config, shared_parity):
    official = json.loads((shared_parity / "image" / "official_state_dicts.json").read_text())[name]
    shapes = clean({key: torch.empty(shape, device="meta") for key, shape in official["state_dict"].items()})
    levels = len(config.multipliers)
    expected = {convert_key(key, family(shapes), levels): value.numel() for key, value in shapes.items()}
    with torch.device("meta"):
        ours = {key: value.numel() for key, value in VQGAN(config).state_dict().items()}
    assert ours == expected
    assert sum(ours.values()) == official["num_parameters"]
