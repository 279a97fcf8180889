"""From steps to what the browser keeps of texts that come in: per step and text the cells taken back, the new cells and
what they hold.

A cell is one token. The value is plain JSON and only ever grows, so Gradio sends the new step alone. The same value,
kept for the visitor's session, is what downloads are made from: no second pass through a network.
"""

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from app.reveal import taken_back
from app.text_models import KINDS, TextPipeline
from app.text_settings import TextSettings, latent_words, request_of
from pgm.refinement import all_steps, refining_steps
from pgm_text.prompt import WITHIN, Layout
from pgm_text.tokenizer import Tokenizer

UNKNOWN = "____"  # for a run of unknown cells; put into the prompt it is a blank again
LONGEST_CHARACTER = 4  # bytes of UTF-8, so tokens that one character can be spread over
BROKEN = "\ufffd"


def reveal_one(pipeline: TextPipeline, settings: TextSettings) -> Iterator[dict[str, Any]]:
    """The growing value of the viewer for one model: {run, kind, title, summary, sides: [side], done}, see `reveal`."""
    latent = bool(pipeline.info.latent_width)
    frame = {
        "run": secrets.token_hex(8),
        "kind": "one",
        "title": settings.title(),
        "left_out": "",
        "verdict": "",
    }
    with closing(reveal(pipeline, settings)) as values:
        for side in values:
            summary = f"{settings.summary(side['total'] - side['later'], latent)} · {pipeline.info.title}"
            yield {**frame, "summary": summary, "sides": [side], "done": side["done"]}


def reveal(pipeline: TextPipeline, settings: TextSettings) -> Iterator[dict[str, Any]]:
    """Run checked `settings` and yield one side of the viewer: first without a step, then after every step.

    A side is {label, model, ends, latent, settings, count, seeds, labels, z, cells, given, total, later, steps, done}.
    given and the pieces of a step are [cell, piece] with None as the piece of an end-of-text token; later: steps of
    second looks in total; a step is {round, taken_back, filled, pieces and texts per text, known per text, computed,
    masked, seconds}. Closing this closes the pipeline's generator.
    """
    info = pipeline.info
    request = request_of(pipeline, settings)
    layout = request.layout
    memo: dict[int, str | None] = {}
    wanted = sum(token < 0 for token in layout.ids)
    start = pieces_of(pipeline.tokenizer, layout.ids, memo)
    side = {
        "label": KINDS.get(info.architecture, info.title),
        "model": info.title,
        "ends": info.layout == "entries",
        "latent": bool(info.latent_width),
        "settings": {**settings.as_dict(), "model": info.name},
        "count": len(request),
        "seeds": list(request.seeds),
        "labels": settings.labels(),
        "z": [latent_words(latent) for latent in settings.latents()] if info.latent_width else [],
        "cells": len(layout),
        "given": [[cell, piece] for cell, piece in enumerate(start) if layout.ids[cell] >= 0],
        "total": max(all_steps(request.sampling, wanted), 1),
        "later": refining_steps(request.sampling, wanted),
        "steps": [],
        "done": False,
    }
    yield side
    before, last = [start] * len(request), None
    elsewhere = 0.0
    with closing(pipeline.steps(request)) as steps:
        for step in steps:
            left = time.perf_counter()
            rows = step.codes.cpu().tolist()
            now = [pieces_of(pipeline.tokenizer, row, memo) for row in rows]
            record = {
                "round": step.round,
                "taken_back": taken_back(step, last),
                "filled": [row.nonzero().flatten().tolist() for row in step.filled.cpu()],
                "pieces": [_changes(*pair) for pair in zip(before, now, strict=True)],
                "texts": [text_so_far(row, held, layout, side["ends"]) for row, held in zip(rows, now, strict=True)],
                "known": step.known.sum(1).tolist(),
                "computed": int(step.computed),
                "masked": int(step.computed_masked),
                "seconds": round(max(step.seconds - elsewhere, 0.0), 4),
            }
            before, last = now, step
            done = step.index + 1 >= step.total
            side = {**side, "total": max(step.total, 1), "steps": [*side["steps"], record], "done": done}
            yield side
            elsewhere += time.perf_counter() - left


def pieces_of(tokenizer: Tokenizer, ids: Sequence[int], memo: dict[int, str | None]) -> list[str | None]:
    """What each cell shows: ids (L,), -1 = unknown -> L strings, "" where unknown, None for an end of text.

    Tokens that make up a character together show it in the first of their cells. memo: pieces of single tokens, kept
    between calls.
    """
    for token in {*ids} - memo.keys():
        end = token == tokenizer.eos_id
        memo[token] = None if end else "" if token in (-1, tokenizer.mask_id) else tokenizer.pieces([token])[0]
    pieces = [memo[token] for token in ids]
    cell = 0
    while cell < len(ids):
        if pieces[cell] and BROKEN in pieces[cell]:
            for count in range(2, LONGEST_CHARACTER + 1):
                part = ids[cell : cell + count]
                if len(part) < count or not all(memo[token] for token in part):
                    break
                whole = tokenizer.decode(part, stop_at_end=False)
                if BROKEN not in whole:
                    pieces[cell : cell + count] = [whole] + [""] * (count - 1)
                    cell += count - 1
                    break
        cell += 1
    return pieces


def text_so_far(ids: Sequence[int], pieces: Sequence[str | None], layout: Layout, ends: bool) -> str:
    """A text with `____` for every run of unknown cells, up to its first end where texts end."""
    parts: list[str] = []
    unknown = False
    for cell, (token, piece) in enumerate(zip(ids, pieces, strict=True)):
        if piece is None:
            if ends:
                break
            continue
        if token >= 0:
            parts.append(piece)
        elif not unknown:
            attached = layout.constraints[cell] == WITHIN and (cell == 0 or layout.ids[cell - 1] >= 0)
            apart = not attached and parts and not parts[-1][-1:].isspace()
            parts.append(f" {UNKNOWN}" if apart else UNKNOWN)
        unknown = token < 0
    return "".join(parts)


def rate(side: dict[str, Any], step: int) -> float:
    """Tokens generated per second up to a step, all texts of a side together; 0 if no time has passed."""
    record = side["steps"][step]
    made = sum(record["known"]) - side["count"] * len(side["given"])
    return made / record["seconds"] if record["seconds"] > 0 else 0.0


def _changes(before: Sequence[str | None], now: Sequence[str | None]) -> list[list[Any]]:
    pairs = enumerate(zip(before, now, strict=True))
    return [[cell, new] for cell, (old, new) in pairs if new != old]
