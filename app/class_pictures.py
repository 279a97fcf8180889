"""Example pictures of a model's classes: one sheet per model, drawn by the model itself, and shown in the class menus.

The sheet lies beside the weights as classes.webp, with its plan (classes in order, columns, side) as JSON inside. It is
made anew whenever the weights are:

    python -m app.class_pictures emoji64
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

import pgm_image
from app.models import ImagePipeline, Models
from app.record import Record, record
from pgm_image import registry
from pgm_image.model_info import ModelInfo

NAME = "classes.webp"
PATH = "/class-pictures"
COLUMNS = 10
SIDE = 64  # pixels of one picture of the sheet
DESCRIPTION = 0x010E  # the EXIF tag that holds the plan


def draw_sheet(pipeline: ImagePipeline, seed: int = 0) -> Image.Image:
    """One RGB picture of every class in a grid of `COLUMNS`, all of the same seed, with the recommended settings; each
    in the first style that training saw the class in.
    """
    info = pipeline.info
    rows = -(-len(info.classes) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * SIDE, rows * SIDE), "white")
    for index, name in enumerate(info.classes):
        seen = [style for k, style in enumerate(info.styles) if (index, k) not in {tuple(pair) for pair in info.unseen}]
        *_, step = pipeline.steps(pipeline.request(name, style=seen[0] if seen else None, seed=seed))
        [picture] = pipeline.decode(step.codes)
        place = (index % COLUMNS * SIDE, index // COLUMNS * SIDE)
        sheet.paste(picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.LANCZOS), place)
    return sheet


def save_sheet(sheet: Image.Image, classes: Sequence[str], path: Path) -> None:
    """Write a sheet with its plan inside."""
    exif = Image.Exif()
    exif[DESCRIPTION] = json.dumps({"classes": list(classes), "columns": COLUMNS, "side": SIDE})
    sheet.save(path, "webp", quality=80, method=6, exif=exif)


def sheet_of(info: ModelInfo) -> Path | None:
    """The sheet of a bundled model; None when there is none or it is of other classes."""
    path = registry.ASSETS / info.name / NAME
    try:
        with Image.open(path) as sheet:
            plan = json.loads(sheet.getexif().get(DESCRIPTION, "null"))
    except (OSError, ValueError):
        return None
    known = {"classes": list(info.classes), "columns": COLUMNS, "side": SIDE}
    return path if plan == known else None


def sheets_of(models: Models) -> dict[str, Path]:
    """The sheets there are, by the name of their model."""
    found = {name: sheet_of(models.info(name)) for name in models.names()}
    return {name: path for name, path in found.items() if path}


def class_pictures(models: Models, sheets: Mapping[str, Path]) -> Record:
    """Puts the pictures into the class menus; it shows nothing of its own."""
    return record(
        None,
        ("class_pictures.js",),
        "mountClassPictures(props)",
        "class-pictures",
        model=models.names()[0],
        sheets={
            name: {"address": f"{PATH[1:]}/{name}", "classes": models.info(name).classes, "columns": COLUMNS}
            for name in sheets
        },
    )


def class_pictures_route(sheets: Mapping[str, Path]) -> Route:
    """The route that serves the sheets, for the server that the page is launched on."""

    async def sheet(request: Request) -> Response:
        path = sheets.get(request.path_params["model"])
        if path is None:
            return Response(status_code=404)
        return FileResponse(path, media_type="image/webp", headers={"Cache-Control": "no-cache"})

    return Route(f"{PATH}/{{model}}", sheet, methods=["GET"])


def main(arguments: Sequence[str] | None = None) -> Any:
    """Draw and save the sheet of a bundled model."""
    parser = argparse.ArgumentParser("python -m app.class_pictures", description=main.__doc__)
    parser.add_argument("model", nargs="?", default=registry.DEFAULT_MODEL, help="name of a bundled model")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    try:
        pipeline = pgm_image.PGMPipeline.from_pretrained(chosen.model)
        path = registry.find_folder(chosen.model) / NAME
    except ValueError as fault:
        parser.error(str(fault))
    save_sheet(draw_sheet(pipeline, chosen.seed), pipeline.info.classes, path)
    print(f"{path}: {len(pipeline.info.classes)} classes, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
