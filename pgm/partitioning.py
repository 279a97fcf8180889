"""Splitting tokens into two groups (arXiv 2505.18883, section 4): group 1 is the side to be generated."""

import torch
from torch import Tensor

from pgm.schedules import known_share


def mask_probability(schedule: str, r: float) -> float:
    """Probability that a token is hidden (group 1) at ratio r in [0, 1]: 1 - f(r); arccos gives arccos(r) 2/pi."""
    return 1 - known_share(schedule, r)


def mask_probabilities(schedule: str, r: Tensor) -> Tensor:
    """`mask_probability` for a tensor of ratios, float64 in, float64 out."""
    return torch.tensor([mask_probability(schedule, x) for x in r.tolist()], dtype=torch.float64).reshape(r.shape)


def draw_groups(batch: int, length: int, generator: torch.Generator, schedule: str = "arccos") -> Tensor:
    """Groups of content positions, (B, L) bool with True = group 1, drawn on the generator's device.

    Each sequence draws one ratio r ~ U(0, 1), then every position joins group 1 independently.
    """
    r = torch.rand(batch, dtype=torch.float64, generator=generator)
    uniforms = torch.rand(batch, length, dtype=torch.float64, generator=generator)
    return uniforms < mask_probabilities(schedule, r)[:, None]
