"""Generated pictures kept for later: PNG files in a folder, or one npz with `arr_0` as other evaluators read it."""

import zipfile
from pathlib import Path

import numpy as np
from PIL import Image


def write_pngs(folder: Path, images: np.ndarray, first: int) -> None:
    """images (n, S, S, 3) uint8 as 000000.png and so on, numbered from `first`."""
    folder.mkdir(parents=True, exist_ok=True)
    for index, image in enumerate(images, first):
        Image.fromarray(image).save(folder / f"{index:06d}.png")


def write_npz(path: Path, parts: list[Path], shape: tuple[int, int, int, int]) -> None:
    """Join npz files of `images` into one array (N, S, S, 3) uint8 named arr_0, a part in memory at a time."""
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    partial = path.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w") as archive, archive.open("arr_0.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            with np.load(part) as arrays:
                file.write(np.ascontiguousarray(arrays["images"]).tobytes())
    partial.replace(path)
