"""The reveal of an edit: as that of a generation, with the picture's own codes there from the start; and its files."""

import io
import secrets
import zipfile
from collections.abc import Iterator
from typing import Any

from PIL import Image
from torch import Tensor

from app.downloads import MEDIA_TYPES, animation, file_name, frames, movie, png
from app.edit_form import Task
from app.limits import Limits
from app.models import ImagePipeline
from app.painter import on_page
from app.reveal import preview, unfold
from pgm.refinement import all_steps, refining_steps
from pgm_image.edits import Edit
from pgm_image.frame import Frame
from pgm_image.metadata import picture_settings
from pgm_image.model_info import ModelInfo

Session = dict[str, Any]  # "task", "value" (what the viewer shows) and "squares": per step the model's pictures as PNG


def reveal_edit(pipeline: ImagePipeline, task: Task, limits: Limits) -> Iterator[Session]:
    """Run a task and yield the growing session: first without a step, then after every step.

    The viewer shows the model's square: the picture in it at the page's size with the new cells pasted in, or, without
    compositing, what the model alone makes of it. Closing this generator closes the pipeline's.
    """
    info = pipeline.info
    edit = task.edit(info, limits)
    known = edit.known_codes(pipeline.tokenizer)  # (B, L)
    wanted = int((known < 0).sum(1).max())
    base = on_page(info, edit.picture, task.fit) if task.composite else edit.frame.place(edit.picture)
    source = on_page(info, task.picture(limits), task.fit)
    squares: list[list[bytes]] = []

    def show(codes: Tensor, final: bool) -> list[str]:
        pictures = pipeline.decode(codes)
        squares.append([_packed(picture) for picture in pictures])
        return [preview(picture, final) for picture in on_base(edit, base, pictures)]

    count = len(edit)
    value = {
        "run": secrets.token_hex(8),
        "title": task.title(),
        "summary": task.summary(edit),
        "settings": task.settings.as_dict(),
        "pictures": [
            {
                **picture_settings(edit.request, i, info.name, task.settings.class_id, task.settings.style),
                "edit": edit.record(i),
            }
            for i in range(count)
        ],
        "sampler": task.settings.sampler,
        "seeds": task.settings.seeds(),
        "grid": list(info.grid),
        "size": list(base.size),
        "total": all_steps(edit.request.sampling, wanted),
        "later": refining_steps(edit.request.sampling, wanted),
        "count": count,
        "given": {
            "cells": [(row >= 0).nonzero().flatten().tolist() for row in known],
            "codes": [row[row >= 0].tolist() for row in known],
        },
        "start": preview(base, False),
        "before": preview(source, False),
        "steps": [],
        "done": False,
    }
    yield {"task": task, "value": value, "squares": []}
    for grown in unfold(value, pipeline.steps(edit.request, known), show):
        yield {"task": task, "value": grown, "squares": list(squares)}


def on_base(edit: Edit, base: Image.Image, pictures: list[Image.Image]) -> list[Image.Image]:
    """The model's pictures as the page shows them: new cells in the picture of the page, or as they are."""
    if not edit.composite:
        return pictures
    frame = Frame(*base.size, edit.frame.side, edit.frame.grid)
    return [frame.compose(base, picture, cells) for picture, cells in zip(pictures, edit.cells, strict=True)]


def save_edit(
    info: ModelInfo, session: Session, limits: Limits, kind: str, picture: int, step: int
) -> tuple[str, str, bytes]:
    """File name, media type and content. "png" and "zip" hold the picture at its own size, the others the reveal.

    Raises ValueError when there is no such picture, step or kind.
    """
    value, task = session["value"], session["task"]
    if kind not in MEDIA_TYPES:
        raise ValueError(f"a download is one of {', '.join(MEDIA_TYPES)}, not {kind!r}")
    if not 0 <= picture < value["count"] or not 0 <= step < len(value["steps"]):
        raise ValueError("there is no such picture or step in this run")
    name = f"edited-{file_name(task.settings.of_picture(picture))}"
    if kind in ("png", "zip"):
        edit = task.edit(info, limits)
        if kind == "png":
            return f"{name}.png", MEDIA_TYPES[kind], _one_png(edit, session, picture, step)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as files:
            for one in range(value["count"]):
                title = f"edited-{file_name(task.settings.of_picture(one))}.png"
                files.writestr(title, _one_png(edit, session, one, step))
        return f"{name}-all.zip", MEDIA_TYPES[kind], buffer.getvalue()
    moving = movie if kind == "mp4" else animation
    return f"{name}-reveal.{kind}", MEDIA_TYPES[kind], moving(frames(value, picture), kind)


def result(edit: Edit, session: Session, picture: int, step: int) -> Image.Image:
    """A result at a step (0-based), at the picture's own size if composited."""
    square = Image.open(io.BytesIO(session["squares"][step][picture]))
    return edit.part(picture, picture + 1).results([square])[0]


def _one_png(edit: Edit, session: Session, picture: int, step: int) -> bytes:
    value = session["value"]
    unfinished = None if step + 1 >= value["total"] else step + 1
    return png(result(edit, session, picture, step), value["pictures"][picture], unfinished)


def _packed(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "png", compress_level=1)
    return buffer.getvalue()
