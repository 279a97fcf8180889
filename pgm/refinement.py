"""Looking again at what stands: score every generated code by the others, hide the unlikely ones, draw them anew.

A parallel sampler draws the codes of a step without seeing one another, so some do not fit. A partition transformer
predicts each of two groups from the other, which also says how well a finished code fits. Related: Token-Critic
(arXiv 2209.04439), discrete predictor-corrector sampling (Lezama et al., ICLR 2023), remasking (arXiv 2503.00307).

Scores: how likely a code is, or how much less surprising than was to be expected where it stands. By likelihood alone
rich places are redrawn again and again, for nothing is likely there, and flat ones never.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, get_args

import torch
from torch import Tensor

from pgm.arguments import one_of, share, whole_number
from pgm.choosing import suppress
from pgm.noise import Noise, draw_noise
from pgm.plans import DRAWN_SCHEDULES
from pgm.predictors import Clean, Predictor
from pgm.sampling import RefineScore, SamplingConfig, Step, planned_steps, sample

MOST_ROUNDS = 64
MOST_STEPS = 64


def sample_and_refine(
    predictor: Predictor,
    noise: Noise,
    grid: tuple[int, int],
    config: SamplingConfig,
    device: torch.device | str = "cpu",
    known_codes: Tensor | None = None,
) -> Iterator[Step]:
    """`sample`, followed by `config.refine_rounds` rounds in which codes are taken back and drawn again.

    Each round takes back the codes that fit the others worst by `config.refine_score`, `config.refine_share` of the
    generated ones in the first round and linearly fewer in the later ones, and generates them in `config.refine_steps`
    steps with constant guidance and temperature. Codes given in `known_codes` (B, L) are never taken back. noise: with
    as many `rounds`. Steps are counted through; those of round r say so in `Step.round`.
    """
    step = None
    generated = torch.ones_like(noise.codes, dtype=torch.bool) if known_codes is None else known_codes.cpu() < 0
    wanted, generated = generated.sum(1), generated.to(device)  # (B,), (B, L)
    later = sum(_steps(config, index, int(wanted.max())) for index in range(config.refine_rounds))
    for step in sample(predictor, noise, grid, config, device, known_codes):
        step = replace(step, total=step.total + later)
        yield step
    again = redraw_config(config)
    for index in range(config.refine_rounds if later else 0):
        own = noise.rounds[index]
        fit, ran = fits(predictor, step.codes, generated, own.order.to(device), config.refine_score)
        hidden = worst(fit, _counts(config, index, wanted).to(device))
        before = replace(
            step, computed=step.computed + ran, computed_masked=step.computed_masked + 2 * (predictor.length + 1)
        )
        for inner in sample(predictor, own, grid, again, device, torch.where(hidden, -1, step.codes)):
            yield (step := _continued(before, inner, index + 1))


def refinement_arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The refinement's part of `SamplingConfig` from settings by name; ValueError for what is out of range."""
    usual = SamplingConfig()
    return {
        "refine_rounds": whole_number("refine_rounds", settings.get("refine_rounds", 0), 0, MOST_ROUNDS),
        "refine_share": share("refine_share", settings.get("refine_share", usual.refine_share)),
        "refine_steps": whole_number("refine_steps", settings.get("refine_steps", usual.refine_steps), 1, MOST_STEPS),
        "refine_score": one_of("refine_score", settings.get("refine_score", usual.refine_score), get_args(RefineScore)),
    }


def noise_for(config: SamplingConfig, seeds: list[int], length: int) -> Noise:
    """All noise that generating `length` positions and refining them takes."""
    by_confidence = config.order == "confidence"
    return draw_noise(
        seeds,
        length,
        confidence_steps=planned_steps(config, length) if by_confidence else 0,
        count_steps=config.steps if config.schedule == "binomial" else 0,
        rounds=config.refine_rounds,
        round_confidence_steps=config.refine_steps if by_confidence else 0,
    )


def refining_steps(config: SamplingConfig, length: int) -> int:
    """Steps that refining `length` generated codes takes."""
    return sum(_steps(config, index, length) for index in range(config.refine_rounds))


