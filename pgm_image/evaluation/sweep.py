"""Which sampling settings are best? Every combination on fewer samples, with the same seeds and labels."""

import csv
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from pgm_image.evaluation.distances import distances
from pgm_image.evaluation.evaluate import RealSide, check_samples, recognised
from pgm_image.evaluation.features import extract
from pgm_image.evaluation.samples import Generates, Settings, draw_samples, pipeline_labels

KID_SUBSETS = 50


@dataclass(frozen=True)
class SweepRow:
    """One combination and what it gave."""

    sampler: str | None
    steps: int | None
    guidance_scale: float | None
    guidance_schedule: str | None
    temperature: float | None
    temperature_anneal: float | None
    refine_rounds: int | None
    kid: float  # x 1000
    kid_std: float
    class_top1: float
    class_top5: float
    style_top1: float
    images_per_second: float
    n: int


def combinations(
    samplers: Sequence[str | None],
    steps: Sequence[int | None],
    guidance: Sequence[float | None],
    guidance_schedules: Sequence[str | None],
    temperatures: Sequence[float | None],
    anneals: Sequence[float | None],
    rounds: Sequence[int | None] = (None,),
) -> list[Settings]:
    """All settings of the grid, samplers slowest, refinement fastest."""
    names = (
        "sampler", "steps", "guidance_scale", "guidance_schedule", "temperature", "temperature_anneal", "refine_rounds"
    )  # fmt: skip
    grid = itertools.product(samplers, steps, guidance, guidance_schedules, temperatures, anneals, rounds)
    return [Settings(**dict(zip(names, values, strict=True))) for values in grid]


def sweep(
    pipe: Generates, real: RealSide, grid: Sequence[Settings], seed: int = 0, chunk: int = 64
) -> Iterator[SweepRow]:
    """One row per combination as it is done; samples follow the labels of `real.reference`."""
    class_id, style_id = pipeline_labels(pipe, real.reference)
    for settings in grid:
        drawn = draw_samples(pipe, class_id, style_id, settings, seed, chunk)
        check_samples(drawn.images, real)
        lite0 = extract(drawn.images, real.lite0, device=real.device)
        found = distances(lite0, real.reference_lite0, fid=False, subsets=KID_SUBSETS)
        classes, styles = recognised(extract(drawn.images, real.mobilenet, device=real.device), real)
        yield SweepRow(
            sampler=settings.sampler,
            steps=settings.steps,
            guidance_scale=settings.guidance_scale,
            guidance_schedule=settings.guidance_schedule,
            temperature=settings.temperature,
            temperature_anneal=settings.temperature_anneal,
            refine_rounds=settings.refine_rounds,
            kid=found.kid,
            kid_std=found.kid_std,
            class_top1=classes.top1,
            class_top5=classes.top5,
            style_top1=styles.top1,
            images_per_second=len(drawn.images) / drawn.seconds,
            n=len(drawn.images),
        )


def best(rows: Sequence[SweepRow]) -> SweepRow:
    """The row best recognised as its class, of those with a KID within one deviation of the lowest."""
    lowest = min(rows, key=lambda row: row.kid)
    good = [row for row in rows if row.kid <= lowest.kid + lowest.kid_std]
    return max(good, key=lambda row: (row.class_top1, -row.kid))


def write_csv(rows: Sequence[SweepRow], path: str | Path) -> None:
    """One line per row under a header."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        names = [field.name for field in fields(SweepRow)]
        writer.writerow(names)
        writer.writerows([getattr(row, name) for name in names] for row in rows)


HEAD = (
    f"{'sampler':<11} {'steps':>5} {'guidance':>8} {'schedule':>9} {'temperature':>11} {'anneal':>6} {'rounds':>6} "
    f"{'KID x1000':>15} {'top-1':>6} {'top-5':>6} {'style':>6} {'images/s':>8}"
)


def row_line(row: SweepRow) -> str:
    """A row of the table under `HEAD`; "-" is the model's recommended value."""
    named = (
        row.sampler, row.steps, row.guidance_scale, row.guidance_schedule, row.temperature, row.temperature_anneal,
        row.refine_rounds,
    )  # fmt: skip
    sampler, steps, guidance, schedule, temperature, anneal, rounds = ("-" if v is None else str(v) for v in named)
    kid = f"{row.kid:.2f} +- {row.kid_std:.2f}"
    shares = " ".join(f"{share:>6.1%}" for share in (row.class_top1, row.class_top5, row.style_top1))
    settings = f"{sampler:<11} {steps:>5} {guidance:>8} {schedule:>9} {temperature:>11} {anneal:>6} {rounds:>6}"
    return f"{settings} {kid:>15} {shares} {row.images_per_second:>8.1f}"


def table(rows: Sequence[SweepRow]) -> str:
    """All rows, lowest KID first, and the best choice."""
    ordered = sorted(rows, key=lambda row: row.kid)
    return "\n".join([HEAD, *map(row_line, ordered), "", f"best: {row_line(best(rows)).strip()}"])
