"""Where pictures to encode come from: image shards, class folders, webdataset tars, or a Hugging Face dataset.

A source is cut into parts, one for each code shard, so that what is written does not depend on who encodes which part.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tokenizer import webdataset
from tokenizer.hub_dataset import is_dataset_folder, open_dataset
from tokenizer.image_files import open_picture
from tokenizer.image_folder import FolderImages, describe, read_split
from tokenizer.picture_crops import crop_to

Batch = tuple[np.ndarray, np.ndarray]  # images (n, S, S, 3) uint8, labels (n, 4) int32 as in `shards.LABELS`
SHARD_IMAGES = 2000
PICTURES_PER_TAR = 100_000  # concept numbers set aside for each tar; a picture of a tar is its own concept


@dataclass(frozen=True)
class Part:
    """What becomes one code shard."""

    stem: str  # "train-00000"
    batches: Callable[[int], Iterator[Batch]]  # of up to so many pictures


@dataclass(frozen=True)
class Source:
    """Pictures with labels, by split."""

    description: dict[str, Any]  # "name", "classes" (None where nothing names them), "styles" and what else is known
    splits: dict[str, Callable[[], list[Part]]]  # opened one after the other


@dataclass(frozen=True)
class Pictures:
    """An array of pictures that are opened, cropped and decoded when sliced: (n, S, S, 3) uint8."""

    open: Callable[[int], Image.Image]
    count: int
    size: int
    crop: str
    threads: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: slice) -> np.ndarray:
        with ThreadPoolExecutor(self.threads) as pool:  # Pillow decodes outside the interpreter lock
            return np.stack(list(pool.map(self._read, range(*index.indices(self.count)))))

    def _read(self, index: int) -> np.ndarray:
        return np.asarray(crop_to(self.open(index), self.size, self.crop))


def open_source(
    data: str | Path, size: int, crop: str = "square", shard_images: int = SHARD_IMAGES, threads: int = 4
) -> Source:
    """data: a folder with manifest.json, of class subfolders, of tars or of a saved data set; a pattern of tars
    ("folder/train-*.tar"); or the name of a data set on the Hugging Face hub.

    Raises ValueError for what is none of these, ModuleNotFoundError for a data set without the package `datasets`.
    """
    folder = Path(data)
    if folder.is_dir() and (folder / "manifest.json").is_file():
        return _from_folder(folder, size, crop, shard_images, threads)
    tars = webdataset.find_tars(data)
    if tars:
        return _from_tars(data, tars, size, crop)
    if folder.is_dir() and not is_dataset_folder(folder):
        return _from_folder(folder, size, crop, shard_images, threads)
    if not folder.exists() and not webdataset.is_pattern(data) and str(data).count("/") != 1:
        raise ValueError(f"data must be a folder, a pattern of tars or a data set 'owner/name', got {str(data)!r}")
    if webdataset.is_pattern(data):
        raise ValueError(f"data: no tar file matches {str(data)!r}")
    return _from_dataset(data, size, crop, shard_images, threads)


def _from_folder(folder: Path, size: int, crop: str, shard_images: int, threads: int) -> Source:
    described = describe(folder)

    def parts(split: str) -> list[Part]:
        images = read_split(folder, split, size)
        pixels = images.images
        if isinstance(pixels, FolderImages):
            paths = pixels.paths
            pixels = Pictures(lambda index: open_picture(paths[index]), len(paths), size, crop, threads)
        return array_parts(split, pixels, images.labels, shard_images)

    return Source(described, {split: partial(parts, split) for split in described["splits"]})


def _from_dataset(name: str | Path, size: int, crop: str, shard_images: int, threads: int) -> Source:
    found = open_dataset(name)

    def parts(split: str) -> list[Part]:
        rows = found.splits[split]
        pictures = Pictures(rows.picture, len(rows), size, crop, threads)
        return array_parts(split, pictures, _labels(rows.labels()), shard_images)

    description = {"name": found.name, "classes": found.classes, "styles": []}
    return Source(description, {split: partial(parts, split) for split in found.splits})


def _from_tars(data: str | Path, tars: dict[str, list[Path]], size: int, crop: str) -> Source:
    def batches(path: Path, number: int, batch_size: int) -> Iterator[Batch]:
        pixels: list[np.ndarray] = []
        labels: list[int] = []
        first = number * PICTURES_PER_TAR
        for picture, label in webdataset.read_tar(path):
            pixels.append(np.asarray(crop_to(picture, size, crop)))
            labels.append(label)
            if len(pixels) == batch_size:
                yield np.stack(pixels), _labels(np.array(labels), first)
                first += len(labels)
                pixels, labels = [], []
        if pixels:
            yield np.stack(pixels), _labels(np.array(labels), first)

    def parts(split: str) -> list[Part]:
        return [
            Part(f"{split}-{number:05d}", partial(batches, path, number)) for number, path in enumerate(tars[split])
        ]

    name = Path(data).resolve().name if Path(data).is_dir() else Path(data).resolve().parent.name
    description = {"name": name, "classes": None, "styles": []}
    return Source(description, {split: partial(parts, split) for split in tars})


def array_parts(split: str, images: Any, labels: np.ndarray, shard_images: int) -> list[Part]:
    """Parts of `shard_images` consecutive pictures of anything that can be sliced; labels (N, 4) int32."""

    def batches(start: int, stop: int, batch_size: int) -> Iterator[Batch]:
        for first in range(start, stop, batch_size):
            rows = slice(first, min(first + batch_size, stop))
            yield images[rows], labels[rows]

    starts = range(0, len(labels), shard_images)
    return [
        Part(f"{split}-{number:05d}", partial(batches, start, min(start + shard_images, len(labels))))
        for number, start in enumerate(starts)
    ]


def _labels(class_ids: np.ndarray, first: int = 0) -> np.ndarray:
    """class_ids (n,) -> (n, 4) int32; each picture is its own concept, numbered from `first`."""
    labels = np.zeros((len(class_ids), 4), np.int32)
    labels[:, 0] = class_ids
    labels[:, 2] = first + np.arange(len(class_ids))
    return labels
