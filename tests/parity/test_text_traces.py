"""Whole text generations against recorded ones, through our loop: every draw of the reference samplers is replayed.

The reference draws by argmax(p / -log u) over the vocabulary and reveals by one uniform a position and step; ours by
inverse CDF along an order drawn up front. So a replay puts the recorded order, counts and draws into the loop.
"""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

import pgm.sampling
from pgm.choosing import keep_top_p
from pgm.models import make_predictor
from pgm.noise import draw_noise
from pgm.noise_schedule import alpha
from pgm.sampling import SamplingConfig, sample

LENGTH, MASK = 15, 39
PARTITION = [
    "pgm_effunif_argmax_4", "pgm_effunif_argmax_16", "pgm_effunif_u_4", "pgm_effunif_u_8_nucleus",
    "pgm_effnonunif_argmax_5", "pgm_effnonunif_u_5",
]  # fmt: skip
REVEALING = [
    "pgm_naive_ddpmcache_u_6", "pgm_naive_argmax_6", "mdlm_ddpm_u_6", "mdlm_ddpm_argmax_6", "mdlm_ddpmcache_u_40",
    "mdlm_ddpm_greedyfinal_u_6",
]  # fmt: skip


@pytest.fixture(scope="module")
def traces(text_parity):
    settings = json.loads(text_parity("generation_traces.json").read_text())
    recorded = load_file(text_parity("generation_traces.safetensors"))

    def find(name):
        part = {key.removeprefix(f"{name}/"): value for key, value in recorded.items() if key.startswith(f"{name}/")}
        draws = [part[key] for key in sorted(part) if key.startswith("rand")]
        return settings[name], part, draws

    return find


class Recorder:
    """A predictor that keeps what it was asked."""

    def __init__(self, predictor):
        self.predictor, self.calls = predictor, []

    def __getattr__(self, name):
        return getattr(self.predictor, name)

    def predict(self, clean, queries, query_lengths, guided):
        self.calls.append((clean, queries))
        return self.predictor.predict(clean, queries, query_lengths, guided)


def replay(model, batch, order, plan, pick, monkeypatch, steps, top_p=1.0):
    """Steps of our loop; pick(call, queries (B, Q), probabilities (B, Q, V) float64) -> codes (B, Q)."""
    with torch.no_grad():
        predictor = Recorder(make_predictor(model, model.condition(torch.zeros(batch))))

    def choose(logits, uniforms, temperature, top_k, p):
        probabilities = keep_top_p(logits, p).log_softmax(-1).double().exp()
        queries = predictor.calls[-1][1]
        return pick(len(predictor.calls) - 1, queries, probabilities), probabilities.amax(-1)

    monkeypatch.setattr(pgm.sampling, "choose", choose)
    if plan is not None:
        monkeypatch.setattr(pgm.sampling, "count_plan", lambda *arguments: plan)
    noise = replace(draw_noise(list(range(batch)), LENGTH), order=order)
    config = SamplingConfig(steps=steps, order="random", schedule="even", top_p=top_p)
    return list(sample(predictor, noise, (1, LENGTH), config)), predictor.calls


def gumbel_argmax(probabilities, uniforms):
    return (probabilities / (1e-10 - (uniforms + 1e-10).log())).argmax(-1)


def test_the_reference_rule_of_drawing(text_parity):
    recorded = load_file(text_parity("generation_traces.safetensors"))
    ours = gumbel_argmax(recorded["categorical/p"], recorded["categorical/u"])
    assert torch.equal(ours, recorded["categorical/argmax"])


