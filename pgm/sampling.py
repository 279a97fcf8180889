"""The sampling loop (arXiv 2505.18883, section 5; MaskGIT, arXiv 2202.04200): a generator of steps.

There is one loop for images and text, partition and masked transformers, generation and editing. Whoever consumes it
decides what to do with a step; closing it ends the work.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pgm.choosing import anneal, choose, suppress, temperatures
from pgm.guidance import GuidanceSchedule, guidance_weights, guide
from pgm.noise import Noise
from pgm.orders import Order, fixed_order
from pgm.plans import PlanSchedule, count_plan
from pgm.predictors import Clean, Predictor

ConfidenceMode = Literal["linear", "warmup", "random", "none"]
RefineScore = Literal["likelihood", "typicality"]


@dataclass(frozen=True)
class SamplingConfig:
    """How codes are chosen. The defaults are the published ones but for `confidence_temperature` of other sources."""

    steps: int = 32
    order: Order = "halton"
    schedule: PlanSchedule = "arccos"
    guidance_scale: float = 0.0
    guidance_schedule: GuidanceSchedule = "linear"
    temperature: float = 1.0  # divides logits, 0 = argmax
    temperature_warmup: int = 0  # first steps at twice the temperature (published code: 1)
    temperature_anneal: float = 1.0  # multiple of the temperature at the first step, going linearly to 1 at the last
    top_k: int | None = None
    top_p: float | None = None
    roll: bool = False  # shift the Halton order cyclically, by a different amount for every image
    confidence_mode: ConfidenceMode = "linear"  # noise on confidences: fading, first two steps random, all random, none
    confidence_temperature: float = 4.5
    confidence_counts: Literal["pgm", "maskgit"] = "pgm"
    resample_known: bool = False  # masked transformers only: draw known codes anew at each step, as published
    suppress_special: bool = True
    refine_rounds: int = 0  # how often unlikely codes are taken back and drawn anew at the end (`pgm.refinement`)
    refine_share: float = 0.4  # of the generated codes, in the first round; linearly fewer in later ones
    refine_steps: int = 4  # of each round
    refine_score: RefineScore = "likelihood"  # by what the codes to take back are chosen (`pgm.refinement.fits`)
    encoder_refresh: int = 1  # partition transformers only: every so many steps all codes are encoded, else new ones


@dataclass(frozen=True)
class Step:
    """State after one step. Tensors are on the network's device and are never changed afterwards."""

    index: int  # 0-based
    total: int
    codes: Tensor  # (B, L) int64, -1 where unknown
    known: Tensor  # (B, L) bool
    filled: Tensor  # (B, L) bool, became known at this step
    computed: int  # token positions run through the network so far, per image, guidance passes included
    computed_masked: int  # what a masked transformer would have run by now
    seconds: float  # since the start
    round: int = 0  # of refinement; 0 while codes are generated for the first time


