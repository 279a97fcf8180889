"""What a code may see while training: the other group (arXiv 2505.18883, section 4), or what a sampler finds before it.

Group 1 is the side to be generated. A sequence is either split into two groups at random, which supervises any context,
or staged along a fixed order, which supervises all steps of that order's sampler at once.
"""

import torch
from torch import Tensor

from pgm.schedules import Schedule, known_share, step_counts

FEWEST_STEPS = 16  # of a staged sequence; with fewer, too many codes are drawn blind to each other


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


class Stages:
    """At which step each position becomes known to a sampler of fixed order in 16, 32, ... steps, or code by code."""

    def __init__(self, order: Tensor, schedule: Schedule = "arccos"):
        """order: (L,) all positions as they become known."""
        length, ranks = len(order), order.argsort()
        self.steps = [2**n for n in range(length.bit_length()) if FEWEST_STEPS <= 2**n < length] + [length]
        counts = [torch.tensor(step_counts(schedule, length, steps)) for steps in self.steps]
        # (N, L) numbered from 1, as 0 is for what is known from the start
        self.table = torch.stack([torch.arange(1, len(n) + 1).repeat_interleave(n)[ranks] for n in counts])

    def at(self, u: Tensor) -> Tensor:
        """Stages (B, L) int64 >= 1 of a number of steps that uniforms u (B,) in [0, 1) pick."""
        return self.table[(u * len(self.table)).long()]


def visibility(groups: Tensor, stages: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Which keys (last dimension) a position sees in the encoder and in the decoder: two masks (B, L, L) bool.

    groups: (B, L) bool. Both sides of a split encode themselves and decode each other. stages: (B, L) int64, all 0 in
    rows that are split; the other rows ignore their groups. There the encoder shows a code what is known at the end of
    its own step, as `EncoderCache` does when it encodes every code once, and the decoder what was known before.
    """
    same = groups[:, :, None] == groups[:, None, :]
    if stages is None:
        return same, ~same
    staged = (stages > 0).any(1)[:, None, None]
    query, key = stages[:, :, None], stages[:, None, :]
    return torch.where(staged, key <= query, same), torch.where(staged, key < query, ~same)
