"""A folder of pictures with one subfolder per class, read lazily as if it were an array of images."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from tokenizer.image_files import SUFFIXES, open_picture
from tokenizer.shards import ImageSplit, read_images, read_manifest
from tokenizer.vqgan import square

SPLITS = {"train": "train", "heldout": "heldout", "val": "heldout", "validation": "heldout", "test": "heldout"}


class FolderImages:
    """Indexing with an integer array or a slice decodes those pictures, (n, S, S, 3) uint8, centre-cropped."""

    def __init__(self, paths: list[Path], size: int, threads: int = 4) -> None:
        self.paths, self.size, self.threads = paths, size, threads

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return len(self.paths), self.size, self.size, 3

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: np.ndarray | slice) -> np.ndarray:
        chosen = [self.paths[i] for i in np.arange(len(self.paths))[index]]
        with ThreadPoolExecutor(self.threads) as pool:  # Pillow decodes outside the interpreter lock
            return np.stack(list(pool.map(self._read, chosen)))

    def _read(self, path: Path) -> np.ndarray:
        return np.asarray(square(open_picture(path), self.size))


def folder_splits(folder: Path) -> dict[str, Path]:
    """Split name -> its folder of class subfolders; a folder without train/val subfolders is one split, "train"."""
    named = {SPLITS[child.name]: child for child in sorted(folder.iterdir()) if child.is_dir() and child.name in SPLITS}
    return named if "train" in named else {"train": folder}


def class_names(folder: Path) -> list[str]:
    """Names of the class subfolders, sorted; ValueError when there are none."""
    names = sorted(child.name for child in folder.iterdir() if child.is_dir() and not child.name.startswith("."))
    if not names:
        raise ValueError(f"{str(folder)!r} has neither a manifest.json nor one subfolder of pictures per class")
    return names


def describe(folder: str | Path) -> dict:
    """Manifest of a shard folder, or of a folder of pictures: "name", "splits", "classes", "styles"."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"data must be a folder, got {str(folder)!r}")
    if (folder / "manifest.json").is_file():
        return read_manifest(folder)
    splits = folder_splits(folder)
    classes = class_names(splits["train"])
    return {"name": folder.resolve().name, "splits": {name: [] for name in splits}, "classes": classes, "styles": []}


def read_split(folder: str | Path, split: str, size: int) -> ImageSplit:
    """A split of a shard folder (in memory) or of a folder of pictures (decoded when indexed).

    Raises ValueError for an unknown split, a class that the train split does not have, or no picture at all.
    """
    folder = Path(folder)
    manifest = describe(folder)
    if split not in manifest["splits"]:
        raise ValueError(f"split must be one of {sorted(manifest['splits'])} in {str(folder)!r}, got {split!r}")
    if (folder / "manifest.json").is_file():
        return read_images(folder, split)
    root = folder_splits(folder)[split]
    unknown = sorted(set(class_names(root)) - set(manifest["classes"]))
    if unknown:
        raise ValueError(f"class {unknown[0]!r} of split {split!r} is not among the classes of the train split")
    paths, class_ids = [], []
    for class_id, name in enumerate(manifest["classes"]):
        found = sorted(p for p in (root / name).rglob("*") if p.suffix.lower() in SUFFIXES)
        paths += found
        class_ids += [class_id] * len(found)
    if not paths:
        raise ValueError(f"no pictures ({', '.join(SUFFIXES)}) in the class folders of {str(root)!r}")
    labels = np.zeros((len(paths), 4), np.int32)
    labels[:, 0] = class_ids
    labels[:, 2] = np.arange(len(paths))  # each picture is its own concept, so balanced sampling sees all of them
    return ImageSplit(FolderImages(paths, size), labels)
