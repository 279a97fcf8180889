"""Rotary embedding: relative, and exact in half-precision models."""

import torch
from torch.testing import assert_close

from pgm.positions import RotaryEmbedding, rotate, sinusoid


def test_scores_depend_on_distances_only():
    torch.manual_seed(0)
    q, k = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)
    rotary = RotaryEmbedding(8)

    def score(query, key):
        angles = [rotary(torch.tensor([position]), torch.float32) for position in (query, key)]
        return (rotate(q, angles[0]) * rotate(k, angles[1])).sum()

    assert_close(score(3, 10), score(503, 510))
    assert abs(score(3, 10) - score(3, 11)) > 1e-3


def test_position_zero_and_shapes():
    x = torch.randn(2, 3, 4, 8)
    rotary = RotaryEmbedding(8)
    assert_close(rotate(x, rotary(torch.zeros(4, dtype=torch.int64), x.dtype)), x)
    assert rotary(torch.zeros(2, 4), x.dtype)[0].shape == (2, 1, 4, 4)
    assert rotary(torch.zeros(4), x.dtype)[0].shape == (1, 1, 4, 4)


def test_a_half_precision_model_turns_far_positions_as_exactly_as_any():
    positions = torch.arange(0, 1025, 64)
    exact = RotaryEmbedding(64)(positions, torch.float32)
    for dtype in (torch.bfloat16, torch.float16):
        assert_close(RotaryEmbedding(64).to(dtype)(positions, torch.float32), exact)


def test_sinusoid_has_cosines_first():
    table = sinusoid(3, 4)
    angles = torch.tensor([[p, p / 100] for p in range(3)])
    assert_close(table, torch.cat((angles.cos(), angles.sin()), dim=1))
