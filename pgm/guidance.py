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


def guide(conditional: Tensor, unconditional: Tensor | None, weight: float | Tensor) -> Tensor:
    """Mix logits of equal shape in float32; without an unconditional part the conditional one is returned.

    weight: one number, or a tensor that broadcasts against the logits.
    """
    if unconditional is None:
        return conditional
    # Half precision ends at 65504, which large weights would overflow.
    return (1 + weight) * conditional.float() - weight * unconditional.float()
