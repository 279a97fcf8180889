"""Halton orders, step counts and training mask ratios against the reference implementations."""

import json

import pytest
import torch
from torch.testing import assert_close

from pgm.orders import halton_order
from pgm.partitioning import mask_probabilities
from pgm.schedules import schedule_names, step_counts

GRIDS = {32: (8, 12, 16, 32, 64, 128), 24: (16, 32, 64), 16: (8, 12, 16, 32, 64), 8: (8, 12, 16, 32), 4: (4, 6, 8, 16)}
CASES = [(side, steps) for side, all_steps in GRIDS.items() for steps in all_steps]


@pytest.fixture(scope="module")
def schedules(image_parity):
    return json.loads(image_parity("schedules.json").read_text())["schedules"]


def test_every_recorded_schedule_is_tested(schedules):
    assert {f"{side}x{side}_steps{steps}" for side, steps in CASES} == set(schedules)


@pytest.mark.parametrize("side", [4, 8, 16, 24, 32])
def test_halton_orders(image_parity, side):
    orders = json.loads(image_parity("halton_orders.json").read_text())["orders"]
    assert list(halton_order(side, side)) == orders[str(side)]


@pytest.mark.parametrize(("side", "steps"), CASES)
def test_counts_of_the_halton_sampler(schedules, side, steps):
    recorded = schedules[f"{side}x{side}_steps{steps}"]["halton_arccos"]
    assert step_counts("arccos", side**2, steps) == recorded


@pytest.mark.parametrize("schedule", schedule_names())
@pytest.mark.parametrize(("side", "steps"), CASES)
def test_counts_of_the_confidence_samplers(schedules, side, steps, schedule):
    recorded = schedules[f"{side}x{side}_steps{steps}"][f"confidence_{schedule}"]
    ours = step_counts(schedule, side**2, steps, "confidence")
    if recorded["pgm_error"] is None:
        assert ours == recorded["pgm_new_per_step"]
    else:  # the published sampler raises on a step without codes; ours reveals one
        assert len(ours) == steps and min(ours) >= 1 and sum(ours) == side**2
    # Cumulative targets grow by at least one code each step, but where they do not, the published sampler is idle.
    ours = step_counts(schedule, side**2, steps, "confidence-maskgit")
    if min(recorded["maskgit_new_per_step"]) >= 1:
        assert ours == recorded["maskgit_new_per_step"]
    else:
        assert len(ours) == steps and min(ours) >= 1 and sum(ours) == side**2


def test_mask_ratio_in_training(image_parity):
    values = json.loads(image_parity("train_mask_ratio.json").read_text())["values"]
    r = torch.tensor(values["r"], dtype=torch.float64)
    for schedule in schedule_names():
        expected = torch.tensor(values[schedule], dtype=torch.float64)
        assert_close(mask_probabilities(schedule, r), expected, atol=1e-6, rtol=1e-5)
