"""Text PGM and MDLM against the reference implementation's outputs: both modes, every query mode, nucleus."""

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from pgm.choosing import keep_top_p, suppress
from pgm.conditioning import TimestepEmbedding
from pgm.positions import RotaryEmbedding, sinusoid

CLOSE = {"atol": 5e-4, "rtol": 1e-4}
MASK = 39
MODES = ["learn", "learn+freqs", "learn+freqs+mean", "learn+freqs+logsumexp"]


@pytest.fixture(scope="module", autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def forwards(text_parity):
    return load_file(text_parity("pgm_tiny_forward.safetensors"))


@pytest.fixture(scope="module")
def query_modes(text_parity):
    return load_file(text_parity("pgm_query_modes.safetensors"))


def part_of(recorded, name):
    return {key.removeprefix(f"{name}/"): value for key, value in recorded.items() if key.startswith(f"{name}/")}


def train(model, part, sigma=None):
    return model(part["x"], part["group_idxs"], torch.zeros(len(part["x"])) if sigma is None else sigma)


def infer(model, part):
    prepared = model.prepare(model.condition(torch.zeros(len(part["x"]))))
    memory = model.encode(part["x"], part["clean_positions"], prepared, part["concrete_lengths"])
    return memory, model.decode(memory, part["noisy_positions"], prepared)


@pytest.mark.parametrize("name", ["train", "train_short", "train_onegroup"])
def test_training_forward(text_partition, forwards, name):
    part = part_of(forwards, name)
    assert_close(train(text_partition(), part), part["logits"], **CLOSE)


def test_a_sigma_that_is_not_zero_reaches_the_network(text_partition, forwards):
    part = part_of(forwards, "train_sigma")
    logits = train(text_partition(), part_of(forwards, "train"), part["sigma"])
    assert_close(logits, part["logits"], **CLOSE)
    assert (logits - part_of(forwards, "train")["logits"]).abs().max() > 0.01


def test_log_probabilities_are_normalised_over_real_tokens(text_partition, forwards):
    part = part_of(forwards, "train")
    ours = suppress(train(text_partition(), part), (MASK,)).log_softmax(-1)
    assert_close(ours[..., :MASK], part["log_probs"][..., :MASK], **CLOSE)
    assert (ours[..., MASK] == -torch.inf).all()


@pytest.mark.parametrize("name", ["inf_first", "inf_equal", "inf_ragged"])
def test_generation_forward(text_partition, forwards, name):
    part = part_of(forwards, name)
    memory, logits = infer(text_partition(), part)
    assert_close(logits, part["logits"], **CLOSE)
    ours = suppress(logits, (MASK,)).log_softmax(-1)
    assert_close(ours[..., :MASK], part["log_probs"][..., :MASK], **CLOSE)
    if "encoder_out" in part:  # padding columns hold nothing that counts
        for row, length in enumerate(part["concrete_lengths"]):
            assert_close(memory.hidden[row, :length], part["encoder_out"][row, :length], **CLOSE)


def test_rows_of_equal_length_need_no_mask(text_partition, forwards):
    part, model = part_of(forwards, "inf_equal"), text_partition()
    prepared = model.prepare(model.condition(torch.zeros(2)))
    memory = model.encode(part["x"], part["clean_positions"], prepared)
    assert memory.visible is None
    assert_close(model.decode(memory, part["noisy_positions"], prepared), part["logits"], **CLOSE)


def test_generation_agrees_with_training_on_the_same_state(text_partition, forwards):
    part, model = part_of(forwards, "train"), text_partition()
    logits = train(model, part)
    for row in range(len(part["x"])):
        hidden = part["group_idxs"][row].bool()
        clean, noisy = (~hidden).nonzero().T, hidden.nonzero().T
        prepared = model.prepare(model.condition(torch.zeros(1)))
        memory = model.encode(part["x"][row : row + 1, ~hidden], clean, prepared)
        # Each of the two is off by up to 1e-4 from the same in float64.
        assert_close(model.decode(memory, noisy, prepared)[0], logits[row, hidden], atol=2e-4, rtol=0)


@pytest.mark.parametrize("p", [0.5, 0.9])
def test_nucleus_of_a_generation(text_partition, forwards, p):
    _, logits = infer(text_partition(), part_of(forwards, "inf_equal"))
    expected = part_of(forwards, f"inf_nucleus_{p}")["log_probs"][..., :MASK]
    # The reference filters before the mask logit is removed, so mass on the mask counts.
    ours = suppress(keep_top_p(logits, p), (MASK,)).log_softmax(-1)[..., :MASK]
    kept = expected > -1e5
    assert torch.equal(ours > -1e5, kept)
    assert_close(ours[kept], expected[kept], **CLOSE)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 0.99])
def test_top_p_filter(forwards, p):
    assert_close(keep_top_p(forwards["top_p/logits"], p), forwards[f"top_p/filtered_{p}"], atol=0, rtol=0)


@pytest.mark.parametrize("mode", MODES)
def test_query_modes(text_partition, forwards, query_modes, mode):
    close = {"atol": 2e-3, "rtol": 1e-4} if mode.endswith(("mean", "logsumexp")) else CLOSE
    model, part = text_partition(query_mode=mode), part_of(query_modes, mode)
    assert_close(train(model, part_of(forwards, "train")), part["train_logits"], **close)
    assert_close(train(model, part_of(forwards, "train_onegroup")), part["onegroup_logits"], **close)
    assert_close(infer(model, part_of(forwards, "inf_ragged"))[1], part["inf_ragged_logits"], **close)
    if "train_short_logits" in part:
        assert_close(train(model, part_of(forwards, "train_short")), part["train_short_logits"], **close)


def test_the_wide_query_processor(text_partition, forwards, query_modes):
    model = text_partition(part_of(query_modes, "mlp4_weights"), query_processor="mlp4")
    assert_close(train(model, part_of(forwards, "train")), query_modes["mlp4/train_logits"], **CLOSE)


def test_position_and_timestep_tables(query_modes):
    assert_close(sinusoid(16, 64), query_modes["pos_freqs"], atol=1e-6, rtol=0)
    cos, sin = RotaryEmbedding(16)(torch.arange(16), torch.float32)
    assert_close(cos[0, 0], query_modes["rope_cos"], atol=1e-5, rtol=0)
    assert_close(sin[0, 0], query_modes["rope_sin"], atol=1e-5, rtol=0)
    embedding = TimestepEmbedding(256)
    embedding.mlp = torch.nn.Sequential(torch.nn.Identity())  # the features alone
    embedding.mlp[0].weight = torch.zeros(1)
    features = embedding(query_modes["timestep_embedding/t"])
    assert_close(features, query_modes["timestep_embedding/out"], atol=1e-5, rtol=0)


def test_masked_forward(text_masked, text_parity):
    recorded = load_file(text_parity("mdlm_tiny_forward.safetensors"))
    zeros = torch.zeros(3)
    logits = text_masked(recorded["xt"], zeros)
    assert_close(logits, recorded["logits"], **CLOSE)
    assert_close(text_masked(recorded["xt"], recorded["sigma"]), recorded["logits_sigma"], **CLOSE)
    assert_close(text_masked(recorded["xt"][:, :11], zeros), recorded["logits_short"], **CLOSE)
    hidden = recorded["xt"] == MASK
    ours = suppress(logits, (MASK,)).log_softmax(-1)[hidden][:, :MASK]
    assert_close(ours, recorded["log_probs"][hidden][:, :MASK], **CLOSE)
