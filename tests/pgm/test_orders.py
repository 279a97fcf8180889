"""Orders: permutations for any grid, and shifts that are cyclic."""

import pytest
import torch

from pgm.orders import fixed_order, halton_order, radical_inverse

SIDES = [*range(1, 41)]
LARGE = [(1, 80), (80, 1), (52, 52), (62, 62), (64, 64), (72, 72), (79, 80), (80, 47)]  # 10,000 points miss some cells


@pytest.mark.parametrize("height", SIDES)
def test_halton_is_a_permutation(height):
    # Both of h x w and w x h for every pair, in half of the time: odd sums here, even ones with sides swapped.
    for width in SIDES[:height]:
        shape = (height, width) if (height + width) % 2 else (width, height)
        assert sorted(halton_order(*shape)) == list(range(height * width)), shape


@pytest.mark.parametrize("shape", LARGE)
def test_halton_is_a_permutation_of_large_grids(shape):
    assert sorted(halton_order(*shape)) == list(range(shape[0] * shape[1]))


def test_radical_inverse():
    assert [radical_inverse(i, 2) for i in (1, 2, 3, 6)] == [(1, 2), (1, 4), (3, 4), (3, 8)]
    assert [radical_inverse(i, 3) for i in (1, 2, 3, 5)] == [(1, 3), (2, 3), (1, 9), (7, 9)]


def test_halton_spreads_over_the_grid():
    quadrants = [(cell // 32 // 16, cell % 32 // 16) for cell in halton_order(32, 32)[:64]]
    assert all(abs(quadrants.count(q) - 16) <= 2 for q in [(0, 0), (0, 1), (1, 0), (1, 1)])


def test_rows_come_from_base_two_and_columns_from_base_three():
    assert halton_order(4, 6)[:3] == (2 * 6 + 2, 1 * 6 + 4, 3 * 6 + 0)  # (1/2, 1/3), (1/4, 2/3), (3/4, 1/9)
    assert fixed_order("halton", (4, 6), torch.zeros(1, 24))[0].tolist() == list(halton_order(4, 6))


def test_raster_and_random():
    noise = torch.rand(3, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(fixed_order("raster", (3, 4), noise), torch.arange(12).expand(3, -1))
    random = fixed_order("random", (3, 4), noise)
    assert torch.equal(random.sort(1).values, torch.arange(12).expand(3, -1))
    assert torch.equal(noise.gather(1, random), noise.sort(1).values)


@pytest.mark.parametrize("order", ["halton", "raster"])
def test_roll_is_a_cyclic_shift(order):
    noise, roll = torch.zeros(4, 16), torch.tensor([0.0, 0.25, 0.5, 0.999])
    base = fixed_order(order, (4, 4), noise)[0]
    rolled = fixed_order(order, (4, 4), noise, roll)
    for row, shift in zip(rolled, (0, 4, 8, 15), strict=True):
        assert torch.equal(row, base.roll(shift))


def test_unknown_orders_are_refused():
    with pytest.raises(ValueError, match="order must be one of halton, confidence, random, raster, got 'spiral'"):
        fixed_order("spiral", (4, 4), torch.zeros(1, 16))