@pytest.mark.parametrize("name", PARTITION)
def test_efficient_traces(traces, text_partition, monkeypatch, name):
    setting, part, draws = traces(name)
    batch = setting["num_samples"]
    plan = None
    if setting["binomial_counts"]:
        counts = torch.tensor(setting["binomial_counts"]).long().T  # (B, S)
        done = torch.cat((counts.cumsum(1).clamp_max(LENGTH), torch.full((batch, 1), LENGTH)), dim=1)
        plan = done.diff(dim=1, prepend=torch.zeros(batch, 1, dtype=torch.int64))

    def pick(call, queries, probabilities):
        return probabilities.argmax(-1) if setting["argmax"] else gumbel_argmax(probabilities, draws[1 + call])

    steps, calls = replay(
        text_partition(), batch, draws[0].double(), plan, pick, monkeypatch, setting["num_steps"], setting["p_nucleus"]
    )
    assert torch.equal(steps[-1].codes, part["samples"][:, 1:])
    # With as many steps as positions the reference makes a last call without queries, which we do not.
    assert len(calls) == setting["n_calls"] - (name == "pgm_effunif_argmax_16")
    for index, (clean, queries) in enumerate(calls):
        lengths = part[f"step{index:02}/concrete_lengths"]
        asked = part[f"step{index:02}/noisy_positions"] - 1
        for row, length in enumerate(lengths.tolist()):
            kept = len(next_positions(calls, index, row, steps))  # the reference asks for more than it keeps
            assert torch.equal(queries[row, :kept], asked[row, :kept])
            positions = part[f"step{index:02}/clean_positions"][row, 1:length] - 1
            assert torch.equal(clean.arrival[row, : length - 1], positions)
            assert torch.equal(clean.codes[row, positions], part[f"step{index:02}/x"][row, 1:length])


def next_positions(calls, index, row, steps):
    """Positions of a row that became known through call `index`."""
    before = calls[index][0].codes[row] >= 0
    after = calls[index + 1][0].codes[row] >= 0 if index + 1 < len(calls) else steps[-1].known[row]
    return (after & ~before).nonzero()


@pytest.mark.parametrize("name", REVEALING)
def test_ancestral_traces(traces, text_partition, text_masked, monkeypatch, name):
    setting, part, draws = traces(name)
    batch, steps = setting["num_samples"], setting["num_steps"]
    reveals = draws if setting["argmax"] else draws[1::2]
    categorical = None if setting["argmax"] else draws[0::2]
    when = reveal_steps(reveals, batch, steps)  # (B, L)
    plan = torch.zeros(batch, steps + 1, dtype=torch.int64).scatter_add(1, when, torch.ones_like(when))
    called = [index for index in range(steps + 1) if plan[:, index].any()]
    greedy_end = setting.get("noise_removal") == "greedy"

    def pick(call, queries, probabilities):
        step = called[call]
        if categorical is None or (greedy_end and step == steps):
            return probabilities.argmax(-1)
        uniforms = categorical[step].gather(1, (queries + 1)[..., None].expand(-1, -1, MASK + 1))
        return gumbel_argmax(probabilities, uniforms)

    model = text_partition() if setting["model"] == "pgm_tiny" else text_masked
    ours, calls = replay(model, batch, when.double(), plan, pick, monkeypatch, steps)
    assert torch.equal(ours[-1].codes, part["samples"][:, 1:])
    for (clean, _), index in zip(calls, called, strict=True):
        state = torch.where(clean.codes < 0, MASK, clean.codes)
        assert torch.equal(state, part[f"step{index:02}/x"][:, 1:])
    if "net_calls" in setting and not greedy_end:
        assert len(calls) <= setting["net_calls"]  # where nothing is revealed nothing is computed


def reveal_steps(draws, batch, steps):
    """Step at which each content position is revealed, (B, L) int64; what is left comes in step `steps`."""
    times = torch.linspace(1, 1e-5, steps + 1)
    dt = (1 - 1e-5) / steps
    when = torch.full((batch, LENGTH), steps)
    for index in range(steps - 1, -1, -1):
        now, later = alpha(times[index]), alpha(times[index] - dt)
        revealed = draws[index][:, 1:] < (later - now) / (1 - now)
        when[revealed] = index
    return when
