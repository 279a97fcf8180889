"""How many positions of every row become known at every step: schedules with their rules, or counts drawn by chance.

Drawn counts are those of the text samplers (arXiv 2505.18883, appendix; MDLM arXiv 2406.07524): "ancestral" reveals a
position when its own clock strikes, "binomial" draws a number per step; both leave rows of different lengths.
"""

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from pgm.noise import Noise
from pgm.schedules import Schedule, step_counts

DrawnSchedule = Literal["ancestral", "binomial"]
PlanSchedule = Literal["arccos", "cosine", "linear", "square", "root", "even", "ancestral", "binomial"]
DRAWN_SCHEDULES = get_args(DrawnSchedule)


def plan_schedule_names() -> tuple[str, ...]:
    """Everything `count_plan` takes."""
    return get_args(PlanSchedule)


def count_plan(
    schedule: PlanSchedule, steps: int, given: Tensor, noise: Noise, confidence: Literal["pgm", "maskgit"] | None = None
) -> Tensor:
    """Positions to reveal, (B, S) int64, rows summing to the number of unknown positions.

    given: (B, L) bool, known from the start; confidence: whose counts confidence sampling follows, None for fixed
    orders. Fixed schedules never have more steps than a row has unknown positions; "binomial" has one step more, for
    what chance has left over.
    """
    if schedule == "ancestral":
        return _ancestral(steps, given, noise.order)
    if schedule == "binomial":
        return _binomial(steps, given, noise.counts)
    rule = "even" if schedule == "even" else "ordered"
    if confidence is not None:
        rule = "confidence" if confidence == "pgm" else "confidence-maskgit"
    name: Schedule = "linear" if schedule == "even" else schedule
    rows = [step_counts(name, count, steps, rule) for count in (~given).sum(1).tolist()]
    longest = max(map(len, rows))
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows], dtype=torch.int64).reshape(
        len(rows), longest
    )


def _ancestral(steps: int, given: Tensor, clocks: Tensor) -> Tensor:
    # A masked position survives from t to s with probability s/t, so its time of reveal is uniform: one clock each.
    bucket = (clocks * steps).long().clamp_max(steps - 1)  # (B, L)
    return torch.zeros(len(given), steps, dtype=torch.int64).scatter_add(1, bucket, (~given).long())


def _binomial(steps: int, given: Tensor, uniforms: Tensor) -> Tensor:
    # n ~ Binomial(L + 1, 1/steps) at every step (BOS is counted, as published), cut to what is left.
    size = given.shape[1] + 1
    log_p = math.log(1 / steps)
    log_q = math.log1p(-1 / steps) if steps > 1 else -math.inf
    k = torch.arange(size + 1, dtype=torch.float64)
    log_choose = math.lgamma(size + 1) - torch.lgamma(k + 1) - torch.lgamma(size - k + 1)
    rest = torch.where(k < size, (size - k) * log_q, 0.0)  # 0 * -inf where steps == 1
    cdf = (log_choose + k * log_p + rest).exp().cumsum(0)
    wanted = torch.searchsorted(cdf, uniforms[:, :steps].clamp_max(cdf[-1].item() * (1 - 1e-12)), right=True)
    done = torch.minimum(wanted.cumsum(1), (~given).sum(1, keepdim=True))
    done = torch.cat((done, (~given).sum(1, keepdim=True)), dim=1)
    return done.diff(dim=1, prepend=torch.zeros_like(done[:, :1]))