def sample(
    predictor: Predictor,
    noise: Noise,
    grid: tuple[int, int],
    config: SamplingConfig,
    device: torch.device | str = "cpu",
    known_codes: Tensor | None = None,
) -> Iterator[Step]:
    """Generate codes step by step.

    noise: of B images for L = grid[0] * grid[1] positions; known_codes: (B, L) int64 with -1 where codes are to be
    generated (None: everywhere), left unchanged. Yields one `Step` per forward pass; if nothing is to be generated, a
    single step that says so. Raises FloatingPointError when the network returns NaN or infinity.
    """
    start = time.perf_counter()
    batch, length = noise.codes.shape
    codes = torch.full((batch, length), -1) if known_codes is None else known_codes.clone().cpu()
    given = codes >= 0
    confidence = config.confidence_counts if config.order == "confidence" else None
    plan = count_plan(config.schedule, config.steps, given, noise, confidence)  # (B, S)
    steps = plan.shape[1]
    # (B,) rows with few unknown codes end early; their ramps are as long as they are.
    row_steps = ((plan > 0) * torch.arange(1, steps + 1)).amax(1) if steps else plan.sum(1)
    weights = _weights(config, row_steps.tolist(), steps)  # (B, S)
    heats = _heats(config, row_steps.tolist(), steps, device)
    special = predictor.special_ids if config.suppress_special else ()
    pending = _pending(config, grid, noise, given)  # (B, L), positions to generate first
    counts = plan.cumsum(1)  # generated up to and including a step
    totals = counts[:, -1] if steps else torch.zeros(batch, dtype=torch.int64)
    uniforms = noise.codes.to(torch.float32).to(device)  # float64 does not exist on every device
    arrival = given.long().argsort(dim=1, descending=True, stable=True)  # given positions first, ascending
    known, given_count = given.clone(), given.sum(1)
    codes, arrival, pending = codes.to(device), arrival.to(device), pending.to(device)
    computed = computed_masked = since = 0
    guided = False
    if not steps:
        yield Step(0, 0, codes, known.to(device), torch.zeros_like(given).to(device), 0, 0, time.perf_counter() - start)
        return
    known = known.to(device)
    by_confidence = config.order == "confidence"
    if not by_confidence:  # then it is known in which order positions will arrive
        arrival = _arrival(arrival, pending, given_count)
    resample = config.resample_known and predictor.can_resample
    for index in range(steps):
        if not plan[:, index].any():  # chance may reveal nothing (text samplers); then nothing is computed
            yield Step(
                index,
                steps,
                codes,
                known,
                torch.zeros_like(known),
                computed,
                computed_masked,
                time.perf_counter() - start,
            )
            continue
        before = counts[:, index] - plan[:, index]  # (B,) generated so far
        weight, was_guided = weights[:, index], guided
        guided = bool(weight.any()) and predictor.can_guide
        reuse = None
        if config.encoder_refresh > 1:  # of rows that guidance has just added nothing is kept yet
            reuse = index % config.encoder_refresh > 0 and guided == was_guided
        clean = _clean(codes, arrival, given_count + before, since, reuse)
        kept = predictor.cost(since, 0) if reuse else 0  # token positions
        since = int((given_count + before).min())
        if by_confidence:
            first, last = torch.zeros_like(before) if resample else before, totals
        else:
            first, last = torch.zeros_like(before) if resample else before, counts[:, index]
        queries, query_lengths, valid = _window(pending, first, last)
        conditional, unconditional = predictor.predict(clean, queries, query_lengths, guided)
        logits = suppress(guide(conditional, unconditional, weight[:, None, None].to(device)), special)
        if not logits.amax(-1).isfinite().all():
            raise FloatingPointError(
                f"the network returned NaN or infinity at step {index} in {conditional.dtype}; try dtype float32"
            )
        chosen, log_p = choose(logits, uniforms.gather(1, queries), heats[index], config.top_k, config.top_p)
        if by_confidence:
            scores = _confidence(log_p, noise, queries, index, row_steps, config)
            scores = scores.masked_fill(known.gather(1, queries), torch.inf).masked_fill(~valid, -torch.inf)
            selected = _best(scores, (counts[:, index] - first).to(device))
        else:
            selected = valid
        if predictor.unknown_id is not None:
            chosen = torch.where(chosen == predictor.unknown_id, -1, chosen)  # only without suppress_special
        codes = _write(codes, queries, chosen, selected)
        filled = (codes >= 0) & ~known
        known = codes >= 0
        if by_confidence:
            pending = _settle(pending, filled, before)
            arrival = _arrival(arrival, pending, given_count)
        passes = 2 if guided else 1
        computed += passes * (predictor.cost(clean.arrival.shape[1], queries.shape[1]) - kept)
        computed_masked += passes * (length + 1)
        yield Step(index, steps, codes, known, filled, computed, computed_masked, time.perf_counter() - start)


def planned_steps(config: SamplingConfig, length: int) -> int:
    """Number of steps that generating `length` codes takes; fixed schedules never take more steps than codes."""
    if config.schedule == "ancestral":
        return config.steps
    return config.steps + 1 if config.schedule == "binomial" else min(config.steps, length)


def _weights(config: SamplingConfig, row_steps: list[int], steps: int) -> Tensor:
    """(B, S) guidance weight of each row at each step, 0 when a row has ended."""
    rows = [guidance_weights(config.guidance_scale, count, config.guidance_schedule) for count in row_steps]
    padded = [row + [0.0] * (steps - len(row)) for row in rows]
    return torch.tensor(padded, dtype=torch.float32).reshape(len(rows), steps)


