"""Pictures in a labelled grid, as one picture to keep or to print."""

from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

INK, QUIET, PAPER = (29, 30, 34), (98, 101, 109), (255, 255, 255)
GAP, LEFT, TOP, LINE = 16, 104, 104, 28  # pixels: between cells, room for row and column labels, for a caption
EDGE = 24


def labelled(
    title: str,
    summary: str,
    columns: Sequence[str],
    rows: Sequence[str],
    cells: Sequence[tuple[int, int, Image.Image, str]],
    size: int,
    smallest: int = 128,
) -> Image.Image:
    """An RGB sheet. cells: (row, column, picture, caption); size: pixels of a picture's side, enlarged by a whole
    factor to at least `smallest`.
    """
    side = size * max(1, -(-smallest // size))
    left = LEFT if any(rows) else EDGE
    bold, plain, small = (ImageFont.load_default(height) for height in (20, 16, 13))
    needed = max(round(bold.getlength(title)), round(small.getlength(summary))) + 2 * EDGE
    width = max(left + len(columns) * (side + GAP) - GAP + EDGE, needed)
    page = Image.new("RGB", (width, TOP + len(rows) * (side + LINE + GAP) - GAP + EDGE), PAPER)
    pen = ImageDraw.Draw(page)
    pen.text((EDGE, 20), title, INK, bold)
    pen.text((EDGE, 46), summary, QUIET, small)
    for column, label in enumerate(columns):
        pen.text((left + column * (side + GAP), TOP - 10), label, INK, plain, anchor="ls")
    for row, label in enumerate(rows):
        pen.text((left - 16, TOP + row * (side + LINE + GAP) + side / 2), label, INK, plain, anchor="rm")
    for row, column, picture, caption in cells:
        x, y = left + column * (side + GAP), TOP + row * (side + LINE + GAP)
        page.paste(picture.resize((side, side), Image.NEAREST), (x, y))
        pen.text((x, y + side + 8), caption, QUIET, small)
    return page
