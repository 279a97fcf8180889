"""Splitting into groups: shares as the schedule says, independent positions, and one generator for all draws."""

import pytest
import torch

from pgm.partitioning import draw_groups, mask_probabilities


def test_probabilities():
    r = torch.tensor([[0.0, 0.5], [0.25, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(mask_probabilities("arccos", r), r.acos() * 2 / torch.pi)
    torch.testing.assert_close(mask_probabilities("linear", r), 1 - r)


@pytest.mark.parametrize(("schedule", "share"), [("arccos", 2 / torch.pi), ("linear", 0.5), ("square", 2 / 3)])
def test_mean_share_of_group_one(schedule, share):
    groups = draw_groups(4000, 16, torch.Generator().manual_seed(0), schedule)
    assert groups.shape == (4000, 16) and groups.dtype == torch.bool
    assert groups.float().mean().item() == pytest.approx(share, abs=0.02)


def test_each_sequence_has_a_ratio_of_its_own():
    shares = draw_groups(2000, 64, torch.Generator().manual_seed(0)).float().mean(1)
    assert shares.std() > 0.2  # with one ratio for all it would be 0.06 at most


def test_the_generator_decides_alone():
    first, again, other = (draw_groups(4, 16, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
