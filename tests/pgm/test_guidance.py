"""Guidance: the formula, its schedules, and half-precision logits that must not overflow."""

import math

import pytest
import torch

from pgm.guidance import guidance_schedule_names, guidance_weights, guide


def test_formula():
    conditional, unconditional = torch.tensor([3.0, 1.0]), torch.tensor([1.0, 2.0])
    assert guide(conditional, unconditional, 2.0).tolist() == [7.0, -1.0]
    assert guide(conditional, unconditional, 0.5).tolist() == [4.0, 0.5]
    assert torch.equal(guide(conditional, unconditional, 0.0), conditional)
    assert guide(conditional, None, 2.0) is conditional


def test_a_tensor_of_weights_serves_every_row_its_own():
    conditional, unconditional = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    both = guide(conditional, unconditional, torch.tensor([0.0, 3.0])[:, None, None])
    assert torch.equal(both[0], conditional[0])
    assert torch.equal(both[1], guide(conditional[1], unconditional[1], 3.0))


def test_large_weights_do_not_overflow_half_precision():
    conditional = torch.tensor([4e4, -4e4, 1e4], dtype=torch.float16)
    assert guide(conditional, -conditional, 30.0).isfinite().all()


def test_schedules():
    assert guidance_weights(3.0, 4) == [0.0, 1.0, 2.0, 3.0]
    assert guidance_weights(3.0, 4, "constant") == [3.0] * 4
    assert guidance_weights(2.0, 5, "cosine") == pytest.approx([0, 1 - math.sqrt(0.5), 1, 1 + math.sqrt(0.5), 2])


@pytest.mark.parametrize("schedule", guidance_schedule_names())
def test_a_single_step_gets_the_full_scale(schedule):
    assert guidance_weights(3.0, 1, schedule) == [3.0]
    assert guidance_weights(3.0, 0, schedule) == []
    assert guidance_weights(0.0, 7, schedule) == [0.0] * 7


@pytest.mark.parametrize("scale", [-1.0, math.nan, math.inf])
def test_bad_scales_are_refused(scale):
    with pytest.raises(ValueError, match="guidance_scale must be a finite number >= 0"):
        guidance_weights(scale, 4)


def test_unknown_schedules_are_refused():
    with pytest.raises(ValueError, match="guidance_schedule must be one of linear, constant, cosine, got 'ramp'"):
        guidance_weights(1.0, 4, "ramp")
