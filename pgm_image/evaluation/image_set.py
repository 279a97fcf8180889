"""Real images with labels, read from image shards, and class-balanced selections from them."""

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tokenizer.shards import LABELS, read_images, read_manifest


@dataclass(frozen=True)
class ImageSet:
    """Images with their labels, and the names the labels stand for."""

    images: np.ndarray  # (n, S, S, 3) uint8 RGB
    class_id: np.ndarray  # (n,) int64
    style_id: np.ndarray  # (n,) int64
    concept_id: np.ndarray  # (n,) int64
    tone: np.ndarray  # (n,) int64, 0 = default
    classes: tuple[str, ...]
    styles: tuple[str, ...]
    name: str  # "emoji64 train"

    def __len__(self) -> int:
        return len(self.images)

    def take(self, index: np.ndarray) -> "ImageSet":
        """The images at `index` (k,) int, in that order."""
        arrays = {key: getattr(self, key)[index] for key in ("images", *LABELS)}
        return ImageSet(**arrays, classes=self.classes, styles=self.styles, name=self.name)


def load_image_set(folder: str | Path, split: str) -> ImageSet:
    """All images of one split ("train" or "heldout") of image shards; ValueError if it cannot be read."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    missing = [key for key in ("splits", "classes", "styles") if key not in manifest]
    if missing:
        raise ValueError(f"data: {str(folder)!r} is not a folder of image shards: manifest.json lacks {missing}")
    try:
        part = read_images(folder, split)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"data: split {split!r} of {str(folder)!r} cannot be read: {error}") from error
    if part.images.dtype != np.uint8 or part.images.ndim != 4 or part.images.shape[3] != 3:
        raise ValueError(f"data: images must be (n, S, S, 3) uint8, got {part.images.dtype} {part.images.shape}")
    columns = {name: part.labels[:, index].astype(np.int64) for index, name in enumerate(LABELS)}
    return ImageSet(
        images=part.images,
        **columns,
        classes=tuple(manifest["classes"]),
        styles=tuple(manifest["styles"]),
        name=f"{manifest.get('name', folder.name)} {split}",
    )


def one_tone_each(images: ImageSet, seed: int = 0) -> np.ndarray:
    """Indices of one image per drawing (concept in a style): half of the time its default tone, else another.

    Training draws the concept first and the tone second; this is the distribution a model is asked to match.
    """
    rng = np.random.default_rng(seed)
    drawings: dict[tuple[int, int], list[int]] = {}
    for index, key in enumerate(zip(images.concept_id.tolist(), images.style_id.tolist(), strict=True)):
        drawings.setdefault(key, []).append(index)
    chosen = []
    for members in drawings.values():
        default = [index for index in members if images.tone[index] == 0]
        toned = [index for index in members if images.tone[index] != 0]
        pool = toned if toned and (not default or rng.random() < 0.5) else default
        chosen.append(pool[rng.integers(len(pool))])
    return np.array(sorted(chosen), dtype=np.int64)


def balanced_counts(available: np.ndarray, n: int) -> np.ndarray:
    """How many to take from each bin (k,) so that n are taken, as evenly as `available` (k,) permits.

    Where bins do not run dry the counts differ by at most one and the lower indices get the extra one.
    """
    counts = np.zeros_like(available)
    while (left := n - counts.sum()) > 0:
        open_bins = np.flatnonzero(counts < available)
        if len(open_bins) == 0:
            raise ValueError(f"samples must be at most {available.sum()} (what the reference holds), got {n}")
        share = max(left // len(open_bins), 1)
        for index in open_bins[:left]:
            counts[index] += min(share, available[index] - counts[index])
    return counts


def balanced_selection(images: ImageSet, n: int, seed: int = 0) -> np.ndarray:
    """Indices (n,) of distinct drawings, classes as balanced as the set permits, then styles within a class."""
    rng = np.random.default_rng(seed)
    pool = rng.permutation(one_tone_each(images, seed))
    cells: list[list[np.ndarray]] = []
    for class_id in range(len(images.classes)):
        in_class = pool[images.class_id[pool] == class_id]
        cells.append([in_class[images.style_id[in_class] == style] for style in range(len(images.styles))])
    per_class = balanced_counts(np.array([sum(map(len, styles)) for styles in cells]), n)
    chosen = []
    for styles, count in zip(cells, per_class.tolist(), strict=True):
        # which style gets an odd image is drawn per class, or the first would get it in all of them
        styles = [styles[index] for index in rng.permutation(len(styles))]
        for members, take in zip(styles, balanced_counts(np.array([len(s) for s in styles]), count), strict=True):
            chosen.append(members[:take])
    return np.concatenate(chosen)


def match_labels(first: ImageSet, second: ImageSet, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Indices (k,) and (k,) of drawings with equal (class, style) in both sets, as many as there can be."""
    rng = np.random.default_rng(seed)
    cells: list[dict[tuple[int, int], list[int]]] = []
    for images in (first, second):
        members: dict[tuple[int, int], list[int]] = {}
        for index in rng.permutation(one_tone_each(images, seed)).tolist():
            members.setdefault((int(images.class_id[index]), int(images.style_id[index])), []).append(index)
        cells.append(members)
    pairs = [pair for cell, left in cells[0].items() for pair in zip(left, cells[1].get(cell, []), strict=False)]
    if not pairs:
        raise ValueError(f"{first.name} and {second.name} share no (class, style)")
    left, right = np.array(pairs, dtype=np.int64).T
    return left, right
