"""Partition Transformer against the reference implementation's outputs: both modes, every query and decoder mode."""

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from pgm.partition_transformer import decoder_layer_kinds

CLOSE = {"atol": 1e-4, "rtol": 1e-4}

SWAPS = {
    "learn_linear": ("learn", "linear"),
    "learn_freqs_linear": ("learn+freqs", "linear"),
    "learn_freqs_mlp4": ("learn+freqs", "mlp4"),
    "learn_freqs_mean_linear": ("learn+freqs+mean", "linear"),
    "learn_freqs_logsumexp_linear": ("learn+freqs+logsumexp", "linear"),
}


@pytest.fixture(scope="module", autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def tiny(image_parity, partition_model):
    return partition_model(load_file(image_parity("pgm_tiny_weights.safetensors")))


@pytest.fixture(scope="module")
def forwards(image_parity):
    return load_file(image_parity("pgm_tiny_forward.safetensors"))


def weights_of(recorded):
    return {key[2:]: value for key, value in recorded.items() if key.startswith("w.")}


def generate(model, tokens, clean_positions, queries, lengths, classes):
    """Logits as the reference computes them while sampling; its lengths count the register."""
    prepared = model.prepare(model.condition(classes))
    memory = model.encode(tokens, clean_positions, prepared, lengths - 1)
    return model.decode(memory, queries, prepared)


@pytest.mark.parametrize("name", ["train", "train_allzero", "train_allone"])
def test_training_forward(tiny, forwards, labels, name):
    part = {key.removeprefix(f"{name}."): value for key, value in forwards.items() if key.startswith(f"{name}.")}
    logits = tiny(part["x"], part["group_idxs"], labels(part["y"], part["drop_label"]))
    assert_close(logits, part["logits"], **CLOSE)


@pytest.mark.parametrize("mode", ["ref", "full"])
@pytest.mark.parametrize("name", ["infer0", "infer1", "infer2", "infer3"])
def test_generation_forward_with_published_and_full_lengths(tiny, forwards, labels, name, mode):
    part = {key.removeprefix(f"{name}."): value for key, value in forwards.items() if key.startswith(f"{name}.")}
    classes = labels(part["y"], part["drop_label"])
    lengths = part[f"{mode}.concrete_lengths"]
    logits = generate(tiny, part["x"], part["clean_positions"], part["noisy_positions"], lengths, classes)
    assert_close(logits, part[f"{mode}.logits"], **CLOSE)


def test_full_lengths_need_no_mask(tiny, forwards, labels):
    part = {key.removeprefix("infer2."): value for key, value in forwards.items() if key.startswith("infer2.")}
    prepared = tiny.prepare(tiny.condition(labels(part["y"], part["drop_label"])))
    memory = tiny.encode(part["x"], part["clean_positions"], prepared)
    assert memory.visible is None
    assert_close(tiny.decode(memory, part["noisy_positions"], prepared), part["full.logits"], **CLOSE)


def test_ragged_rows(tiny, forwards, labels):
    part = {k.removeprefix("infer_ragged."): v for k, v in forwards.items() if k.startswith("infer_ragged.")}
    classes = labels(part["y"], part["drop_label"])
    logits = generate(
        tiny, part["x"], part["clean_positions"], part["noisy_positions"], part["concrete_lengths"], classes
    )
    assert_close(logits, part["logits"], **CLOSE)


@pytest.mark.parametrize("backend", ["sdpa", "math"])
def test_every_kernel_gives_the_recorded_numbers(image_parity, partition_model, forwards, labels, backend):
    model = partition_model(load_file(image_parity("pgm_tiny_weights.safetensors")))
    model.set_attention_backend(backend)
    classes = labels(forwards["train.y"], forwards["train.drop_label"])
    logits = model(forwards["train.x"], forwards["train.group_idxs"], classes)
    assert_close(logits, forwards["train.logits"], **CLOSE)


@pytest.mark.parametrize("name", SWAPS)
def test_query_modes(image_parity, partition_model, labels, name):
    recorded = load_file(image_parity(f"pgm_swap_{name}.safetensors"))
    mode, processor = SWAPS[name]
    sizes = {"width": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    model = partition_model(weights_of(recorded), **sizes, query_mode=mode, query_processor=processor)
    classes = labels(recorded["y"], recorded["drop_label"])
    assert_close(model(recorded["x"], recorded["group_idxs"], classes), recorded["train_logits"], **CLOSE)
    part = {key.removeprefix("infer_"): value for key, value in recorded.items() if key.startswith("infer_")}
    classes = labels(part["y"], part["drop_label"])
    logits = generate(
        model, part["x"], part["clean_positions"], part["noisy_positions"], part["concrete_lengths"], classes
    )
    assert_close(logits, part["logits"], **CLOSE)


@pytest.mark.parametrize(
    ("name", "mode", "kinds"),
    [
        ("interleave", "interleave", ["cross", "self"]),
        ("interleave_2_cross", "interleave-2-cross", ["cross", "cross", "self"]),
        ("1_cross_first", "1-cross-first", ["cross", "self"]),
    ],
)
def test_decoder_modes(image_parity, partition_model, labels, name, mode, kinds):
    recorded = load_file(image_parity(f"pgm_decmode_{name}.safetensors"))
    assert decoder_layer_kinds(mode, len(kinds)) == kinds
    sizes = {"width": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": len(kinds)}
    model = partition_model(weights_of(recorded), **sizes, decoder_mode=mode)
    logits = model(recorded["x"], recorded["group_idxs"], labels(recorded["y"], recorded["drop_label"]))
    assert_close(logits, recorded["train_logits"], **CLOSE)
