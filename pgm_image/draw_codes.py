"""`python -m pgm_image draw-codes`: code grids that a model drew, as shards, for training its tokenizer's decoder."""

import argparse
from pathlib import Path

import numpy as np

from pgm_image.evaluation.samples import label_map
from pgm_image.pipeline import PGMPipeline
from pgm_image.registry import DEFAULT_MODEL, load
from tokenizer.balanced import BalancedSampler
from tokenizer.shards import LABELS, read_codes, read_manifest, write_code_shard, write_manifest

SHARD = 256  # grids; a killed run goes on with the next


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command; how they are drawn is as the model recommends."""
    parser.add_argument("--model", default=DEFAULT_MODEL, help="bundled name, folder or hub id (default: %(default)s)")
    parser.add_argument("--data", required=True, help="code shards whose training labels are drawn for, balanced")
    parser.add_argument("--out", required=True, type=Path, help="folder of the grids; an interrupted run continues")
    parser.add_argument("--count", type=int, default=4096, help="grids (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the first grid, the next has seed + 1 (default: 0)")
    parser.add_argument("--batch-size", type=int, default=64, help="grids at a time (default: %(default)s)")
    parser.add_argument("--device", help="cpu, cuda, mps (default: the best there is)")
    parser.add_argument("--dtype", help="float32, bfloat16 or float16")


def run(args: argparse.Namespace) -> int:
    """Draw and write; ValueError for a bad count, another model's folder, or labels that the model does not know."""
    if args.count < 1:
        raise ValueError(f"count must be an integer >= 1, got {args.count}")
    if args.batch_size < 1:
        raise ValueError(f"batch_size must be an integer >= 1, got {args.batch_size}")
    labels, classes, styles = drawn_labels(args.data, args.count, args.seed)
    pipe = load(args.model, args.device, args.dtype)
    class_id = label_map(pipe.classes, classes, "class")[labels[:, 0]]
    style_id = label_map(pipe.styles, styles, "style")[labels[:, 1]] if pipe.styles else None
    manifest = describe(pipe, args.data, args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    if (args.out / "manifest.json").exists():
        before = read_manifest(args.out)
        if any(before.get(name) != manifest[name] for name in ("tokenizer", "seed")):
            raise ValueError(f"out: {str(args.out)!r} holds grids of another tokenizer or seed; give another folder")
    entries = []
    for start in range(0, args.count, SHARD):
        part = slice(start, min(start + SHARD, args.count))
        stem = f"drawn-{part.start:07d}-{part.stop:07d}"
        if not (args.out / f"{stem}.labels.npy").exists():  # the file that is written last
            codes = pipe.generate(
                class_id[part].tolist(),
                style=None if style_id is None else style_id[part].tolist(),
                seed=args.seed + start,
                batch_size=args.batch_size,
                output_type="codes",
            )
            write_code_shard(args.out, stem, codes.flatten(1).numpy(), labels[part])
        entries.append({"codes": f"{stem}.codes.npy", "labels": f"{stem}.labels.npy", "count": part.stop - part.start})
        write_manifest(args.out, {**manifest, "splits": {"drawn": entries}})
        print(f"{part.stop} of {args.count} grids", flush=True)
    return 0


def drawn_labels(folder: str | Path, count: int, seed: int) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Labels (count, 4) as training draws them from code shards, and the names of classes and styles."""
    manifest = read_manifest(folder)
    labels = np.concatenate([rows for _, rows in read_codes(folder, "train")])
    rows = BalancedSampler(*labels.T).draw(count, np.random.default_rng(seed))
    return labels[rows], tuple(manifest["classes"]), tuple(manifest["styles"])


def describe(pipe: PGMPipeline, data: str | Path, seed: int) -> dict:
    """The manifest without its shards."""
    labels = read_manifest(data)
    return {
        "name": f"drawn by {pipe.info.name}",
        "classes": labels["classes"],
        "styles": labels["styles"],
        "grid": list(pipe.grid),
        "codebook_size": pipe.info.codebook_size,
        "factor": pipe.tokenizer.config.factor,
        "labels": list(LABELS),
        "tokenizer": {"name": pipe.info.name, "codes_hash": pipe.tokenizer.codes_hash()},
        "seed": seed,
        "recommended": dict(pipe.info.recommended),
    }
