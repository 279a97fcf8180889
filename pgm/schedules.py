"""How many codes become known at each step: MaskGIT's schedule functions (arXiv 2202.04200, section 3.2).

A schedule function f maps the share of steps done to the share of codes known, f(0) = 0, f(1) = 1.
"""

import math
from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor

Schedule = Literal["arccos", "cosine", "linear", "square", "root"]
Rule = Literal["ordered", "even", "confidence", "confidence-maskgit"]

_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "arccos": lambda r: 1 - r.acos() * 2 / math.pi,
    "cosine": lambda r: 1 - (math.pi * r / 2).cos(),
    "linear": lambda r: r,
    "square": lambda r: r**2,
    "root": lambda r: r**0.5,
}


def schedule_names() -> tuple[str, ...]:
    """All schedules by name."""
    return get_args(Schedule)


def known_share(schedule: str, progress: Tensor) -> Tensor:
    """Share of codes known when a share `progress` in [0, 1] (any shape) of the steps is done.

    Raises ValueError for an unknown name.
    """
    if schedule not in _FUNCTIONS:
        raise ValueError(f"schedule must be one of {', '.join(_FUNCTIONS)}, got {schedule!r}")
    return _FUNCTIONS[schedule](progress)


def step_counts(schedule: str, length: int, steps: int, rule: Rule = "ordered") -> list[int]:
    """New codes at each step: positive integers that sum to `length`.

    Rules, as published: "ordered" (Halton and other fixed orders) reveals max(i + 1, floor(length f((i+1)/steps)))
    codes up to step i; "even" (PGM's text sampler, whatever the schedule) ceil(length (i+1)/steps); "confidence"
    (PGM) and "confidence-maskgit" start with a single code and follow floor(length f(i/(steps-1))), the first by
    increments, the second by cumulative targets. Where a published increment is 0 (the references raise), one code is
    revealed. More steps than codes are cut to `length` steps, so the list may be shorter than `steps`. Raises
    ValueError for steps < 1, length < 0 or an unknown schedule.
    """
    if steps < 1:
        raise ValueError(f"steps must be an integer >= 1, got {steps!r}")
    if length < 0:
        raise ValueError(f"length must be >= 0, got {length!r}")
    steps = min(steps, length)
    if rule == "even":
        return _increments([-(-length * (i + 1) // steps) for i in range(steps)])
    if rule == "ordered":
        progress = (torch.arange(steps, dtype=torch.float32) + 1) / max(steps, 1)
    else:
        progress = torch.linspace(0, 1, steps, dtype=torch.float32)
    # float32 as published: where length * f is a whole number, the rounding decides which step gets one code more.
    targets = (length * known_share(schedule, progress)).floor().long().tolist()
    counts: list[int] = []
    done = 0
    for i, target in enumerate(targets):
        wanted = target - targets[i - 1] if rule == "confidence" and i else target - done
        left_for_later = steps - 1 - i  # each later step needs at least one code
        count = max(1, min(wanted, length - done - left_for_later))
        if i == steps - 1:
            count = length - done
        counts.append(count)
        done += count
    return counts


def _increments(cumulative: list[int]) -> list[int]:
    return [now - before for before, now in zip([0, *cumulative], cumulative, strict=False)]
