"""Classifier-free guidance (arXiv 2207.12598): logits = (1 + w) conditional - w unconditional, w = 0 is off."""

import math
from typing import Literal, get_args

from torch import Tensor

GuidanceSchedule = Literal["linear", "constant", "cosine"]


def guidance_schedule_names() -> tuple[str, ...]:
    """All guidance schedules by name."""
    return get_args(GuidanceSchedule)


def guidance_weights(scale: float, steps: int, schedule: str = "linear") -> list[float]:
    """Weight w of each step.

    linear: the published ramp scale * i / (steps - 1); cosine: a ramp that starts and ends gently; constant: scale
    throughout. A single step gets the full scale. Raises ValueError for a negative or non-finite scale or an unknown
    schedule.
    """
    if not (math.isfinite(scale) and scale >= 0):
        raise ValueError(f"guidance_scale must be a finite number >= 0, got {scale!r}")
    if schedule not in guidance_schedule_names():
        raise ValueError(f"guidance_schedule must be one of {', '.join(guidance_schedule_names())}, got {schedule!r}")
    progress = [i / (steps - 1) for i in range(steps)] if steps > 1 else [1.0] * steps
    if schedule == "constant":
        progress = [1.0] * steps
    elif schedule == "cosine":
        progress = [(1 - math.cos(math.pi * p)) / 2 for p in progress]
    return [scale * p for p in progress]


def guide(conditional: Tensor, unconditional: Tensor | None, weight: float) -> Tensor:
    """Mix logits of any equal shape; without an unconditional part the conditional one is returned."""
    if unconditional is None:
        return conditional
    return (1 + weight) * conditional - weight * unconditional
