"""Groups: shares as the schedule says, independent positions, one generator for all. Stages: a sampler's steps."""

import pytest
import torch

from pgm.noise import draw_noise
from pgm.orders import halton_order
from pgm.partitioning import Stages, draw_groups, mask_probabilities, visibility
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


@pytest.mark.parametrize("schedule", ["arccos", "linear"])
def test_stages_are_the_steps_at_which_a_sampler_finds_positions(schedule):
    order = torch.tensor(halton_order(8, 8))
    stages = Stages(order, schedule)
    assert stages.steps == [16, 32, 64]
    for index, steps in enumerate(stages.steps):
        plan = count_plan(schedule, steps, torch.zeros(1, 64, dtype=torch.bool), draw_noise([0], 64))[0]
        found = stages.at(torch.tensor([(index + 0.5) / 3]))[0]
        assert torch.equal(found[order], torch.arange(1, steps + 1).repeat_interleave(plan))


@pytest.mark.parametrize(("length", "steps"), [(256, [16, 32, 64, 128, 256]), (100, [16, 32, 64, 100]), (9, [9])])
def test_numbers_of_steps_end_with_one_code_at_a_time(length, steps):
    stages = Stages(torch.randperm(length))
    assert stages.steps == steps
    picked = stages.at(torch.rand(4000, generator=torch.Generator().manual_seed(0))).amax(1)
    shares = [(picked == n).float().mean().item() for n in steps]
    assert shares == pytest.approx([1 / len(steps)] * len(steps), abs=0.03)


def test_what_split_and_staged_rows_see():
    groups = torch.tensor([[0, 1, 1, 0], [0, 1, 0, 1]]).bool()
    stages = torch.tensor([[0, 0, 0, 0], [0, 2, 1, 2]])
    encoder, decoder = (mask.long() for mask in visibility(groups, stages))
    split = torch.tensor([[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]])
    assert torch.equal(encoder[0], split) and torch.equal(decoder[0], 1 - split)
    assert torch.equal(encoder[1], torch.tensor([[1, 0, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 1, 1]]))
    assert torch.equal(decoder[1], torch.tensor([[0, 0, 0, 0], [1, 0, 1, 0], [1, 0, 0, 0], [1, 0, 1, 0]]))
    assert torch.equal(visibility(groups)[0][0].long(), split)
