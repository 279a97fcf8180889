"""A grid over two settings: one picture for every pair of steps and guidance, from one seed, as a sheet and as CSV."""

import csv
import io
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from PIL import Image

from app.limits import Limits
from app.models import ImagePipeline, warm_up
from app.reveal import decoded, reveal
from app.settings import Settings, checked
from app.sheet import labelled

MAX_SIDE = 6  # values of one setting
COLUMNS = (
    "model", "class_id", "style", "seed", "sampler", "schedule", "temperature", "top_k", "steps", "guidance_scale",
    "codes_computed", "seconds",
)  # fmt: skip


@dataclass(frozen=True)
class Sweep:
    """Settings in common, and the values of the two that change."""

    settings: Settings
    steps: tuple[int, ...]
    guidance: tuple[float, ...]


def planned(settings: Settings, steps: str, guidance: str, limits: Limits) -> Sweep:
    """A sweep from two lists as typed ("4, 8, 16"), sorted, without doubles. ValueError when one is no good."""
    rows = _listed("Steps", steps)
    columns = _listed("Guidance", guidance)
    if len(rows) * len(columns) > limits.max_sweep:
        raise ValueError(f"The sweep has {len(rows)} x {len(columns)} pictures; at most {limits.max_sweep} are made.")
    each = [checked(replace(settings, steps=row, num_images=1), limits).steps for row in rows]
    strong = [
        checked(replace(settings, guidance_scale=column, num_images=1), limits).guidance_scale for column in columns
    ]
    base = checked(replace(settings, num_images=1), limits)
    return Sweep(base, tuple(sorted(set(each))), tuple(sorted(set(strong))))


def _listed(name: str, text: str) -> list[str]:
    words = str(text).replace(";", " ").replace(",", " ").split()
    if not 1 <= len(words) <= MAX_SIDE:
        raise ValueError(
            f"{name} must be from 1 to {MAX_SIDE} numbers with commas between, not {str(text)[:40] or 'empty'}."
        )
    return words


def sweep(pipeline: ImagePipeline, plan: Sweep) -> Iterator[dict[str, Any]]:
    """The growing value of the sheet: {run, title, summary, steps, guidance, size, cells: [...], done}.

    Cells come row by row, one row per number of steps: {row, column, picture: data URL, computed, seconds}. One
    unrecorded step comes first, so that the first cell does not pay for warming up.
    """
    settings, size = plan.settings, pipeline.info.image_size
    for steps in plan.steps:
        pipeline.request(**replace(settings, steps=steps).arguments())  # names a fault before anything is computed
    value = {
        "run": secrets.token_hex(8),
        "kind": "sweep",
        "title": settings.title(),
        "summary": f"{settings.sampler.capitalize()} · temperature {settings.temperature:g} · seed {settings.seed}",
        "settings": settings.as_dict(),
        "steps": list(plan.steps),
        "guidance": list(plan.guidance),
        "size": [size, size],
        "cells": [],
        "done": False,
    }
    yield value
    warm_up(pipeline, pipeline.request(**settings.arguments()))
    total = len(plan.steps) * len(plan.guidance)
    for row, steps in enumerate(plan.steps):
        for column, guidance in enumerate(plan.guidance):
            *_, last = reveal(pipeline, replace(settings, steps=steps, guidance_scale=guidance))
            final = last["steps"][-1]
            cell = {
                "row": row,
                "column": column,
                "picture": final["previews"][0],
                "computed": final["computed"],
                "seconds": final["seconds"],
            }
            cells = [*value["cells"], cell]
            value = {**value, "cells": cells, "done": len(cells) == total}
            yield value


def table(value: dict[str, Any]) -> str:
    """CSV of a finished or stopped sweep: one line per picture, all its settings, codes computed, seconds."""
    buffer = io.StringIO()
    rows = csv.DictWriter(buffer, COLUMNS, extrasaction="ignore", lineterminator="\n")
    rows.writeheader()
    for cell in value["cells"]:
        settings = {
            **value["settings"],
            "steps": value["steps"][cell["row"]],
            "guidance_scale": value["guidance"][cell["column"]],
        }
        rows.writerow({**settings, "codes_computed": cell["computed"], "seconds": cell["seconds"]})
    return buffer.getvalue()


def sheet(value: dict[str, Any]) -> Image.Image:
    """One labelled RGB picture: rows are numbers of steps, columns guidance, seconds below each cell."""
    cells = [
        (cell["row"], cell["column"], decoded(cell["picture"]), f"{cell['seconds']:.2f} s") for cell in value["cells"]
    ]
    columns = [f"guidance {guidance:g}" for guidance in value["guidance"]]
    rows = [f"{steps} steps" if steps != 1 else "1 step" for steps in value["steps"]]
    return labelled(value["title"], value["summary"], columns, rows, cells, value["size"][0])
