"""Choosing codes: temperature, filters, and a draw that follows the probabilities."""

import math

import pytest
import torch
from torch.testing import assert_close

from pgm.choosing import choose, draw, keep_top_k, keep_top_p, suppress, temperatures


def uniforms(*shape, seed=0):
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).float()


def logits_of(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_draw_is_the_inverse_of_the_cumulative_distribution():
    probabilities = torch.tensor([0.25, 0.0, 0.5, 0.25]).expand(1, 7, -1)
    u = torch.tensor([[0.0, 0.2499, 0.25, 0.5, 0.7499, 0.75, 0.9999]])
    assert draw(probabilities, u).tolist() == [[0, 0, 2, 2, 2, 3, 3]]


def test_draw_never_returns_an_impossible_code():
    edges = torch.tensor([0.0, 1e-38, 0.5, 1 - 2**-24, 1.0])  # 1.0: a float64 uniform may round up to it
    generator = torch.Generator().manual_seed(0)
    for size in (2, 7, 1000):
        for _ in range(20):
            probabilities = torch.rand(1, 5, size, generator=generator)
            probabilities *= torch.rand(1, 5, size, generator=generator) < 0.3
            probabilities[..., 0] = 0
            probabilities[..., size // 2] += 1e-6
            probabilities[..., -1] = 0
            if size == 2:
                probabilities[..., 1] = 1
            codes = draw(probabilities, edges[None])
            assert (probabilities.gather(-1, codes[..., None]) > 0).all()


def test_draw_follows_the_probabilities():
    probabilities = torch.tensor([0.05, 0.3, 0.0, 0.1, 0.2, 0.25, 0.1])
    n = 20_000
    evenly = (torch.arange(n) + 0.5) / n
    counts = torch.bincount(draw(probabilities.expand(1, n, -1), evenly[None])[0], minlength=7)
    assert (counts - n * probabilities).abs().max() <= 1.5
    counts = torch.bincount(draw(probabilities.expand(1, n, -1), uniforms(1, n))[0], minlength=7)
    possible = probabilities > 0
    chi_square = ((counts - n * probabilities)[possible] ** 2 / (n * probabilities[possible])).sum()
    assert counts[2] == 0 and chi_square < 20.5  # 0.1 % of fair draws exceed it at five degrees of freedom


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_temperature_zero_is_argmax(dtype, scale):
    logits = suppress((logits_of(2, 5, 12) * scale).to(dtype), (11,))
    codes, log_p = choose(logits, uniforms(2, 5), temperature=0)
    assert torch.equal(codes, logits[..., :11].argmax(-1)) and log_p.isfinite().all()


@pytest.mark.parametrize("temperature", [1e-30, 1e-6, 1.0, 1e6])
def test_extreme_temperatures_and_logits_stay_valid(temperature):
    logits = suppress(logits_of(2, 50, 12) * 1e30, (3,))
    codes, log_p = choose(logits, uniforms(2, 50), temperature)
    assert ((codes >= 0) & (codes < 12) & (codes != 3)).all() and log_p.isfinite().all()


def test_entropy_of_drawn_codes_rises_with_temperature():
    logits, u = logits_of(1, 1, 12).expand(1, 4000, -1) * 2, uniforms(1, 4000)
    entropies = []
    for temperature in (0, 0.3, 0.7, 1.0, 1.5, 3.0):
        share = torch.bincount(choose(logits, u, temperature)[0][0], minlength=12) / 4000
        entropies.append(torch.special.entr(share).sum().item())
    assert entropies[0] == 0 and entropies == sorted(entropies) and entropies[-1] > entropies[1] + 1
    assert entropies[-1] < math.log(12)


@pytest.mark.parametrize("k", [None, 1, 5, 12, 13])
def test_top_k_keeps_the_k_largest(k):
    logits = logits_of(2, 3, 12)
    kept = keep_top_k(logits, k).isfinite()
    count = min(k or 12, 12)
    assert (kept.sum(-1) == count).all()
    smallest_kept = logits.masked_fill(~kept, torch.inf).amin(-1)
    assert (logits.masked_fill(kept, -torch.inf).amax(-1) <= smallest_kept).all()
    if k == 1:
        assert torch.equal(choose(logits, uniforms(2, 3), top_k=1)[0], logits.argmax(-1))


def test_ties_keep_exactly_k_and_the_lower_ids():
    assert keep_top_k(torch.tensor([1.0, 2.0, 2.0, 2.0, 0.0]), 2).isfinite().nonzero()[:, 0].tolist() == [1, 2]
    assert keep_top_k(torch.zeros(4, 12), 5).isfinite().sum(-1).tolist() == [5] * 4


def test_top_p_keeps_the_smallest_set_with_that_mass():
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()[[2, 0, 3, 1]]
    assert keep_top_p(logits, 0.4).isfinite().tolist() == [False, True, False, False]
    assert keep_top_p(logits, 0.6).isfinite().tolist() == [False, True, False, True]
    assert keep_top_p(logits, 0.9).isfinite().tolist() == [True, True, False, True]
    assert torch.equal(keep_top_p(logits, 1.0), logits) and torch.equal(keep_top_p(logits, None), logits)


def nucleus_by_sorting(logits, p):
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    mass = ordered.double().softmax(-1)
    dropped = mass.cumsum(-1) - mass > p
    return ~dropped.scatter(-1, order, dropped)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("size", [12, 16, 17, 1500])
def test_top_p_keeps_what_sorting_the_whole_row_would(size, p):
    sharpness = torch.logspace(-2, 1, 40)[:, None]  # from nearly all entries to one
    logits = suppress(logits_of(3, 40, size) * sharpness, (5,))
    kept = keep_top_p(logits, p).isfinite()
    assert torch.equal(kept, nucleus_by_sorting(logits, p))
    assert kept.sum(-1).min() == 1 and kept.sum(-1).max() > min(size // 12, 17)


def test_top_p_keeps_the_lower_ids_of_equal_entries():
    assert keep_top_p(torch.zeros(2, 8), 0.4).isfinite().nonzero()[:, 1].tolist() == [0, 1, 2, 3] * 2
    coarse = (logits_of(6, 1500) * 4).round() / 4  # many equal ones
    kept = keep_top_p(coarse, 0.8).isfinite()
    assert torch.equal(kept, nucleus_by_sorting(coarse, 0.8)) and (kept.sum(-1) > 16).all()


@pytest.mark.parametrize("p", [0.0, 1e-9, 0.01])
def test_top_p_keeps_at_least_one(p):
    logits = logits_of(3, 4, 12)
    assert (keep_top_p(logits, p).isfinite().sum(-1) == 1).all()
    assert torch.equal(choose(logits, uniforms(3, 4), top_p=p)[0], logits.argmax(-1))


def test_log_probabilities_are_those_of_the_distribution_drawn_from():
    logits, u = logits_of(2, 6, 12), uniforms(2, 6)
    codes, log_p = choose(logits, u, 0.7, top_k=4)
    expected = keep_top_k(logits / 0.7, 4).log_softmax(-1).gather(-1, codes[..., None])[..., 0]
    assert_close(log_p, expected)
    codes, log_p = choose(logits, u, 0)
    assert_close(log_p, logits.log_softmax(-1).amax(-1))


def test_suppressed_ids_are_out_of_reach():
    logits = torch.zeros(1, 500, 6)
    logits[..., 4:] = 100
    codes, _ = choose(suppress(logits, (4, 5)), uniforms(1, 500))
    assert set(codes.flatten().tolist()) == {0, 1, 2, 3}
    assert (logits[..., 4:] == 100).all()


def test_temperatures_of_the_published_ramp():
    assert temperatures(3) == [1, 1, 1]
    assert temperatures(4, 0.5, warmup=1) == [1, 0.5, 0.5, 0.5]
    assert temperatures(3, 1, 0.5, 1.5, 2) == pytest.approx([4, 1, 1 / 2.25])
    assert temperatures(1, 2.0) == [2.0]
