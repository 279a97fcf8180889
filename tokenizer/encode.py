"""Encodes image shards, or a folder of pictures by class, into code shards for training a generator.

Works on one process or many (`accelerate launch -m tokenizer encode ...`); a killed run continues where it stopped.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from accelerate import PartialState

from tokenizer import pixels
from tokenizer.image_folder import describe, read_split
from tokenizer.quantizer import CodeUsage
from tokenizer.shards import LABELS, read_manifest, write_code_shard, write_manifest
from tokenizer.vqgan import VQGAN

SHARD_IMAGES = 2000
SHARED_FIELDS = ("name", "classes", "styles", "concepts", "licences")  # copied from the images' manifest


def encode_folder(
    model: VQGAN,
    source: str | Path,
    target: str | Path,
    tokenizer_name: str,
    batch_size: int = 64,
    shard_images: int = SHARD_IMAGES,
    report: Callable[[str], None] = print,
) -> dict:
    """Encode every split of `source` into `target` and return the manifest written there.

    Raises ValueError when `target` holds codes of another tokenizer or of other data.
    """
    state, target = PartialState(), Path(target)
    described = describe(source)
    manifest = {
        **{key: described[key] for key in SHARED_FIELDS if key in described},
        "grid": list(model.config.grid),
        "codebook_size": model.config.codebook_size,
        "factor": model.config.factor,
        "labels": list(LABELS),
        "tokenizer": {"name": tokenizer_name, "codes_hash": model.codes_hash()},
    }
    target.mkdir(parents=True, exist_ok=True)
    if (target / "manifest.json").exists():
        other = read_manifest(target)
        for field in ("name", "tokenizer"):
            if other.get(field) != manifest[field]:
                raise ValueError(f"{str(target)!r} holds codes with {field} {other.get(field)}, not {manifest[field]}")
    state.wait_for_everyone()
    if state.is_main_process:
        write_manifest(target, {**manifest, "splits": {}})  # names the tokenizer should this run be killed
    splits = {}
    for split in described["splits"]:
        images = read_split(source, split, model.config.image_size)
        starts = range(0, len(images), shard_images)
        for number, start in enumerate(starts):
            stem = f"{split}-{number:05d}"
            if number % state.num_processes == state.process_index and not (target / f"{stem}.labels.npy").exists():
                codes = encode_images(model, images.images[start : start + shard_images], batch_size)
                write_code_shard(target, stem, codes, images.labels[start : start + shard_images])
                report(f"{stem}: {len(codes)} images")
        state.wait_for_everyone()
        counts = [min(shard_images, len(images) - start) for start in starts]
        splits[split] = [
            {"codes": f"{split}-{i:05d}.codes.npy", "labels": f"{split}-{i:05d}.labels.npy", "count": count}
            for i, count in enumerate(counts)
        ]
        if state.is_main_process:
            usage = CodeUsage(model.config.codebook_size)
            for entry in splits[split]:
                usage.add(torch.from_numpy(np.load(target / entry["codes"]).astype(np.int64)))
            report(f"{split}: {len(images)} images, codes used {usage.usage:.1%}, perplexity {usage.perplexity:.0f}")
    manifest["splits"] = splits
    if state.is_main_process:
        write_manifest(target, manifest)
    return manifest


def encode_images(model: VQGAN, images: np.ndarray, batch_size: int) -> np.ndarray:
    """images: (n, S, S, 3) uint8 -> codes (n, h*w) int64, row-major."""
    batches = [images[start : start + batch_size] for start in range(0, len(images), batch_size)]
    codes = [model.encode(pixels.from_uint8(torch.from_numpy(batch))).flatten(1).cpu() for batch in batches]
    return torch.cat(codes).numpy()
