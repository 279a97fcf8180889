"""Schedules: every combination fills everything, none has an empty step."""

import pytest
import torch

from pgm.schedules import known_share, schedule_names, step_counts

RULES = ("ordered", "even", "confidence", "confidence-maskgit")


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("schedule", schedule_names())
@pytest.mark.parametrize("length", [1, 2, 16, 256, 1024])
def test_counts_are_positive_and_fill_everything(schedule, rule, length):
    every = range(1, length + 51)
    some = every if length <= 16 else sorted({*every[:20], *every[::37], *every[length - 3 : length + 3], every[-1]})
    for steps in some:
        counts = step_counts(schedule, length, steps, rule)
        assert len(counts) == min(steps, length), steps
        assert min(counts) >= 1 and sum(counts) == length, steps


@pytest.mark.parametrize("schedule", schedule_names())
def test_known_share_runs_from_nothing_to_everything(schedule):
    share = known_share(schedule, torch.linspace(0, 1, 101, dtype=torch.float64))
    torch.testing.assert_close(share[[0, -1]], torch.tensor([0.0, 1.0], dtype=torch.float64))
    assert (share.diff() > 0).all()


def test_arccos_reveals_late_and_root_early():
    counts = {schedule: step_counts(schedule, 256, 8) for schedule in schedule_names()}
    assert counts["linear"] == [32] * 8
    assert counts["arccos"][0] < 32 < counts["arccos"][-1]
    assert counts["root"][0] > 32 > counts["root"][-1]


def test_as_many_steps_as_codes_reveal_one_each():
    assert all(step_counts(schedule, 16, 16, rule) == [1] * 16 for schedule in schedule_names() for rule in RULES)


def test_nothing_to_reveal_takes_no_step():
    assert all(step_counts("arccos", 0, 8, rule) == [] for rule in RULES)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="steps must be an integer >= 1, got 0"):
        step_counts("arccos", 16, 0)
    with pytest.raises(ValueError, match="length must be >= 0, got -1"):
        step_counts("arccos", -1, 4)
    with pytest.raises(ValueError, match="schedule must be one of arccos, .*, got 'arcos'"):
        step_counts("arcos", 16, 4)
