"""PGM beside MDLM beside RMDM, writing in step from the same seeds.

Steps alternate on the same machine, and each clock runs only during its own steps, so the seconds can be compared.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

from app.text_models import KINDS, TextModels, TextPipeline
from app.text_reveal import reveal
from app.text_settings import TextSettings, request_of


def in_step(texts: TextModels, settings: TextSettings) -> Iterator[dict[str, Any]]:
    """The growing value of the viewer, as of `text_reveal.reveal_one` but with a side per model, and at the end a
    verdict. Every round adds one step to every side; one unrecorded step of each comes first, so that none pays for
    warming up. ValueError when there is nothing to compare with.
    """
    names, lacking = texts.beside(settings.model)
    if len(names) < 2:
        title = texts.info(settings.model).title
        raise ValueError(f"There is no {' or '.join(lacking)} model with the vocabulary of {title} to put beside it.")
    pipelines = [texts.pipeline(name) for name in names]
    same = replace(settings, z=None, walk_to=None)
    for pipeline in pipelines:
        warm_up(pipeline, same)
    frame = {
        "run": secrets.token_hex(8),
        "kind": "compare",
        "title": settings.title(),
        "left_out": texts.left_out(settings.model),
    }
    with ExitStack() as stack:
        reveals = [stack.enter_context(closing(reveal(pipeline, same))) for pipeline in pipelines]
        sides = [next(one) for one in reveals]
        while True:
            done = all(side["done"] for side in sides)
            summary = same.summary(sides[0]["total"])
            yield {**frame, "summary": summary, "sides": sides, "done": done, "verdict": verdict(sides) if done else ""}
            if done:
                return
            sides = [next(one, side) for one, side in zip(reveals, sides, strict=True)]


def warm_up(pipeline: TextPipeline, settings: TextSettings) -> None:
    """One step that is thrown away: the first pass of a network pays for setting up."""
    with closing(pipeline.steps(request_of(pipeline, settings))) as steps:
        next(steps)


def verdict(sides: Sequence[dict[str, Any]]) -> str:
    """One sentence on who computed how many tokens, from finished sides."""
    work = sorted((side["steps"][-1]["computed"], side["label"]) for side in sides)
    (least, first), (most, last) = work[0], work[-1]
    if most < 1.02 * least:
        return "All of them computed the same number of tokens."
    reason = "a masked transformer runs every position at every step" if first == KINDS["pgm"] else ""
    return f"{last} computed {most / max(least, 1):.1f} times as many tokens as {first}" + (
        f": {reason}." if reason else "."
    )
