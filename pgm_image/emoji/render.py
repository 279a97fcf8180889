"""From one vendor file (SVG text or WebP bytes) to a square RGB picture on white."""

import io

import numpy as np
from PIL import Image

OVERSAMPLING = 2  # SVG is drawn larger and scaled down with Lanczos, which keeps thin strokes


def render(data: str | bytes, size: int) -> np.ndarray:
    """Draw an SVG document, or read a picture file, as (size, size, 3) uint8 RGB on white.

    Raises:
        ValueError: if an SVG cannot be drawn.
        PIL.UnidentifiedImageError: if the bytes are no picture.
        ModuleNotFoundError: if an SVG is given and resvg-py is not installed.
    """
    picture = _draw_svg(data, OVERSAMPLING * size) if isinstance(data, str) else Image.open(io.BytesIO(data))
    return np.asarray(fit_square(on_white(picture), size))


def _draw_svg(document: str, width: int) -> Image.Image:
    try:
        from resvg_py import svg_to_bytes
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("drawing SVG needs resvg-py: pip install resvg-py") from error
    # no fonts: emoji are outlines, and the result must not depend on the machine's fonts
    png = svg_to_bytes(svg_string=document, width=width, skip_system_fonts=True)
    return Image.open(io.BytesIO(bytes(png)))


def on_white(picture: Image.Image) -> Image.Image:
    """Composite a picture with transparency on white; RGB of the same size."""
    rgba = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba).convert("RGB")


def fit_square(picture: Image.Image, size: int) -> Image.Image:
    """Pad an RGB picture with white to a centred square, then scale it to (size, size)."""
    side = max(picture.size)
    if picture.size != (side, side):
        square = Image.new("RGB", (side, side), "white")
        square.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2))
        picture = square
    return picture if side == size else picture.resize((size, size), Image.Resampling.LANCZOS)
