"""Pictures of a Hugging Face data set, by its name on the hub or from a folder; needs the package `datasets`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tokenizer.image_files import open_picture

# Split of ours: names it may have there, in order of preference (test sets often come without labels).
SPLITS = {"train": ("train",), "heldout": ("heldout", "val", "validation", "test")}
LABEL_COLUMNS = ("label", "cls", "labels", "class", "fine_label")


@dataclass(frozen=True)
class Rows:
    """One split, pictures not yet decoded."""

    dataset: Any
    picture_column: str
    label_column: str

    def __len__(self) -> int:
        return len(self.dataset)

    def picture(self, index: int) -> Image.Image:
        """Upright RGB picture of a row."""
        stored = self.dataset[index][self.picture_column]
        return open_picture(stored["bytes"] if stored["bytes"] is not None else stored["path"])

    def labels(self) -> np.ndarray:
        """Class numbers (N,) int64."""
        return np.array(self.dataset[self.label_column], dtype=np.int64)


@dataclass(frozen=True)
class HubDataset:
    """A data set with its class names where it has them."""

    name: str
    classes: list[str] | None
    splits: dict[str, Rows]


def is_dataset_folder(folder: Path) -> bool:
    """Whether `datasets` wrote the folder, or it holds parquet files."""
    markers = ("dataset_dict.json", "dataset_info.json", "state.json")
    return any((folder / name).is_file() for name in markers) or any(folder.rglob("*.parquet"))


def open_dataset(name: str | Path) -> HubDataset:
    """Raises ModuleNotFoundError without the package, ValueError where pictures or class numbers are missing."""
    try:
        import datasets
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("a Hugging Face data set needs the package datasets: pip install datasets") from error
    folder = Path(name)
    try:
        if any((folder / marker).is_file() for marker in ("dataset_dict.json", "state.json")):
            loaded = datasets.load_from_disk(str(name))
        else:
            loaded = datasets.load_dataset(str(name))
    except (OSError, datasets.exceptions.DatasetNotFoundError) as error:
        raise ValueError(f"data set {str(name)!r} cannot be had: {error}") from error
    tables = dict(loaded) if isinstance(loaded, dict) else {"train": loaded}
    chosen = {ours: next((n for n in theirs if n in tables), None) for ours, theirs in SPLITS.items()}
    if chosen["train"] is None:
        raise ValueError(f"data set {str(name)!r} has no split 'train', only {', '.join(sorted(tables))}")
    features = tables[chosen["train"]].features
    picture = next((column for column, kind in features.items() if isinstance(kind, datasets.Image)), None)
    label = next((column for column, kind in features.items() if isinstance(kind, datasets.ClassLabel)), None)
    label = label or next((column for column in LABEL_COLUMNS if column in features), None)
    if picture is None or label is None:
        columns = ", ".join(features)
        raise ValueError(f"data set {str(name)!r} needs a column of pictures and one of class numbers, has {columns}")
    classes = features[label].names if isinstance(features[label], datasets.ClassLabel) else None
    splits = {
        ours: Rows(
            tables[theirs].select_columns([picture, label]).cast_column(picture, datasets.Image(decode=False)),
            picture,
            label,
        )
        for ours, theirs in chosen.items()
        if theirs is not None
    }
    return HubDataset(folder.name, classes, splits)