def _heats(
    config: SamplingConfig, row_steps: list[int], steps: int, device: torch.device | str
) -> list[float] | list[Tensor]:
    """Temperature of each step; annealed ones differ between rows of different length: (B, 1, 1) then."""
    constant = temperatures(steps, config.temperature, warmup=config.temperature_warmup)
    if config.temperature_anneal == 1 or config.temperature == 0:
        return constant
    factors = [anneal(count, config.temperature_anneal) + [1.0] * (steps - count) for count in row_steps]
    table = torch.tensor(factors, dtype=torch.float64).reshape(-1, steps) * torch.tensor(constant, dtype=torch.float64)
    return list(table.to(device, torch.float32)[:, :, None, None].unbind(1))


def _pending(config: SamplingConfig, grid: tuple[int, int], noise: Noise, given: Tensor) -> Tensor:
    """(B, L) positions in the order in which they are to be generated, given ones moved to the end."""
    if config.order == "confidence":
        order = torch.arange(given.shape[1]).expand(len(given), -1)
    else:
        order = fixed_order(config.order, grid, noise.order, noise.roll if config.roll else None)
    last = given.gather(1, order).long().argsort(dim=1, stable=True)
    return order.gather(1, last)


def _clean(codes: Tensor, arrival: Tensor, lengths: Tensor, since: int, reuse: bool | None) -> Clean:
    longest = int(lengths.max())
    ragged = bool((lengths != longest).any())
    return Clean(codes, arrival[:, :longest], lengths if ragged else None, since, reuse)


def _window(pending: Tensor, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
    """Columns first[b]..last[b]-1 of every row as (B, Q) positions, their lengths if they differ, and a mask (B, Q)."""
    size = last - first
    longest = int(size.max())
    ragged = bool((size != longest).any())
    columns = (first[:, None] + torch.arange(longest)).clamp_max(pending.shape[1] - 1).to(pending.device)
    size = size.to(pending.device)
    valid = torch.arange(longest, device=pending.device) < size[:, None]
    return pending.gather(1, columns), size if ragged else None, valid


def _confidence(
    log_p: Tensor, noise: Noise, queries: Tensor, index: int, row_steps: Tensor, config: SamplingConfig
) -> Tensor:
    """(B, Q) scores: log-probability plus Gumbel noise that fades to zero at a row's last step."""
    if config.confidence_mode == "none" or (config.confidence_mode == "warmup" and index >= 2):
        return log_p
    gumbel = noise.confidence[:, index].float().to(queries.device).gather(1, queries)
    if config.confidence_mode == "linear":
        fading = torch.where(row_steps > 1, 1 - index / (row_steps - 1).clamp_min(1), 0.0)[:, None]  # (B, 1)
        return log_p + config.confidence_temperature * fading.to(queries.device) * gumbel
    return gumbel


def _best(scores: Tensor, counts: Tensor) -> Tensor:
    """Mask (B, Q) of exactly counts[b] highest scores in each row; of equal ones the first."""
    ranks = scores.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    return ranks < counts[:, None]


def _write(codes: Tensor, queries: Tensor, chosen: Tensor, selected: Tensor) -> Tensor:
    """A copy of the codes (B, L) with the selected choices in place."""
    # Unselected columns are sent to an extra position behind the last, which is cut off again.
    target = torch.where(selected, queries, codes.shape[1])
    return torch.cat((codes, codes[:, :1]), dim=1).scatter(1, target, chosen)[:, :-1]


def _settle(pending: Tensor, filled: Tensor, generated: Tensor) -> Tensor:
    """Move this step's positions (ascending) before the ones still pending; earlier ones keep their place in front."""
    columns = torch.arange(pending.shape[1], device=pending.device)
    done = columns < generated.to(pending.device)[:, None]
    new = filled.gather(1, pending)
    return pending.gather(1, torch.where(done, 0, torch.where(new, 1, 2)).argsort(dim=1, stable=True))


def _arrival(arrival: Tensor, pending: Tensor, given_count: Tensor) -> Tensor:
    """Given positions, then the generated ones: they are a prefix of `pending`."""
    given = given_count.to(arrival.device)[:, None]
    columns = torch.arange(arrival.shape[1], device=arrival.device)
    source = (columns - given).clamp_min(0).expand(len(arrival), -1)
    return torch.where(columns < given, arrival, pending.gather(1, source))
