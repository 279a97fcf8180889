"""Noise: an image's draws depend on its own seed, and nobody else's randomness is touched."""

import random

import numpy as np
import pytest
import torch

from pgm.noise import draw_noise, fold_seed


def test_a_row_depends_on_its_seed_only():
    batch = draw_noise([3, 4, 5], 16, 6)
    alone = draw_noise([4], 16, 6)
    for name in ("codes", "order", "roll", "confidence"):
        assert torch.equal(getattr(batch, name)[1:2], getattr(alone, name))
        assert not torch.equal(getattr(batch, name)[0], getattr(batch, name)[1])


def test_codes_are_the_same_whatever_the_order_needs():
    with_confidence, without = draw_noise([7], 16, 6), draw_noise([7], 16)
    assert torch.equal(with_confidence.codes, without.codes) and without.confidence is None
    assert torch.equal(draw_noise([7], 16, 3).confidence, with_confidence.confidence[:, :3])


def test_large_seeds_are_seeds_of_their_own():
    seeds = [0, 1, 2**32, 2**32 + 1, 2**33 + 1, 2**63 - 2, 2**63 - 1]
    assert len({tuple(row.tolist()) for row in draw_noise(seeds, 8).codes}) == len(seeds)
    assert [fold_seed(seed) for seed in (0, 7, 2**32 - 1)] == [0, 7, 2**32 - 1]


def test_distributions():
    noise = draw_noise(list(range(64)), 256, 4)
    assert noise.codes.dtype == torch.float64 and noise.codes.min() >= 0 and noise.codes.max() < 1
    assert noise.codes.mean().item() == pytest.approx(0.5, abs=0.01)
    assert noise.confidence.mean().item() == pytest.approx(0.57722, abs=0.02)  # Euler's constant
    assert noise.confidence.var().item() == pytest.approx(np.pi**2 / 6, abs=0.05)


def test_global_generators_are_untouched():
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()
    draw_noise([1, 2], 16, 3)
    assert torch.equal(states[0], torch.get_rng_state()) and states[1] == random.getstate()
    assert np.array_equal(states[2][1], np.random.get_state()[1])
