"""Splitting tokens into two groups (arXiv 2505.18883, section 4): group 1 is the side to be generated."""

import torch
from torch import Tensor

from pgm.schedules import known_share


def mask_probabilities(schedule: str, r: Tensor) -> Tensor:
    """Probability that a token is hidden (group 1) at ratios r in [0, 1], any shape: 1 - f(r).

    For the arccos schedule that is arccos(r) 2/pi.
    """
    return 1 - known_share(schedule, r)


def draw_groups(batch: int, length: int, generator: torch.Generator, schedule: str = "arccos") -> Tensor:
    """Groups of content positions, (B, L) bool with True = group 1, drawn on the generator's device.

    Each sequence draws one ratio r ~ U(0, 1), then every position joins group 1 independently.
    """
    where = {"generator": generator, "device": generator.device, "dtype": torch.float64}
    r = torch.rand(batch, **where)
    uniforms = torch.rand(batch, length, **where)
    return uniforms < mask_probabilities(schedule, r)[:, None]
