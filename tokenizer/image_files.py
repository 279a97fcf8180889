"""Picture files of any origin -> upright RGB pictures, or one sentence saying why not.

Sizes are checked from the header before a pixel is decoded; only raster formats are accepted.
"""

import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from os import PathLike
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

FORMATS = ("PNG", "JPEG", "MPO", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF")
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".avif")
MAX_PIXELS = 64_000_000  # width x height of the largest accepted picture
BACKGROUND = (255, 255, 255)  # what transparent areas are composited on
# What Pillow raises for damaged files of one format or another.
_DAMAGED = (OSError, SyntaxError, ValueError, EOFError, KeyError, IndexError, TypeError, struct.error, zlib.error)


def open_picture(source: str | PathLike | bytes, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """A file or its bytes -> an upright RGB picture; the first frame of an animation.

    Raises ValueError (one sentence) for a missing, empty, damaged, oversized or unsupported file.
    """
    return _open(source, max_pixels, to_rgb)


def open_upright(source: str | PathLike | bytes, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """As `open_picture`, but in the file's own mode, with its transparency."""
    return _open(source, max_pixels, upright)


def _open(source: str | PathLike | bytes, max_pixels: int, finish: Callable[[Image.Image], Image.Image]) -> Image.Image:
    name = "the picture" if isinstance(source, bytes) else f"{Path(source).name!r}"
    if not isinstance(source, bytes):
        try:
            source = Path(source).read_bytes()
        except OSError as error:
            raise ValueError(f"{name} cannot be read: {error.strerror}") from error
    if not source:
        raise ValueError(f"{name} is an empty file")
    if source[:256].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        raise ValueError(f"{name} is SVG, HTML or XML, not one of {', '.join(FORMATS)}")
    Image.init()  # registers the formats this build of Pillow has; AVIF may be missing
    try:
        picture = Image.open(BytesIO(source), formats=[form for form in FORMATS if form in Image.OPEN])
    except Image.DecompressionBombError as error:
        raise ValueError(f"{name} is larger than {max_pixels} pixels") from error
    except UnidentifiedImageError as error:
        raise ValueError(f"{name} is not a picture in one of {', '.join(FORMATS)}") from error
    except _DAMAGED as error:
        raise ValueError(f"{name} is damaged: {error}") from error
    width, height = picture.size
    if width * height > max_pixels:
        raise ValueError(f"{name} has {width} x {height} pixels; at most {max_pixels} are accepted")
    try:
        return finish(picture)
    except (Image.DecompressionBombError, *_DAMAGED) as error:
        raise ValueError(f"{name} is damaged or truncated: {error}") from error


def to_rgb(picture: Image.Image) -> Image.Image:
    """Any Pillow picture -> upright RGB of 8 bits: EXIF orientation applied, transparency composited on white.

    16-bit values are divided by 257. Mode I holds 8- or 16-bit values by its maximum; mode F also 0..1.
    """
    picture = upright(picture)
    if picture.mode.startswith(("I", "F")):
        return Image.fromarray(_to_8_bits(np.asarray(picture), picture.mode)).convert("RGB")
    if picture.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        paper = Image.new("RGBA", layer.size, (*BACKGROUND, 255))
        return Image.alpha_composite(paper, layer).convert("RGB")
    return picture.convert("RGB")


def upright(picture: Image.Image) -> Image.Image:
    """The picture turned as its EXIF orientation says, mode kept."""
    picture.load()
    try:
        return ImageOps.exif_transpose(picture)
    except _DAMAGED:  # broken metadata must not cost a sound picture
        return picture


def _to_8_bits(values: np.ndarray, mode: str) -> np.ndarray:
    values = np.nan_to_num(values.astype(np.float64))
    largest = values.max(initial=0)
    scale = 1 / 257 if largest > 255 or mode.startswith("I;16") else 1.0
    if mode == "F" and largest <= 1:
        scale = 255.0
    return np.clip(np.rint(values * scale), 0, 255).astype(np.uint8)
