"""Several reveals in step: a partition model beside its masked twin, or three orders of one model.

Steps alternate on the same machine, and each clock runs only during its own steps, so the seconds can be compared.
"""

import csv
import io
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Any

import torch
from PIL import Image

from app.models import Models, warm_up
from app.reveal import picture_at, reveal
from app.settings import Settings
from app.sheet import labelled
from pgm.sampling import SamplingConfig

TWIN, ORDERS = "twin", "orders"
KINDS = {"pgm": "PGM", "maskgit": "MaskGIT"}
COMPARED_ORDERS = ("halton", "confidence", "random")


@dataclass(frozen=True)
class Side:
    """One of the reveals shown beside each other."""

    label: str
    settings: Settings


def no_twin(models: Models, name: str) -> str:
    """Why a model cannot be compared with its twin; blank when it can."""
    if models.twin(name):
        return ""
    info = models.info(name)
    other = KINDS["maskgit" if info.architecture == "pgm" else "pgm"]
    return f"PGM / MaskGIT needs a {other} model with the codes and classes of {info.title}; none is installed."


def about_twins(models: Models, name: str) -> str:
    """One sentence on comparing a model with its twin: why that cannot be, or which pair is of equals; or blank."""
    reason = no_twin(models, name)
    if reason:
        return reason
    other = models.twin(name)
    equal = models.twin(other)
    if equal == name:
        return ""
    titles = [models.title(each) for each in (other, equal, name)]
    return f"{titles[0]} was made to be compared with {titles[1]}: choose that for a race of equals, not {titles[2]}."


def sides(models: Models, mode: str, settings: Settings) -> tuple[Side, ...]:
    """What is compared: `mode` "twin" (both kinds of model, PGM first) or "orders". ValueError when it cannot be."""
    if mode == ORDERS:
        return tuple(Side(order.capitalize(), replace(settings, sampler=order)) for order in COMPARED_ORDERS)
    if mode != TWIN:
        raise ValueError(f"What to compare must be {TWIN} or {ORDERS}, not {mode!r}.")
    reason = no_twin(models, settings.model)
    if reason:
        raise ValueError(reason)
    names = sorted(
        (settings.model, models.twin(settings.model)), key=lambda name: models.info(name).architecture != "pgm"
    )
    first, second = (models.pipeline(name).tokenizer.quantizer.codebook for name in names)
    if first.shape != second.shape or not torch.equal(first.cpu(), second.cpu()):
        raise ValueError(f"{names[0]} and {names[1]} do not share a codebook, so their codes cannot be compared.")
    return tuple(Side(KINDS[models.info(name).architecture], replace(settings, model=name)) for name in names)


def in_step(models: Models, chosen: Sequence[Side]) -> Iterator[dict[str, Any]]:
    """The growing value of the compare viewer: {run, title, summary, sides: [{label, **value of a reveal}], done}.

    Every round adds one step to every side. One unrecorded step of each comes first, so that none pays for warming up.
    """
    pipelines = [models.pipeline(side.settings.model) for side in chosen]
    requests = [pipeline.request(**side.settings.arguments()) for pipeline, side in zip(pipelines, chosen, strict=True)]
    for pipeline, request in zip(pipelines, requests, strict=True):
        warm_up(pipeline, request)
    with ExitStack() as stack:
        reveals = [
            stack.enter_context(closing(reveal(pipeline, side.settings)))
            for pipeline, side in zip(pipelines, chosen, strict=True)
        ]
        values = [next(one) for one in reveals]
        names = [side.label for side in chosen]
        frame = {"run": secrets.token_hex(8), "kind": "sides", "title": chosen[0].settings.title()}
        frame["summary"] = summary(chosen, [request.sampling for request in requests])
        while True:
            shown = [{"label": name, **value} for name, value in zip(names, values, strict=True)]
            done = all(value["done"] for value in values)
            yield {**frame, "sides": shown, "done": done, "verdict": verdict(shown) if done else ""}
            if done:
                return
            values = [next(one, value) for one, value in zip(reveals, values, strict=True)]


def summary(chosen: Sequence[Side], samplings: Sequence[SamplingConfig]) -> str:
    """What all sides have in common, and who saves on the encoder, in one line."""
    settings = chosen[0].settings
    order = "" if len({side.settings.sampler for side in chosen}) > 1 else settings.sampler.capitalize()
    parts = [order, f"{settings.steps} steps", f"guidance {settings.guidance_scale:g}", f"seed {settings.seed}"]
    savings = [saving(sampling) for sampling in samplings]
    if len(set(savings)) == 1:
        parts.append(savings[0])
    else:
        parts += [f"{side.label}: {words}" for side, words in zip(chosen, savings, strict=True) if words]
    return " · ".join(part for part in parts if part)


def saving(sampling: SamplingConfig) -> str:
    """What a sampler saves on the encoder, in words; blank when it encodes all known codes at every step."""
    every = sampling.encoder_refresh
    if every == 1:
        return ""
    return "each code encoded once" if every >= sampling.steps else f"all codes encoded every {every} steps"


def verdict(shown: Sequence[dict[str, Any]]) -> str:
    """One sentence on who computed how many codes, from the numbers of finished reveals."""
    work = sorted((side["steps"][-1]["computed"], side["label"]) for side in shown)
    (least, first), (most, last) = work[0], work[-1]
    if most < 1.02 * least:
        return "All of them computed the same number of codes."
    times = f"{most / least:.1f}"
    reason = (
        "a masked transformer runs every position at every step"
        if {side["label"] for side in shown} == set(KINDS.values())
        else "to find the surest codes, confidence has to look at every unknown one at every step"
        if last == "Confidence"
        else ""
    )
    return f"{last} computed {times} times as many codes as {first}" + (f": {reason}." if reason else ".")


def table(value: dict[str, Any]) -> str:
    """CSV of a comparison: one line per side and step."""
    buffer = io.StringIO()
    rows = csv.writer(buffer, lineterminator="\n")
    names = ("model", "class_id", "style", "seed", "sampler", "steps", "guidance_scale")
    rows.writerow(["side", *names, "step", "codes_known", "codes_computed", "seconds"])
    for side in value["sides"]:
        shared = [side["label"], *(side["settings"][name] for name in names)]
        for index, step in enumerate(side["steps"]):
            rows.writerow([*shared, index + 1, step["known"], step["computed"], step["seconds"]])
    return buffer.getvalue()


def sheet(value: dict[str, Any], step: int) -> Image.Image:
    """One labelled RGB picture of all sides at a step (0-based; the last one a side has, if it has fewer)."""
    cells = []
    for column, side in enumerate(value["sides"]):
        shown = min(step, len(side["steps"]) - 1)
        record = side["steps"][shown]
        caption = f"{record['computed']:,} codes, {record['seconds']:.2f} s"
        cells.append((0, column, picture_at(side, shown, 0), caption))
    labels = [side["label"] for side in value["sides"]]
    return labelled(value["title"], value["summary"], labels, [""], cells, value["sides"][0]["size"][0], smallest=192)
