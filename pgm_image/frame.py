"""Where a picture of any size lies in the square that a model sees, and which of its pixels belong to which code.

Every pixel belongs to the cell its centre falls into, so changing a cell changes that cell's pixels and no others.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from PIL import Image

from tokenizer.image_files import to_rgb

Fit = Literal["whole", "crop"]
FITS: tuple[Fit, ...] = ("whole", "crop")
PAPER = (255, 255, 255)


@dataclass(frozen=True)
class Axis:
    """One direction: picture pixels start..stop are shown at low..high of the square."""

    length: int  # of the picture
    start: int
    stop: int
    low: int
    high: int


@dataclass(frozen=True)
class Frame:
    """A picture in the square: all of it, centred on white (fit "whole"), or its central square ("crop")."""

    width: int  # of the picture, pixels
    height: int
    side: int  # of the square, pixels
    grid: tuple[int, int]  # rows, columns of codes
    fit: Fit = "whole"

    @property
    def across(self) -> Axis:
        """The horizontal direction."""
        return _axis(self.width, self.height, self.side, self.fit)

    @property
    def down(self) -> Axis:
        """The vertical direction."""
        return _axis(self.height, self.width, self.side, self.fit)

    def place(self, picture: Image.Image) -> Image.Image:
        """The picture, of this frame's size and any mode -> the RGB square, white where there is none (Lanczos)."""
        x, y = self.across, self.down
        shown = to_rgb(picture).crop((x.start, y.start, x.stop, y.stop))
        square = Image.new("RGB", (self.side, self.side), PAPER)
        square.paste(shown.resize((x.high - x.low, y.high - y.low), Image.LANCZOS), (x.low, y.low))
        return square

    def touched(self, mask: np.ndarray) -> np.ndarray:
        """mask: (H, W) bool, of the picture's size or its aspect -> (rows, columns) bool, cells with a painted pixel.

        A mask that is painted all over touches the white margins too.
        """
        rows, columns = self.grid
        if mask.all():
            return np.ones(self.grid, dtype=bool)
        height, width = mask.shape
        by_column = np.stack([mask[:, a:b].any(1) for a, b in _looks(self.across, columns, self.side, width)], 1)
        return np.stack([by_column[a:b].any(0) for a, b in _looks(self.down, rows, self.side, height)])

    def shown(self) -> np.ndarray:
        """(rows, columns) bool: cells that show some of the picture, not only margin."""
        rows, columns = self.grid
        down = [a < b for a, b in _looks(self.down, rows, self.side, self.height)]
        across = [a < b for a, b in _looks(self.across, columns, self.side, self.width)]
        return np.array(down)[:, None] & np.array(across)[None]

    def pixels(self, cells: np.ndarray) -> np.ndarray:
        """cells: (rows, columns) bool -> (height, width) bool, the picture's pixels that belong to them."""
        rows, columns = self.grid
        down, across = (_owners(axis, count, self.side) for axis, count in ((self.down, rows), (self.across, columns)))
        chosen = cells[down[:, None], across[None]]  # -1 reads the last cell; those pixels are hidden and taken out
        return chosen & (down >= 0)[:, None] & (across >= 0)[None]

    def compose(self, picture: Image.Image, square: Image.Image, cells: np.ndarray) -> Image.Image:
        """The picture (RGB or RGBA) with `cells` (rows, columns) from the square, enlarged; all else untouched."""
        x, y = self.across, self.down
        scale = square.width / self.side
        box = (x.low * scale, y.low * scale, x.high * scale, y.high * scale)
        patch = square.resize((x.stop - x.start, y.stop - y.start), Image.LANCZOS, box=box).convert(picture.mode)
        where = self.pixels(cells)[y.start : y.stop, x.start : x.stop]
        result = picture.copy()
        result.paste(patch, (x.start, y.start), Image.fromarray(where.astype(np.uint8) * 255))
        return result


def _axis(length: int, other: int, side: int, fit: Fit) -> Axis:
    if fit == "crop":
        edge = min(length, other)
        start = (length - edge) // 2
        return Axis(length, start, start + edge, 0, side)
    size = max(1, round(length * side / max(length, other)))
    low = (side - size) // 2
    return Axis(length, 0, length, low, low + size)


def _edges(axis: Axis, count: int, side: int, length: int) -> list[Fraction]:
    """count + 1 borders of the cells along an axis, in pixels of a raster with `length` pixels; exact."""
    edges = []
    for k in range(count + 1):
        place = min(max(Fraction(k * side, count), Fraction(axis.low)), Fraction(axis.high))
        pixel = axis.start + (place - axis.low) * (axis.stop - axis.start) / (axis.high - axis.low)
        edges.append(pixel * length / axis.length)
    return edges


def _looks(axis: Axis, count: int, side: int, length: int) -> list[tuple[int, int]]:
    """Per cell the pixels to look at: those with their centre in it, or the one below its centre if they are larger."""
    half = Fraction(1, 2)
    edges = _edges(axis, count, side, length)
    looks = []
    for low, high in zip(edges, edges[1:], strict=False):
        first, last = math.ceil(low - half), math.ceil(high - half)
        if first >= last and low < high:
            first = min(math.floor((low + high) / 2), length - 1)
            last = first + 1
        looks.append((first, last))
    return looks


def _owners(axis: Axis, count: int, side: int) -> np.ndarray:
    """(length,) the cell each pixel of the picture belongs to, -1 where the frame does not show it."""
    half = Fraction(1, 2)
    edges = [math.ceil(edge - half) for edge in _edges(axis, count, side, axis.length)]
    owners = np.full(axis.length, -1)
    for cell, (first, last) in enumerate(zip(edges, edges[1:], strict=False)):
        owners[first:last] = cell
    return owners
