"""Encodes pictures of any source (`sources.py`) into code shards for training a generator.

Works on one process or many (`accelerate launch -m tokenizer encode ...`); a killed run continues where it stopped,
and what is written does not depend on how many processes there were.
"""

import json
import zlib
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
    moved_copies: int = 0  # of each training picture, right after it and its mirror image
    moved_by: int = 3  # most pixels each way, edges repeated

    def __post_init__(self) -> None:
        for name, least in (("moved_copies", 0), ("moved_by", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be >= {least}, got {getattr(self, name)}")
        if self.crop not in CROPS:
            raise ValueError(f"crop must be one of {', '.join(CROPS)}, got {self.crop!r}")

    @property
    def versions(self) -> int:
        """Of each training picture."""
        return (1 + self.flip) * (1 + self.moved_copies)

    def apply(self, images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """images: (n, S, S, 3) uint8 -> (n * versions, S, S, 3), the versions of a picture one after the other."""
        if self.flip:
            images = np.stack([images, images[:, :, ::-1]], axis=1).reshape(-1, *images.shape[1:])
        if not self.moved_copies:
            return images
        copies = torch.from_numpy(np.ascontiguousarray(images)).repeat_interleave(1 + self.moved_copies, 0)
        offsets = rng.integers(-self.moved_by, self.moved_by + 1, (len(images), 1 + self.moved_copies, 2))
        offsets[:, 0] = 0  # the picture itself
        return (
            pixels.moved(copies.permute(0, 3, 1, 2), torch.from_numpy(offsets.reshape(-1, 2)))
            .permute(0, 2, 3, 1)
            .numpy()
        )


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
                count = _encode_part(model, part, target, batch_size, preparation if split == "train" else None)
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


def _encode_part(model: VQGAN, part: Part, target: Path, batch_size: int, preparation: Preparation | None) -> int:
    codes, labels = [], []
    rng = np.random.default_rng(zlib.crc32(part.stem.encode()))  # the same moves however parts are shared out
    for images, rows in _ahead(part.batches(batch_size)):
        if preparation is not None:
            images, rows = preparation.apply(images, rng), np.repeat(rows, preparation.versions, axis=0)
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
    before = other.get("preparation", {})  # of folders written before there was a choice, or less of one
    other["preparation"] = asdict(Preparation()) | before
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
