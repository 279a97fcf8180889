"""Encodes pictures of any source (`sources.py`) into code shards for training a generator.

Works on one process or many (`accelerate launch -m tokenizer encode ...`); a killed run continues where it stopped,
and what is written does not depend on how many processes there were.
"""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from pgm.processes import process_state
from tokenizer import pixels
from tokenizer.picture_crops import CROPS
from tokenizer.quantizer import CodeUsage
from tokenizer.shards import LABELS, read_manifest, write_code_shard, write_manifest
from tokenizer.sources import SHARD_IMAGES, Part, open_source
from tokenizer.vqgan import VQGAN

SHARED_FIELDS = ("name", "classes", "styles", "concepts", "licences")  # copied from the description of the pictures
Item = TypeVar("Item")


@dataclass(frozen=True)
class Preparation:
    """How pictures become pixels; codes prepared differently are never mixed."""

    crop: str = "square"  # or "imagenet": short side resized, then the centre
    flip: bool = False  # training pictures also as their mirror image, right after them

    def __post_init__(self) -> None:
        if self.crop not in CROPS:
            raise ValueError(f"crop must be one of {', '.join(CROPS)}, got {self.crop!r}")


def encode_folder(
    model: VQGAN,
    source: str | Path,
    target: str | Path,
    tokenizer_name: str,
    batch_size: int = 64,
    shard_images: int = SHARD_IMAGES,
    report: Callable[[str], None] = print,
    preparation: Preparation | None = None,
    class_names: list[str] | None = None,
    threads: int = 4,
) -> dict:
    """Encode every split of `source` (see `open_source`) into `target` and return the manifest written there.

    class_names: in order of class numbers, where the source has none or worse ones; threads: that decode pictures.
    Raises ValueError when `target` holds codes of another tokenizer, of other data or prepared in another way.
    """
    state, target, preparation = process_state(), Path(target), preparation or Preparation()
    opened = open_source(source, model.config.image_size, preparation.crop, shard_images, threads)
    described = opened.description
    manifest = {
        **{key: described[key] for key in SHARED_FIELDS if described.get(key) is not None},
        "grid": list(model.config.grid),
        "codebook_size": model.config.codebook_size,
        "factor": model.config.factor,
        "labels": list(LABELS),
        "tokenizer": {"name": tokenizer_name, "codes_hash": model.codes_hash()},
        "preparation": asdict(preparation),
    }
    target.mkdir(parents=True, exist_ok=True)
    if (target / "manifest.json").exists():
        _check_same(target, manifest)
    state.wait_for_everyone()
    if state.is_main_process:
        write_manifest(target, {**manifest, "splits": {}})  # names the tokenizer should this run be killed
    splits, most = {}, -1
    for split, open_parts in opened.splits.items():
        parts = open_parts()
        for number, part in enumerate(parts):
            if number % state.num_processes == state.process_index and not _labels_path(target, part).exists():
                count = _encode_part(model, part, target, batch_size, preparation.flip and split == "train")
                report(f"{part.stem}: {count} images")
        state.wait_for_everyone()
        labels = [np.load(_labels_path(target, part)) for part in parts]
        splits[split] = [
            {"codes": f"{part.stem}.codes.npy", "labels": f"{part.stem}.labels.npy", "count": len(rows)}
            for part, rows in zip(parts, labels, strict=True)
        ]
        most = max(most, *(int(rows[:, 0].max(initial=-1)) for rows in labels))
        if state.is_main_process:
            usage = CodeUsage(model.config.codebook_size)
            for entry in splits[split]:
                usage.add(torch.from_numpy(np.load(target / entry["codes"]).astype(np.int64)))
            images = sum(len(rows) for rows in labels)
            report(f"{split}: {images} images, codes used {usage.usage:.1%}, perplexity {usage.perplexity:.0f}")
    manifest["classes"] = _class_names(described.get("classes"), class_names, most)
    manifest["splits"] = splits
    if state.is_main_process:
        write_manifest(target, manifest)
    state.wait_for_everyone()
    return manifest


def encode_images(model: VQGAN, images: np.ndarray, batch_size: int) -> np.ndarray:
    """images: (n, S, S, 3) uint8 -> codes (n, h*w) int64, row-major."""
    batches = [images[start : start + batch_size] for start in range(0, len(images), batch_size)]
    codes = [model.encode(pixels.from_uint8(torch.from_numpy(batch))).flatten(1).cpu() for batch in batches]
    return torch.cat(codes).numpy()


def read_class_names(path: str | Path) -> list[str]:
    """Names from a JSON list, from {"classes": [...]} (of names, or of lists with the name first), or one a line."""
    text = Path(path).read_text(encoding="utf-8")
    if Path(path).suffix != ".json":
        return [line.strip() for line in text.splitlines() if line.strip()]
    values = json.loads(text)
    values = values["classes"] if isinstance(values, dict) else values
    return [value if isinstance(value, str) else value[0] for value in values]


def _encode_part(model: VQGAN, part: Part, target: Path, batch_size: int, flip: bool) -> int:
    codes, labels = [], []
    for images, rows in _ahead(part.batches(batch_size)):
        if flip:
            images = np.stack([images, images[:, :, ::-1]], axis=1).reshape(-1, *images.shape[1:])
            rows = np.repeat(rows, 2, axis=0)
        codes.append(encode_images(model, np.ascontiguousarray(images), batch_size))
        labels.append(rows)
    if not codes:
        raise ValueError(f"no pictures for {part.stem}")
    write_code_shard(target, part.stem, np.concatenate(codes), np.concatenate(labels))
    return sum(map(len, codes))


def _ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items; the next one is prepared in a thread while the last one is in use."""
    end: Any = object()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, items, end)
        while (item := waiting.result()) is not end:
            waiting = pool.submit(next, items, end)
            yield item


def _check_same(target: Path, manifest: dict) -> None:
    other = read_manifest(target)
    other.setdefault("preparation", asdict(Preparation()))  # of folders written before there was a choice
    for field in ("name", "tokenizer", "preparation"):
        if other.get(field) != manifest[field]:
            raise ValueError(f"{str(target)!r} holds codes with {field} {other.get(field)}, not {manifest[field]}")


def _class_names(described: list[str] | None, given: list[str] | None, most: int) -> list[str]:
    names = given or described or [f"class {index}" for index in range(most + 1)]
    if given and described and len(given) != len(described):
        raise ValueError(f"classes must name {len(described)} classes, got {len(given)}")
    if most >= len(names):
        raise ValueError(f"a picture has class {most}, but there are names for {len(names)} classes")
    return list(names)


def _labels_path(target: Path, part: Part) -> Path:
    return target / f"{part.stem}.labels.npy"  # the file that is written last
