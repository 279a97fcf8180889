"""Learning-rate schedule as pure functions: linear warm-up, then cosine (Loshchilov & Hutter 2017, eq. 5)."""

import math


def progress(step: int, seconds: float, steps: int | None, minutes: float | None) -> float:
    """Share of a run completed, 0..1, for a run measured in steps or in minutes of training."""
    return min(1.0, step / steps if steps is not None else seconds / (60 * minutes))


def falling(done: float, start: float, until: float) -> float:
    """A share that falls linearly from `start` at the beginning of the run to 0 at share `until` of it."""
    return start * max(0.0, 1 - done / until) if until > 0 else 0.0


def warmup_cosine(done: float, step: int, warmup_steps: int, floor: float) -> float:
    """Factor of the peak learning rate at share `done` of the run: 1 after warm-up, `floor` at the end."""
    cosine = floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * done))
    return cosine * min(1.0, (step + 1) / max(1, warmup_steps))
