"""The painter of the edit tab as a Gradio component: a picture on which a visitor marks cells, drawn by painter.js."""

import secrets
from typing import Any

from PIL import Image

from app.record import Record, record
from app.reveal import preview
from pgm_image.frame import Frame
from pgm_image.model_info import ModelInfo

LARGEST = 512  # pixels of the square on the page; a picture that is smaller is shown as it is


def painter(channel: str, grid: tuple[int, int], size: tuple[int, int], strength: float, empty: str) -> Record:
    """A stage to paint on; its value comes from `canvas`, what is painted is read by `pgm.painters[channel]`.

    channel names the tab, whose columns are `#<channel>-stage` and `#<channel>-studio`; `empty` says what to do first.
    """
    return record(
        "painter",
        ("cells.js", "painter.js"),
        "mountPainter(element, props, watch)",
        f"{channel}-painter",
        channel=channel,
        grid=list(grid),
        size=list(size),
        strength=strength,
        empty=empty,
    )


def canvas(info: ModelInfo, picture: Image.Image, fit: str, cells: list[int] | None = None) -> dict[str, Any]:
    """Value of the painter that shows a picture (RGB or RGBA) in the model's square, with `cells` painted already."""
    frame = Frame(*picture.size, info.image_size, info.grid, fit)
    x, y = frame.across, frame.down
    square = on_page(info, picture, fit)
    return {
        "token": secrets.token_hex(8),
        "picture": preview(square, False),
        "size": list(square.size),
        "grid": list(info.grid),
        "box": [edge / info.image_size for edge in (x.low, y.low, x.high, y.high)],
        "cells": cells or [],
    }


def on_page(info: ModelInfo, picture: Image.Image, fit: str) -> Image.Image:
    """The picture in a square of a whole multiple of the model's size, as sharp as the page has use for."""
    edge = max(picture.size) if fit == "whole" else min(picture.size)
    times = min(-(-edge // info.image_size), max(LARGEST // info.image_size, 1))
    side = info.image_size * times
    return Frame(*picture.size, side, info.grid, fit).place(picture)
