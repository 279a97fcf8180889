"""Labelled sheets of images: a grid with row and column names, and samples beside their neighbours."""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

TEXT = 11  # pixels
GAP = 3
BLOCK_ROWS = 20  # classes above each other before the next block begins at their right
BLOCK_PAIRS = 4
PAPER = (255, 255, 255)
INK = (60, 60, 60)


def enlarge(image: np.ndarray, scale: int) -> Image.Image:
    """(S, S, 3) uint8 by an integer factor, each pixel a square."""
    return Image.fromarray(image.repeat(scale, axis=0).repeat(scale, axis=1))


def fit_text(text: str, width: int, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> str:
    """`text`, shortened with a final "." until it is at most `width` pixels wide."""
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + ".") > width:
        text = text[:-1]
    return text + "."


def sample_sheet(
    rows: Sequence[Sequence[np.ndarray | None]],
    row_names: Sequence[str],
    column_names: Sequence[str],
    scale: int = 1,
) -> Image.Image:
    """A grid of images (S, S, 3) uint8, None for an empty cell; rows e.g. classes, columns styles."""
    if len(rows) != len(row_names) or any(len(row) != len(column_names) for row in rows):
        raise ValueError(f"rows must be {len(row_names)} lists of {len(column_names)} images, one per name")
    side = next(image.shape[0] for row in rows for image in row if image is not None) * scale
    font = ImageFont.load_default(TEXT)
    margin = int(max(font.getlength(name) for name in row_names)) + 2 * GAP
    head = TEXT + 2 * GAP
    width, height = margin + len(column_names) * (side + GAP), head + len(rows) * (side + GAP)
    sheet = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(sheet)
    for column, name in enumerate(column_names):
        text = fit_text(name, side, font)
        draw.text((margin + column * (side + GAP), GAP), text, fill=INK, font=font)
    for row, (name, images) in enumerate(zip(row_names, rows, strict=True)):
        y = head + row * (side + GAP)
        draw.text((GAP, y + (side - TEXT) // 2), name, fill=INK, font=font)
        for column, image in enumerate(images):
            if image is not None:
                sheet.paste(enlarge(image, scale), (margin + column * (side + GAP), y))
    return sheet


def side_by_side(sheets: Sequence[Image.Image]) -> Image.Image:
    """Sheets in a row, tops aligned."""
    joined = Image.new("RGB", (sum(sheet.width for sheet in sheets), max(sheet.height for sheet in sheets)), PAPER)
    left = 0
    for sheet in sheets:
        joined.paste(sheet, (left, 0))
        left += sheet.width
    return joined


def class_style_sheet(
    images: np.ndarray,
    class_id: np.ndarray,
    style_id: np.ndarray,
    classes: Sequence[str],
    styles: Sequence[str],
    scale: int = 1,
) -> Image.Image:
    """The first image (n, S, S, 3) of each class and style present: classes down, styles across."""
    first: dict[tuple[int, int], np.ndarray] = {}
    for image, *cell in zip(images, class_id.tolist(), style_id.tolist(), strict=True):
        first.setdefault(tuple(cell), image)
    down = sorted({cell[0] for cell in first})
    across = sorted({cell[1] for cell in first})
    column_names = [styles[column] for column in across]
    blocks = []
    for start in range(0, len(down), BLOCK_ROWS):
        block = down[start : start + BLOCK_ROWS]
        rows = [[first.get((row, column)) for column in across] for row in block]
        blocks.append(sample_sheet(rows, [classes[row] for row in block], column_names, scale))
    return side_by_side(blocks)


def pairs_sheet(
    generated: np.ndarray,
    train: np.ndarray,
    pairs: Sequence[tuple[int, int, float]],
    names: Sequence[str],
    scale: int = 2,
) -> Image.Image:
    """Generated image | nearest training image | for each pair (generated index, training index, distance).

    names: what each pair's generated image was asked to be, one per pair.
    """
    rows = [[generated[index], train[neighbour]] for index, neighbour, _ in pairs]
    row_names = [f"{name}  {distance:.2f}" for name, (_, _, distance) in zip(names, pairs, strict=True)]
    blocks = [slice(start, start + BLOCK_PAIRS) for start in range(0, len(rows), BLOCK_PAIRS)]
    columns = ["generated", "nearest in training"]
    return side_by_side([sample_sheet(rows[block], row_names[block], columns, scale) for block in blocks])
