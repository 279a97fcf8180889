"""Splitting into groups: shares as the schedule says, independent positions, and one generator for all draws."""

import pytest
import torch

from pgm.noise import draw_noise
from pgm.orders import halton_order
from pgm.partitioning import draw_groups, groups_along, mask_probabilities
from pgm.plans import count_plan


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


def test_groups_along_an_order_are_those_that_its_sampler_meets():
    order = torch.tensor(halton_order(4, 4))
    counts = count_plan("arccos", 8, torch.zeros(1, 16, dtype=torch.bool), draw_noise([0], 16))[0]
    known = torch.cat((torch.zeros(1, dtype=torch.int64), counts.cumsum(0)))
    groups = groups_along(order, 1 - known.double() / 16)
    for row, count in zip(groups, known.tolist(), strict=True):
        assert set((~row).nonzero().flatten().tolist()) == set(order[:count].tolist())


def test_a_share_of_the_sequences_is_cut_along_the_order():
    order = torch.tensor(halton_order(8, 8))
    plain = draw_groups(2000, 64, torch.Generator().manual_seed(0))
    mixed = draw_groups(2000, 64, torch.Generator().manual_seed(0), order=order, order_share=0.3)
    none = draw_groups(2000, 64, torch.Generator().manual_seed(0), order=order, order_share=0.0)
    assert torch.equal(none, plain)
    changed = (mixed != plain).any(1)
    assert changed.float().mean().item() == pytest.approx(0.3, abs=0.04)
    along = mixed[changed][:, order].long()  # hidden ones last
    assert (along.diff(dim=1) >= 0).all()
    assert mixed.float().mean().item() == pytest.approx(2 / torch.pi, abs=0.02)
