"""All randomness of a generation, drawn up front: each image has its own seed, so it is the same in any batch.

Everything is drawn on the CPU in float64 from a generator of its own; global generators are not touched.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Noise:
    """Uniforms in [0, 1) and Gumbel noise of a batch of images."""

    codes: Tensor  # (B, L) float64: which code each position gets, by inverse CDF
    order: Tensor  # (B, L) float64: ranks give the random order
    roll: Tensor  # (B,) float64: cyclic shift of a fixed order
    confidence: Tensor | None = None  # (B, S, L) float64 Gumbel noise, only for confidence sampling
    counts: Tensor | None = None  # (B, S) float64, only for the binomial schedule
    rounds: tuple["Noise", ...] = ()  # of each round of refinement


def fold_seed(seed: int) -> int:
    """Seed (0 <= seed < 2**63) in 32 bits, unchanged below 2**32: PyTorch's CPU generator ignores all higher bits."""
    return (seed ^ (seed >> 32) * 0x9E3779B1) % 2**32  # multiplying by an odd number keeps different high bits apart


def draw_noise(
    seeds: list[int],
    length: int,
    confidence_steps: int = 0,
    count_steps: int = 0,
    rounds: int = 0,
    round_confidence_steps: int = 0,
) -> Noise:
    """Draw the noise of images with these seeds (0 <= seed < 2**63) for `length` positions.

    confidence_steps: number of steps that confidence sampling will take, 0 for fixed orders; count_steps: number of
    steps of the binomial schedule, 0 for others; rounds of refinement, and what confidence sampling takes in each. The
    draws of an image depend on its seed only: roll, then codes, then order, then confidence noise and counts step by
    step, then the same for each round.
    """
    generators = [torch.Generator().manual_seed(fold_seed(seed)) for seed in seeds]
    first = _draw(generators, length, confidence_steps, count_steps)
    later = tuple(_draw(generators, length, round_confidence_steps, 0) for _ in range(rounds))
    return replace(first, rounds=later)


def _draw(generators: list[torch.Generator], length: int, confidence_steps: int, count_steps: int) -> Noise:
    """The next draws of each image's generator."""
    rolls, codes, orders, gumbels, counts = [], [], [], [], []
    for generator in generators:

        def uniform(*shape: int, generator: torch.Generator = generator) -> Tensor:
            return torch.rand(*shape, dtype=torch.float64, generator=generator)

        rolls.append(uniform(()))
        codes.append(uniform(length))
        orders.append(uniform(length))
        if confidence_steps:
            smallest = torch.finfo(torch.float64).tiny
            gumbels.append(-(-uniform(confidence_steps, length).clamp_min(smallest).log()).log())
        if count_steps:
            counts.append(uniform(count_steps))
    return Noise(
        torch.stack(codes),
        torch.stack(orders),
        torch.stack(rolls),
        torch.stack(gumbels) if confidence_steps else None,
        torch.stack(counts) if count_steps else None,
    )
