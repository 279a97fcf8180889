"""Masks in the forms people have them -> one array of booleans; white, True and painted mean: change this."""

import math
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from tokenizer.image_files import open_upright

THRESHOLD = 128  # of 0..255: from here on a pixel counts as painted


def read_mask(mask: Any, width: int, height: int) -> np.ndarray:
    """A mask for a picture of width x height -> (H, W) bool, of that size or of another with the same aspect.

    mask: array or tensor (H, W) of bool, of 0 and 1, of 0..255, or of floats in [0, 1]; a Pillow picture; a file or
    its bytes. A picture with transparency is a painted layer: its opacity counts; any other counts by its brightness.
    Raises ValueError for anything else and for another aspect, which could only be guessed at.
    """
    painted = _from_array(mask) if hasattr(mask, "shape") else _from_picture(_open(mask))
    rows, columns = painted.shape
    # The same aspect, up to the rounding of a scaled size to whole pixels.
    if abs(columns * height - rows * width) > max(width, height) / 2 + max(rows, columns) / 2:
        raise ValueError(
            f"mask must have the picture's size {width} x {height} or its aspect, got {columns} x {rows} pixels"
        )
    return painted


def _open(mask: Any) -> Image.Image:
    if isinstance(mask, Image.Image):
        return ImageOps.exif_transpose(mask)
    if isinstance(mask, bool) or not isinstance(mask, (str, bytes)) and not hasattr(mask, "__fspath__"):
        raise ValueError(f"mask must be an array, a picture or a file, got {type(mask).__name__}")
    return open_upright(mask)


def _from_picture(mask: Image.Image) -> np.ndarray:
    if mask.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in mask.info:
        layer = mask.convert("RGBA")
        opacity = np.asarray(layer.getchannel("A"))
        if opacity.min() < 255:  # an opaque picture is no layer
            return opacity >= THRESHOLD
        mask = layer
    if mask.mode == "1":
        return np.array(mask)
    if mask.mode.startswith(("I", "F")):
        values = np.asarray(mask)
        return _from_array(values / 65535 if mask.mode.startswith("I;16") or values.max() > 255 else values)
    return np.asarray(mask.convert("L")) >= THRESHOLD


def _from_array(mask: Any) -> np.ndarray:
    values = mask.detach().cpu().numpy() if hasattr(mask, "detach") else np.asarray(mask)
    if values.ndim == 3 and values.shape[2] in (3, 4) and values.dtype == np.uint8 and values.size:
        return _from_picture(Image.fromarray(values))
    if values.ndim == 3 and 1 in (values.shape[0], values.shape[2]):
        values = values.reshape(values.shape[:2] if values.shape[2] == 1 else values.shape[1:])
    if values.ndim != 2 or not values.size:
        raise ValueError(f"mask must have shape (H, W), got {tuple(values.shape)}")
    if values.dtype == bool:
        return values.copy()
    if values.dtype.kind not in "uif":
        raise ValueError(f"mask must hold booleans or numbers, got {values.dtype}")
    low, high = float(values.min()), float(values.max())
    if not (math.isfinite(low) and math.isfinite(high)) or low < 0 or high > 255:
        raise ValueError(f"mask must hold values in 0..1 or 0..255, got {low:g}..{high:g}")
    return values >= (0.5 if high <= 1 else THRESHOLD)