def all_steps(config: SamplingConfig, length: int) -> int:
    """Steps that generating and refining `length` codes takes."""
    return planned_steps(config, length) + refining_steps(config, length)


def redraw_config(config: SamplingConfig) -> SamplingConfig:
    """How the codes of a round are drawn: as at the end of a generation."""
    return replace(
        config,
        steps=config.refine_steps,
        schedule="even" if config.schedule in DRAWN_SCHEDULES else config.schedule,
        guidance_schedule="constant",
        temperature_warmup=0,
        temperature_anneal=1.0,
        resample_known=False,
    )


def fits(
    predictor: Predictor, codes: Tensor, generated: Tensor, order: Tensor, score: RefineScore = "likelihood"
) -> tuple[Tensor, int]:
    """How well each generated code fits the others, and the token positions that this ran per image.

    codes: (B, L) int64, all known; generated: (B, L) bool; order: (B, L), whose ranks split the generated codes of a
    row into two halves. Each half is predicted, without guidance, from all codes but itself. score: "likelihood", log p
    of the code, or "typicality", log p plus the entropy of the distribution: minus the surprise beyond the expected one
    (locally typical sampling, arXiv 2202.00666, takes the magnitude; here a code likelier than expected is no fault).
    Returns (B, L) float32 in nats, infinite where nothing was generated.
    """
    ranks = order.masked_fill(~generated, torch.inf).argsort(dim=1).argsort(dim=1)  # generated ones come first
    first = generated & (ranks < (generated.sum(1, keepdim=True) + 1) // 2)
    fit = torch.full(codes.shape, torch.inf, device=codes.device)
    computed = 0
    for half in (first, generated & ~first):
        queries, query_lengths = _columns(half)
        if not queries.shape[1]:
            continue
        arrival, lengths = _columns(~half)
        clean = Clean(torch.where(half, -1, codes), arrival, lengths)
        logits, _ = predictor.predict(clean, queries, query_lengths, guided=False)
        log_p = suppress(logits, predictor.special_ids).log_softmax(-1)
        found = log_p.gather(-1, codes.gather(1, queries)[..., None])[..., 0]  # (B, Q)
        if score == "typicality":
            found = found + torch.special.entr(log_p.exp()).sum(-1)
        valid = half.gather(1, queries)  # padding columns repeat positions that are not of this half
        fit = fit.scatter(1, queries, torch.where(valid, found, fit.gather(1, queries)))
        computed += predictor.cost(arrival.shape[1], queries.shape[1])
    return fit, computed


def worst(fit: Tensor, counts: Tensor) -> Tensor:
    """Mask (B, L) of the counts[b] smallest values of each row, of equal ones the first."""
    return fit.argsort(dim=1, stable=True).argsort(dim=1) < counts[:, None]


def _columns(mask: Tensor) -> tuple[Tensor, Tensor | None]:
    """Positions of a mask (B, L) as (B, K), ascending and padded to the longest row; lengths (B,) if they differ."""
    lengths = mask.sum(1).cpu()
    longest = int(lengths.max())
    ragged = bool((lengths != longest).any())
    return mask.long().argsort(dim=1, descending=True, stable=True)[:, :longest], lengths if ragged else None


def _counts(config: SamplingConfig, index: int, generated: Tensor) -> Tensor:
    """(B,) codes that round `index` takes back of so many generated ones: at least one where there is one."""
    taken = config.refine_share * (1 - index / config.refine_rounds)
    return torch.minimum((generated * taken).round().long().clamp_min(1), generated)


def _steps(config: SamplingConfig, index: int, generated: int) -> int:
    return min(config.refine_steps, int(_counts(config, index, torch.tensor(generated))))


def _continued(before: Step, inner: Step, index: int) -> Step:
    """Step `inner` of round `index`, counted on from the last step before the round."""
    return replace(
        inner,
        index=before.index + 1 + inner.index,
        total=before.total,
        computed=before.computed + inner.computed,
        computed_masked=before.computed_masked + inner.computed_masked,
        seconds=before.seconds + inner.seconds,
        round=index,
    )
