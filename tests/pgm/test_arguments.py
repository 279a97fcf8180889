"""Checks of public arguments: what counts as a number, and the sentence that refuses the rest."""

import numpy as np
import pytest
import torch

from pgm.arguments import one_of, real_number, share, whole_number


@pytest.mark.parametrize("value", [5, 5.0, np.int64(5), np.float32(5), torch.tensor(5)])
def test_a_whole_number_may_come_as_any_kind(value):
    number = whole_number("steps", value, 1, 9)
    assert number == 5 and type(number) is int


@pytest.mark.parametrize("value", [0, 10, 5.5, True, "5", None, float("nan"), torch.tensor([5])])
def test_anything_else_is_refused_by_name_and_value(value):
    with pytest.raises(ValueError, match=r"steps must be an integer in 1\.\.9, got "):
        whole_number("steps", value, 1, 9)


@pytest.mark.parametrize("value", [-1, float("inf"), float("nan"), "1", True, None])
def test_real_numbers_are_finite_and_not_negative(value):
    assert real_number("temperature", np.float64(0.5)) == 0.5
    with pytest.raises(ValueError, match="temperature must be a finite number >= 0, got "):
        real_number("temperature", value)


@pytest.mark.parametrize("value", [0, 1.01, -0.5, float("nan"), True, "x"])
def test_shares_lie_above_zero_and_at_most_one(value):
    assert share("top_p", 1) == 1.0
    with pytest.raises(ValueError, match=r"top_p must be a number in \(0, 1\], got "):
        share("top_p", value)


def test_a_choice_lists_what_is_allowed():
    assert one_of("order", "raster", ("raster", "random")) == "raster"
    with pytest.raises(ValueError, match="order must be one of raster, random, got 'spiral'"):
        one_of("order", "spiral", ("raster", "random"))
