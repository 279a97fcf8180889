"""Editing as generation with some codes given: repaint a region, vary a share of the codes, fill what a move left open.

An `Edit` is checked against a model's index only, so a bad argument is reported before any weight is read. The codes of
cells that stay are the tokenizer's; the others are generated around them by the loop that generates whole pictures.
What is left out is the model's recommended setting for edits, or, where every cell is open, for whole pictures.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from pgm.arguments import one_of, plain
from pgm.noise import fold_seed
from pgm.sampling import Step
from pgm_image.frame import FITS, PAPER, Fit, Frame
from pgm_image.masks import read_mask
from pgm_image.model_info import ModelInfo
from pgm_image.request import Request, make_request
from tokenizer.image_files import open_upright, to_rgb, upright
from tokenizer.pixels import from_pil

STREAM = 0x65646974  # keeps the choice of cells apart from the other draws of a seed


@dataclass(frozen=True, eq=False)
class Edit:
    """A checked edit: the picture, where it lies before the model, and the cells to be generated per result."""

    picture: Image.Image  # upright, RGB or, with transparency, RGBA
    frame: Frame
    cells: np.ndarray  # (B, rows, columns) bool, True = generate anew
    request: Request  # labels, seeds and sampling of B pictures
    composite: bool = True
    kind: str = "repaint"

    def __len__(self) -> int:
        return len(self.request)

    def part(self, start: int, stop: int) -> "Edit":
        """The edit for results start..stop-1; each of them comes out as in the whole."""
        return replace(self, cells=self.cells[start:stop], request=self.request.part(start, stop))

    def known_codes(self, tokenizer: Any) -> Tensor:
        """(B, L) int64: the picture's codes, -1 in cells that are to be generated."""
        codes = tokenizer.encode(from_pil(self.frame.place(self.picture))[None]).cpu().flatten()  # (L,)
        open_cells = torch.tensor(self.cells.reshape(len(self), -1))  # (B, L)
        return torch.where(open_cells, -1, codes)

    def steps(self, pipeline: Any) -> Iterator[Step]:
        """Run it, step by step; closing the generator ends the work. pipeline: as `PGMPipeline`."""
        return pipeline.steps(self.request, self.known_codes(pipeline.tokenizer))

    def results(self, squares: list[Image.Image]) -> list[Image.Image]:
        """Decoded squares, one per result -> pictures as asked for.

        composite: the picture at its own size, with the generated cells enlarged into it and every other pixel as it
        was; else the squares themselves, as the model sees them.
        """
        if not self.composite:
            return list(squares)
        pairs = zip(squares, self.cells, strict=True)
        return [self.frame.compose(self.picture, square, cells) for square, cells in pairs]

    def record(self, index: int) -> dict[str, Any]:
        """What a PNG of result `index` says about the edit."""
        cells = self.cells[index]
        return {"kind": self.kind, "cells": int(cells.sum()), "of": cells.size, "fit": self.frame.fit}


def repaint(
    info: ModelInfo,
    image: Any,
    mask: Any,
    class_id: Any = None,
    *,
    invert: bool = False,
    fit: Fit = "whole",
    composite: bool = True,
    **arguments: Any,
) -> Edit:
    """Generate anew what is painted. mask: see `masks.read_mask`; invert: what is painted stays instead.

    A code is generated when the brush touches its cell. Other arguments: `make_request`.
    """
    ask = partial(make_request, class_id=class_id, **arguments)
    ask(info)  # what is wrong with the arguments is said before the picture is read
    picture, frame = _framed(info, image, fit)
    painted = read_mask(mask, frame.width, frame.height)
    if invert:
        painted = ~painted
    cells = frame.touched(painted)
    if painted.any() and not cells.any():
        raise ValueError("mask paints only outside of the central square; use fit='whole' to edit the whole picture")
    return _edit(info, ask, picture, frame, cells, composite, "repaint")


def variations(
    info: ModelInfo,
    image: Any,
    strength: Any = 0.5,
    class_id: Any = None,
    *,
    num_images: Any = 4,
    fit: Fit = "whole",
    composite: bool = False,
    **arguments: Any,
) -> Edit:
    """Generate a share of the codes anew, chosen by each result's seed.

    strength: 0 (the picture as the tokenizer sees it) to 1 (a plain generation); exactly round(strength * L) codes. The
    cells of a weaker variation are among those of a stronger one with the same seed.
    """
    ask = partial(make_request, class_id=class_id, num_images=num_images, **arguments)
    request = ask(info)
    share = plain(strength)
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
        raise ValueError(f"strength must be a number in 0..1, got {strength!r}")
    picture, frame = _framed(info, image, fit)
    count = round(share * info.length)
    cells = np.zeros((len(request), info.length), dtype=bool)
    for row, seed in zip(cells, request.seeds, strict=True):
        order = torch.randperm(info.length, generator=torch.Generator().manual_seed(fold_seed(seed) ^ STREAM))
        row[order[:count]] = True
    return _edit(info, ask, picture, frame, cells.reshape(-1, *info.grid), composite, "variation")


