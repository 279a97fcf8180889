"""Pictures in tar files of the webdataset layout: KEY.jpg beside KEY.cls (or KEY.json), read in order of the file."""

import glob
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from PIL import Image

from tokenizer.image_files import SUFFIXES, open_picture

LABEL_FIELDS = ("label", "cls", "class_id", "class")  # of KEY.json
HELD_OUT_WORDS = ("heldout", "val", "validation", "test")


def is_pattern(data: str | Path) -> bool:
    """Whether `data` has wildcards."""
    return any(sign in str(data) for sign in "*?[")


def find_tars(data: str | Path) -> dict[str, list[Path]]:
    """Tars of a folder (and its subfolders) or pattern by split, sorted by name; empty when there are none.

    A split is told by the words in the path below `data`: "val", "validation", "test" or "heldout" is held out,
    anything else trains.
    """
    folder = Path(data)
    paths = sorted(folder.rglob("*.tar")) if folder.is_dir() else []
    if is_pattern(data):
        paths = sorted(Path(path) for path in glob.glob(str(data), recursive=True) if path.endswith(".tar"))
    splits: dict[str, list[Path]] = {}
    for path in paths:
        below = path.relative_to(folder) if folder.is_dir() else Path(path.name)
        words = str(below.with_suffix("")).lower().replace("/", "-").replace("_", "-").replace(".", "-").split("-")
        splits.setdefault("heldout" if set(words) & set(HELD_OUT_WORDS) else "train", []).append(path)
    return dict(sorted(splits.items(), key=lambda item: item[0] != "train"))


def read_tar(path: Path) -> Iterator[tuple[Image.Image, int]]:
    """(upright RGB picture, class number) of each key. Raises ValueError naming the tar and key that is incomplete."""
    try:
        with tarfile.open(path, "r|*") as file:  # as a stream: one pass, whatever the size
            key, fields = None, {}
            for member in file:
                if not member.isfile():
                    continue
                name = PurePosixPath(member.name)
                stem, _, suffix = name.name.partition(".")
                if str(name.parent / stem) != key:
                    if fields:
                        yield _sample(path, key, fields)
                    key, fields = str(name.parent / stem), {}
                fields[suffix.lower()] = file.extractfile(member).read()
            if fields:
                yield _sample(path, key, fields)
    except tarfile.TarError as error:
        raise ValueError(f"{path} cannot be read as a tar file: {error}") from error


def _sample(path: Path, key: str, fields: dict[str, bytes]) -> tuple[Image.Image, int]:
    picture = next((content for suffix, content in fields.items() if f".{suffix}" in SUFFIXES), None)
    if picture is None:
        raise ValueError(f"{path}: {key!r} has no picture among {', '.join(sorted(fields))}")
    try:
        return open_picture(picture), _label(fields)
    except (ValueError, KeyError) as error:
        raise ValueError(f"{path}: {key!r}: {error}") from error


def _label(fields: dict[str, bytes]) -> int:
    for suffix in ("cls", "cls.txt", "label"):
        if suffix in fields:
            return int(fields[suffix])
    values = json.loads(fields["json"]) if "json" in fields else {}
    for name in LABEL_FIELDS:
        if isinstance(values.get(name), int):
            return values[name]
    raise ValueError(f"no class number in .cls or .json ({', '.join(LABEL_FIELDS)})")
