"""The published models at their full size, without memory for weights: keys, shapes and parameter counts."""

import json

import pytest
import torch

from pgm.models import build_empty
from pgm_image.public_layout import identify, infer_config
from pgm_image.public_models import PUBLIC_MODELS, PUBLIC_TOKENIZERS, masked
from tokenizer.convert import clean
from tokenizer.convert import infer_config as infer_tokenizer

TRANSFORMERS = {
    "imagenet256-pgm-12-12": "pgm_12_12",
    "imagenet256-pgm-14-10": "pgm_14_10",
    "imagenet256-maskgit": "maskgit_large_32x32_reg1",
}
TOKENIZERS = {
    "llamagen-vq8": "llamagen_vq8",
    "llamagen-vq16": "llamagen_vq16",
    "taming-f16-1024": "taming_f16_1024",
    "taming-f16-16384": "taming_f16_16384",
}


@pytest.fixture(scope="module")
def official(image_parity):
    return json.loads(image_parity("official_state_dicts.json").read_text())


def shapes(model) -> dict[str, list[int]]:
    return {key: list(value.shape) for key, value in model.state_dict().items()}


def empty(recorded: dict[str, list[int]]) -> dict[str, torch.Tensor]:
    return {key: torch.empty(shape, device="meta") for key, shape in recorded.items()}


@pytest.mark.parametrize(("name", "recorded"), TRANSFORMERS.items())
def test_a_full_size_transformer_has_exactly_the_published_tensors(name, recorded, official):
    model = build_empty(PUBLIC_MODELS[name].config)
    assert shapes(model) == official[recorded]["state_dict"]
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == official[recorded]["num_parameters"] == PUBLIC_MODELS[name].parameters


@pytest.mark.parametrize(("name", "recorded"), TRANSFORMERS.items())
def test_the_architecture_is_recognised_by_its_shapes(name, recorded, official):
    state = empty(official[recorded]["state_dict"])
    assert identify(state) is PUBLIC_MODELS[name]
    assert infer_config(state, grid=32) == PUBLIC_MODELS[name].config


@pytest.mark.parametrize(("name", "recorded"), TOKENIZERS.items())
def test_a_full_size_tokenizer_has_the_published_sizes(name, recorded, official):
    tokenizer = PUBLIC_TOKENIZERS[name]
    assert infer_tokenizer(clean(empty(official[recorded]["state_dict"]))) == tokenizer.config
    assert official[recorded]["num_parameters"] == tokenizer.parameters


@pytest.mark.parametrize("model", PUBLIC_MODELS.values(), ids=PUBLIC_MODELS)
def test_every_public_model_has_the_parameters_its_entry_states(model):
    network = build_empty(model.config)
    assert sum(parameter.numel() for parameter in network.parameters()) == model.parameters
    assert identify(network.state_dict()) is model


def test_the_small_halton_model_has_the_published_uneven_heads():
    state = build_empty(masked("small", 16)).state_dict()
    assert state["transformer.layers.0.attn.wq.weight"].shape == (510, 512)
    assert state["transformer.layers.0.attn.wo.weight"].shape == (512, 510)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_what_is_in_no_file_has_memory_all_the_same(name):
    model = build_empty(PUBLIC_MODELS[name].config)
    stored = set(model.state_dict())
    assert [key for key, buffer in model.named_buffers() if buffer.is_meta and key not in stored] == []
