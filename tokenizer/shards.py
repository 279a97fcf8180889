"""Image shards (npz) and code shards (npy) on disk, each folder described by its manifest.json."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

LABELS = ("class_id", "style_id", "concept_id", "tone")


def read_manifest(folder: str | Path) -> dict:
    """manifest.json of a shard folder; ValueError when it is missing or not JSON."""
    path = Path(folder) / "manifest.json"
    if not path.is_file():
        raise ValueError(f"no shards at {str(folder)!r}: manifest.json is missing")
    try:
        return json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from error


def write_manifest(folder: str | Path, manifest: dict) -> None:
    """Write manifest.json."""
    (Path(folder) / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def split_entries(manifest: dict, split: str, folder: str | Path) -> list:
    """Shard entries of a split; ValueError naming the splits there are."""
    splits = manifest["splits"]
    if split not in splits:
        raise ValueError(f"split must be one of {sorted(splits)} in {str(folder)!r}, got {split!r}")
    return splits[split]


@dataclass(frozen=True)
class ImageSplit:
    """One split of an image folder, held in memory (12 kB per 64-pixel image)."""

    images: np.ndarray  # (N, S, S, 3) uint8
    labels: np.ndarray  # (N, 4) int32, columns as in LABELS

    def __len__(self) -> int:
        return len(self.images)


def read_image_shard(path: str | Path) -> ImageSplit:
    """One npz file; its label arrays become the columns of `labels`."""
    with np.load(path) as shard:
        labels = np.stack([shard[name].astype(np.int32) for name in LABELS], axis=1)
        return ImageSplit(shard["images"], labels)


def read_images(folder: str | Path, split: str) -> ImageSplit:
    """All shards of a split, in manifest order."""
    names = split_entries(read_manifest(folder), split, folder)
    shards = [read_image_shard(Path(folder) / name) for name in names]
    return ImageSplit(np.concatenate([s.images for s in shards]), np.concatenate([s.labels for s in shards]))


def write_code_shard(folder: str | Path, stem: str, codes: np.ndarray, labels: np.ndarray) -> dict:
    """codes: (n, h*w) integers below 65536; labels: (n, 4). Returns the manifest entry of the shard.

    The labels file appears last and each file at once, so its presence means that the shard is complete.
    """
    entry = {"codes": f"{stem}.codes.npy", "labels": f"{stem}.labels.npy", "count": len(codes)}
    for name, array in ((entry["codes"], codes.astype(np.uint16)), (entry["labels"], labels.astype(np.int32))):
        partial = Path(folder) / f"{name}.tmp.npy"
        np.save(partial, array)
        os.replace(partial, Path(folder) / name)
    return entry


def read_grids(folder: str | Path, split: str) -> np.ndarray:
    """All codes of a split as grids (N, h, w) uint16."""
    height, width = read_manifest(folder)["grid"]
    return np.concatenate([codes for codes, _ in read_codes(folder, split)]).reshape(-1, height, width)


def read_codes(folder: str | Path, split: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Shards of a split as memory maps: codes (n, h*w) uint16 row-major, labels (n, 4) int32."""
    folder = Path(folder)
    entries = split_entries(read_manifest(folder), split, folder)
    return [
        (np.load(folder / entry["codes"], mmap_mode="r"), np.load(folder / entry["labels"], mmap_mode="r"))
        for entry in entries
    ]
