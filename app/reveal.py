"""From steps to what the browser keeps of a reveal: per step and picture the cells taken back, the new cells, their
codes and a preview.

The value is plain JSON and only ever grows, so Gradio sends the new step alone. The same value, kept for the visitor's
session, is what downloads are made from: no second pass through a network.
"""

import base64
import io
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any

from PIL import Image
from torch import Tensor

from app.models import ImagePipeline
from app.settings import Settings
from pgm.refinement import all_steps, refining_steps
from pgm.sampling import Step
from pgm_image.metadata import picture_settings

LOSSLESS_UP_TO = 128  # pixels; art of this size is upscaled on the page, where every artefact would show


def reveal(pipeline: ImagePipeline, settings: Settings) -> Iterator[dict[str, Any]]:
    """Run `settings` and yield the growing value of the viewer: first without a step, then after every step.

    Closing this generator closes the pipeline's. `seconds` leave out the time that previews and sending take.
    """
    info = pipeline.info
    rows, columns = info.grid
    request = pipeline.request(**settings.arguments())
    value = {
        "run": secrets.token_hex(8),
        "title": settings.title(),
        "summary": settings.summary(),
        "settings": settings.as_dict(),
        "pictures": [
            picture_settings(request, i, info.name, settings.class_id, settings.style) for i in range(len(request))
        ],
        "links": [settings.of_picture(i).query() for i in range(settings.num_images)],
        "sampler": settings.sampler,
        "seeds": settings.seeds(),
        "grid": [rows, columns],
        "size": [info.image_size, info.image_size],
        "total": all_steps(request.sampling, info.length),
        "later": refining_steps(request.sampling, info.length),
        "count": settings.num_images,
        "steps": [],
        "done": False,
    }
    yield value
    yield from unfold(
        value,
        pipeline.steps(request),
        lambda codes, final: [preview(picture, final) for picture in pipeline.decode(codes)],
    )


def unfold(
    value: dict[str, Any], steps: Iterator[Step], show: Callable[[Tensor, bool], list[str]]
) -> Iterator[dict[str, Any]]:
    """The value grown by one record per step. show: codes (B, L) and whether they are final -> B previews."""
    elsewhere, before = 0.0, None
    try:
        for step in steps:
            left = time.perf_counter()
            final = step.index + 1 >= step.total
            record = {
                "round": step.round,
                **cells(step, before),
                "previews": show(step.codes.cpu(), final),
                "known": int(step.known[0].sum()),
                "computed": int(step.computed),
                "masked": int(step.computed_masked),
                "seconds": round(max(step.seconds - elsewhere, 0.0), 3),
            }
            value = {**value, "total": step.total, "steps": [*value["steps"], record], "done": final}
            yield value
            before = step
            elsewhere += time.perf_counter() - left
    finally:
        steps.close()


def cells(step: Step, before: Step | None) -> dict[str, list[list[int]]]:
    """Per picture: known cells whose codes were taken back since the step before, new cells, and the codes of these."""
    new = [row.nonzero().flatten() for row in step.filled.cpu()]
    return {
        "taken_back": taken_back(step, before),
        "filled": [where.tolist() for where in new],
        "codes": [row[where].tolist() for row, where in zip(step.codes.cpu(), new, strict=True)],
    }


def taken_back(step: Step, before: Step | None) -> list[list[int]]:
    """Per picture the cells known at the step before whose codes were taken back, drawn anew at this step or not."""
    if before is None or before.round == step.round:
        return [[] for _ in step.codes]
    again = before.known & (step.filled | ~step.known)
    return [row.nonzero().flatten().tolist() for row in again.cpu()]


def preview(picture: Image.Image, exact: bool) -> str:
    """A WebP data URL; without loss for small pictures and where the picture is final (`exact`)."""
    lossless = exact or max(picture.size) <= LOSSLESS_UP_TO
    buffer = io.BytesIO()
    picture.save(buffer, "webp", lossless=lossless, exact=lossless, quality=90 if not lossless else 40, method=2)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()


def picture_at(value: dict[str, Any], step: int, picture: int) -> Image.Image:
    """The RGB picture the browser shows at a step of a reveal."""
    return decoded(value["steps"][step]["previews"][picture])


def decoded(data_url: str) -> Image.Image:
    """The RGB picture of a preview."""
    _, _, data = data_url.partition(",")
    return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")
