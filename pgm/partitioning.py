"""Splitting tokens into two groups (arXiv 2505.18883, section 4): group 1 is the side to be generated."""

import torch
from torch import Tensor

from pgm.schedules import known_share


def mask_probabilities(schedule: str, r: Tensor) -> Tensor:
    """Probability that a token is hidden (group 1) at ratios r in [0, 1], any shape: 1 - f(r).

    For the arccos schedule that is arccos(r) 2/pi.
    """
    return 1 - known_share(schedule, r)


def groups_along(order: Tensor, hidden_share: Tensor) -> Tensor:
    """Groups (B, L) bool as a sampler of fixed order meets them: group 1 is what comes last in `order`.

    order: (L,) all positions as they become known; hidden_share: (B,) of the positions, rounded to whole ones.
    """
    ranks = order.argsort()
    known = ((1 - hidden_share) * len(order)).round()
    return ranks >= known[:, None]


def draw_groups(
    batch: int,
    length: int,
    generator: torch.Generator,
    schedule: str = "arccos",
    order: Tensor | None = None,
    order_share: float = 0.0,
) -> Tensor:
    """Groups of content positions, (B, L) bool with True = group 1, drawn on the generator's device.

    Each sequence draws one ratio r ~ U(0, 1), then every position joins group 1 independently. A share `order_share` of
    the sequences is instead cut along `order` (L,), see `groups_along`; 0 draws nothing for it.
    """
    where = {"generator": generator, "device": generator.device, "dtype": torch.float64}
    r = torch.rand(batch, **where)
    uniforms = torch.rand(batch, length, **where)
    hidden_share = mask_probabilities(schedule, r)
    groups = uniforms < hidden_share[:, None]
    if order is None or not order_share:
        return groups
    ordered = torch.rand(batch, **where) < order_share
    return torch.where(ordered[:, None], groups_along(order.to(generator.device), hidden_share), groups)