def outpaint(
    info: ModelInfo,
    image: Any,
    shift: Any = (0.0, 0.0),
    scale: Any = 1.0,
    class_id: Any = None,
    *,
    fit: Fit = "whole",
    composite: bool = True,
    **arguments: Any,
) -> Edit:
    """Move or shrink the picture inside its own size and generate what that leaves open.

    shift: (right, down) as shares of width and height, each above -1 and below 1; scale: above 0 up to 1, about the
    centre, before the shift. Cells that the moved picture covers only in part are generated as well.
    """
    ask = partial(make_request, class_id=class_id, **arguments)
    ask(info)  # what is wrong with the arguments is said before the picture is read
    right, down, scale = _move(shift, scale)
    picture, frame = _framed(info, image, fit)
    moved, opened = _moved(picture, right, down, scale)
    if opened.all():
        raise ValueError(f"shift {right:g}, {down:g} with scale {scale:g} moves the picture out of sight")
    return _edit(info, ask, moved, frame, frame.touched(opened), composite, "outpaint")


def edit_cells(
    info: ModelInfo,
    image: Any,
    cells: Any,
    class_id: Any = None,
    *,
    invert: bool = False,
    fit: Fit = "whole",
    composite: bool = True,
    **arguments: Any,
) -> Edit:
    """As `repaint`, for cells (row-major numbers) of the grid itself; those that show only margin do not count."""
    ask = partial(make_request, class_id=class_id, **arguments)
    ask(info)  # what is wrong with the arguments is said before the picture is read
    chosen = np.zeros(info.length, dtype=bool)
    for cell in cells:
        if isinstance(cell, bool) or not isinstance(cell, int) or not 0 <= cell < info.length:
            raise ValueError(f"cells must be numbers in 0..{info.length - 1}, got {cell!r}")
        chosen[cell] = True
    picture, frame = _framed(info, image, fit)
    shown = frame.shown()
    chosen = shown & (chosen.reshape(info.grid) ^ bool(invert))
    if (chosen == shown).all():  # a mask painted all over takes the margins with it
        chosen = np.ones_like(shown)
    return _edit(info, ask, picture, frame, chosen, composite, "repaint")


def read_image(image: Any) -> Image.Image:
    """A Pillow picture, a file or its bytes, or an (H, W, 3 or 4) uint8 array -> upright RGB, RGBA if transparent."""
    if isinstance(image, (str, bytes)) or hasattr(image, "__fspath__"):
        picture = open_upright(image)
    elif isinstance(image, Image.Image):
        picture = upright(image)
    elif hasattr(image, "shape"):
        pixels = image.detach().cpu().numpy() if hasattr(image, "detach") else np.asarray(image)
        if pixels.ndim != 3 or pixels.shape[2] not in (3, 4) or pixels.dtype != np.uint8 or not pixels.size:
            raise ValueError(f"image must be (H, W, 3) of uint8, got {tuple(pixels.shape)} of {pixels.dtype}")
        picture = Image.fromarray(pixels)
    else:
        raise ValueError(f"image must be a picture, a file or an array, got {type(image).__name__}")
    if picture.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in picture.info:
        return picture.convert("RGBA")
    return to_rgb(picture)


def _framed(info: ModelInfo, image: Any, fit: Fit) -> tuple[Image.Image, Frame]:
    fit = one_of("fit", fit, FITS)
    picture = read_image(image)
    return picture, Frame(*picture.size, info.image_size, info.grid, fit)


def _edit(
    info: ModelInfo,
    ask: Callable[[ModelInfo], Request],
    picture: Image.Image,
    frame: Frame,
    cells: np.ndarray,
    composite: bool,
    kind: str,
) -> Edit:
    """cells: (rows, columns) for all results alike, or (B, rows, columns)."""
    request = ask(info if cells.all() else info.for_editing())  # with nothing given it is a plain generation
    return Edit(picture, frame, np.broadcast_to(cells, (len(request), *frame.grid)), request, bool(composite), kind)


def _move(shift: Any, scale: Any) -> tuple[float, float, float]:
    try:
        right, down = (float(part) for part in shift)
        scale = float(scale)
    except (TypeError, ValueError) as error:
        raise ValueError(f"shift must be two numbers and scale one, got shift={shift!r} and scale={scale!r}") from error
    if not (abs(right) < 1 and abs(down) < 1):
        raise ValueError(f"shift must be above -1 and below 1 in both directions, got {shift!r}")
    if not 0 < scale <= 1:
        raise ValueError(f"scale must be above 0 and at most 1, got {scale!r}")
    return right, down, scale


def _moved(picture: Image.Image, right: float, down: float, scale: float) -> tuple[Image.Image, np.ndarray]:
    """The picture shrunk and shifted on white, and the pixels (H, W) it left open."""
    width, height = picture.size
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    left = (width - size[0]) // 2 + round(right * width)
    top = (height - size[1]) // 2 + round(down * height)
    canvas = Image.new(picture.mode, picture.size, PAPER if picture.mode == "RGB" else (*PAPER, 255))
    canvas.paste(picture.resize(size, Image.LANCZOS), (left, top))
    opened = np.ones((height, width), dtype=bool)
    opened[max(top, 0) : max(top + size[1], 0), max(left, 0) : max(left + size[0], 0)] = False
    return canvas, opened
