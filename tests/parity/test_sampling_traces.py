"""Whole generations against recorded ones: every code, position and logit of 19 runs of the reference samplers."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from pgm.choosing import choose, suppress, temperatures
from pgm.guidance import guidance_weights, guide
from pgm.masked_transformer import MaskedTransformer, MaskedTransformerConfig
from pgm.models import make_predictor
from pgm.noise import draw_noise
from pgm.sampling import SamplingConfig, sample

STEPS = 6
MASK = 32
CLOSE = {"atol": 1e-4, "rtol": 1e-4}
PARTITION = [
    *(f"pgm_halton_{lengths}_w{w}" for lengths in ("ref", "full") for w in (0, 3)),
    *(f"pgm_confidence_{lengths}_w{w}" for lengths in ("ref", "full", "fixed") for w in (0, 3)),
    "pgm_halton_full_w3_temps",
    "pgm_confidence_fixed_w3_noise",
]
MASKED = [
    *(f"maskgit_{kind}_w{w}" for kind in ("halton_resample", "halton_newonly", "confidence") for w in (0, 3)),
    "maskgit_confidence_w3_noise",
]


@pytest.fixture(scope="module")
def recorded(image_parity):
    return load_file(image_parity("traces_tiny.safetensors"))


@pytest.fixture(scope="module")
def settings(image_parity):
    return json.loads(image_parity("traces_tiny.json").read_text())["traces"]


@pytest.fixture(scope="module")
def partition(image_parity, partition_model):
    return partition_model(load_file(image_parity("pgm_tiny_weights.safetensors")))


@pytest.fixture(scope="module")
def masked(image_parity):
    config = MaskedTransformerConfig(codebook_size=32, grid=4, width=64, layers=3, heads=4, num_classes=10)
    model = MaskedTransformer(config)
    model.load_state_dict(load_file(image_parity("maskgit_tiny_weights.safetensors")))
    return model.eval()


class Recorder:
    """A predictor that keeps what it was asked and what it answered."""

    def __init__(self, predictor):
        self.predictor, self.calls = predictor, []

    def __getattr__(self, name):
        return getattr(self.predictor, name)

    def predict(self, clean, queries, query_lengths, guided):
        logits = self.predictor.predict(clean, queries, query_lengths, guided)
        self.calls.append((clean, queries, *logits))
        return logits


def part_of(recorded, name, settings):
    part = {key.removeprefix(f"{name}."): value for key, value in recorded.items() if key.startswith(f"{name}.")}
    if not part:
        pytest.skip(f"the trace {name} is in ../shared/parity/image only")
    return part, settings[name]


def noise_of(part):
    """Recorded Gumbel noise (zero where none was recorded) at its positions."""
    gumbel = torch.zeros(2, STEPS, 16, dtype=torch.float64)
    for step in range(STEPS):
        if f"step{step}.gumbel" in part:
            values = part[f"step{step}.gumbel"].reshape(2, -1)
            positions = torch.arange(16).expand(2, -1)
            if f"step{step}.query_positions" in part:
                positions = part[f"step{step}.query_positions"] - 1
            gumbel[:, step].scatter_(1, positions, values)
    return replace(draw_noise([0, 1], 16, STEPS), confidence=gumbel)


def run(model, part, setting, **config):
    """Steps of our loop with the recorded settings, argmax for every draw, and what the network was asked."""
    classes = torch.tensor([3, 7])
    with torch.no_grad():
        conditions = model.condition(classes), model.condition(torch.full_like(classes, -1))
    visible = "reference" if setting.get("lengths") == "ref" else "full"
    predictor = Recorder(make_predictor(model, *conditions, visible_length=visible))
    settings = SamplingConfig(
        steps=STEPS, order=setting["sampler"], guidance_scale=setting["w"], temperature=0, **config
    )
    return list(sample(predictor, noise_of(part), (4, 4), settings)), predictor.calls


def final_codes(step):
    """Codes as the references return them: special and unknown ones end as the last code."""
    return torch.where(step.codes < 0, MASK, step.codes).clamp_max(31).reshape(2, 4, 4)


def by_position(positions, values):
    order = positions.argsort(dim=1)
    return values.gather(1, order.reshape(*order.shape, *[1] * (values.ndim - 2)).expand_as(values))


@pytest.mark.parametrize("name", PARTITION)
def test_partition_traces(partition, recorded, settings, name):
    part, setting = part_of(recorded, name, settings)
    suppressed = setting["sampler"] == "halton" or setting["suppress_special"]
    steps, calls = run(partition, part, setting, suppress_special=suppressed)
    assert torch.equal(final_codes(steps[-1]), part["final_codes"])
    assert len(calls) == setting["forward_calls"]
    assert [queries.shape[1] for _, queries, *_ in calls] == setting["new_tokens_per_step"]
    for index, (clean, queries, conditional, unconditional) in enumerate(calls):
        theirs = {k.removeprefix(f"step{index}."): v for k, v in part.items() if k.startswith(f"step{index}.")}
        expected_queries = theirs["query_positions"] - 1
        assert torch.equal(queries.sort(1).values, expected_queries.sort(1).values)
        known, positions = theirs["tokens_in"][:, 1:], theirs["clean_positions"][:, 1:] - 1
        assert torch.equal(clean.arrival.sort(1).values, positions.sort(1).values)
        assert torch.equal(by_position(positions, known), clean.codes.gather(1, positions.sort(1).values))
        for ours, key in ((conditional, "logits_cond"), (unconditional, "logits_uncond")):
            if ours is not None:  # columns of special ids are recorded after their suppression
                expected = by_position(expected_queries, theirs[key])[..., :MASK]
                assert_close(by_position(queries, ours)[..., :MASK], expected, **CLOSE)


def test_halton_keeps_the_order_in_which_codes_arrived(partition, recorded, settings):
    part, setting = part_of(recorded, "pgm_halton_full_w3_temps", settings)
    _, calls = run(partition, part, setting)
    for index, (clean, queries, *_) in enumerate(calls):
        assert torch.equal(queries, part[f"step{index}.query_positions"] - 1)
        assert torch.equal(clean.arrival, part[f"step{index}.clean_positions"][:, 1:] - 1)


@pytest.mark.parametrize("name", MASKED)
def test_masked_traces(masked, recorded, settings, name):
    part, setting = part_of(recorded, name, settings)
    steps, calls = run(
        masked,
        part,
        setting,
        confidence_counts="maskgit",
        guidance_schedule="constant" if setting["sampler"] == "halton" else "linear",
        resample_known="newonly" not in name,
        suppress_special=False,
    )
    assert torch.equal(final_codes(steps[-1]), part["final_codes"])
    for index, (clean, queries, conditional, _) in enumerate(calls):
        ours = torch.where(clean.codes < 0, MASK, clean.codes).reshape(2, 4, 4)
        assert torch.equal(ours, part[f"step{index}.codes_in"])
        if f"step{index}.logits_cond" in part:
            expected = part[f"step{index}.logits_cond"].gather(1, queries[..., None].expand(-1, -1, 33))
            assert_close(conditional, expected, **CLOSE)


@pytest.mark.parametrize(
    ("name", "ramp"),
    [
        ("pgm_halton_full_w3_temps", {"inverse_start": 0.7, "inverse_end": 1.3, "power": 2, "warmup": 2}),
        ("pgm_confidence_fixed_w3_noise", {}),
    ],
)
def test_probabilities_after_guidance_suppression_and_temperature(recorded, settings, name, ramp):
    part, setting = part_of(recorded, name, settings)
    weights, heats = guidance_weights(setting["w"], STEPS), temperatures(STEPS, **ramp)
    for index in range(STEPS):
        conditional = part[f"step{index}.logits_cond"]
        unconditional = part.get(f"step{index}.logits_uncond", conditional)
        logits = suppress(guide(conditional, unconditional, weights[index]), (32, 33))
        expected = part[f"step{index}.probs"]
        assert_close((logits / heats[index]).softmax(-1), expected, **CLOSE)
        codes, log_p = choose(logits, torch.full(logits.shape[:2], 0.5), heats[index])
        assert_close(log_p.exp(), expected.gather(-1, codes[..., None])[..., 0], **CLOSE)
