"""A folder of pictures as samples, so that images drawn elsewhere meet the same measure."""

import warnings
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

LOSSLESS = (".png", ".webp", ".bmp", ".ppm", ".tif", ".tiff")
LOSSY = (".jpg", ".jpeg")


def read_image_folder(folder: str | Path) -> np.ndarray:
    """All pictures under `folder`, by path: (n, H, W, 3) uint8; ValueError for what cannot be used."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"images: {str(folder)!r} is not a folder")
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in LOSSLESS + LOSSY)
    if not paths:
        raise ValueError(f"images: {str(folder)!r} holds no pictures ({', '.join(LOSSLESS + LOSSY)})")
    if any(path.suffix.lower() in LOSSY for path in paths):
        warnings.warn("images: JPEG compression moves KID and FID; evaluate PNG files", stacklevel=2)
    pictures = []
    for path in paths:
        try:
            with Image.open(path) as picture:
                pictures.append(np.asarray(picture.convert("RGB")))
        except (UnidentifiedImageError, OSError, SyntaxError) as error:
            raise ValueError(f"images: {path.name} cannot be read as a picture: {error}") from error
        (height, width, _), (first_height, first_width, _) = pictures[-1].shape, pictures[0].shape
        if (height, width) != (first_height, first_width):
            sizes = f"{path.name} is {width}x{height}, {paths[0].name} is {first_width}x{first_height}"
            raise ValueError(f"images: all must have one size; {sizes}")
    return np.stack(pictures)
