"""`python -m pgm_image export`: training runs and their tokenizer become a model folder that `load` takes."""

import argparse
import json
from pathlib import Path

import torch

from pgm.averaging import average
from pgm.models import load_model
from pgm.partition_transformer import PartitionTransformer
from pgm_image.model_info import ModelInfo
from pgm_image.pipeline import PGMPipeline
from tokenizer.shards import read_codes, read_manifest
from tokenizer.vqgan import VQGAN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "--run",
        required=True,
        type=Path,
        nargs="+",
        help="folder of the training run; of several, each started from the one before, the weights are averaged",
    )
    parser.add_argument("--shares", type=float, nargs="+", help="of the runs in the average (default: equal)")
    parser.add_argument("--tokenizer", required=True, type=Path, help="tokenizer folder that made the codes")
    parser.add_argument("--data", required=True, type=Path, help="the code shards it was trained on")
    parser.add_argument("--out", required=True, type=Path, help="folder to write")
    parser.add_argument("--name", default="emoji64")
    parser.add_argument("--title", default="Emoji artwork, 79 classes in 7 styles, 64 pixels")
    parser.add_argument("--licence", default="Apache-2.0")
    parser.add_argument("--words", type=Path, help="JSON with search words per class")
    parser.add_argument("--settings", type=Path, help='JSON {"recommended": {...}, "editing": {...}, "presets": {...}}')
    parser.add_argument("--dtype", default="float16", choices=("float32", "float16", "bfloat16"))


def run(args: argparse.Namespace) -> int:
    """Write model_index.json, transformer/ and tokenizer/."""
    manifest = read_manifest(args.data)
    shares = args.shares or [1 / len(args.run)] * len(args.run)
    transformer = average([load_model(run / "export") for run in args.run], shares)
    tokenizer = VQGAN.from_pretrained(args.tokenizer)
    settings = json.loads(args.settings.read_text()) if args.settings else {}
    grid = tuple(manifest["grid"])
    info = ModelInfo(
        name=args.name,
        architecture="pgm" if isinstance(transformer, PartitionTransformer) else "maskgit",
        title=args.title,
        image_size=grid[0] * tokenizer.config.factor,
        grid=grid,
        codebook_size=manifest["codebook_size"],
        classes=tuple(manifest["classes"]),
        styles=tuple(manifest["styles"]),
        recommended=settings.get("recommended", {"steps": 16, "sampler": "halton", "guidance_scale": 2.0}),
        editing=settings.get("editing", {}),
        presets=settings.get("presets", {}),
        unseen=unseen_pairs(args.data, len(manifest["classes"]), len(manifest["styles"])),
        parameters=sum(p.numel() for p in transformer.parameters()),
        licence=args.licence,
        credits=tuple(manifest.get("licences", ())),
        words=_search_words(args.words),
    )
    PGMPipeline(transformer, tokenizer, info).save_pretrained(args.out, getattr(torch, args.dtype))
    print(args.out)
    return 0


def unseen_pairs(data: Path, classes: int, styles: int) -> tuple[tuple[int, int], ...]:
    """(class, style) pairs without any training picture: the model has to imagine them."""
    seen = {(int(c), int(s)) for _, labels in read_codes(data, "train") for c, s in labels[:, :2]}
    return tuple((c, s) for c in range(classes) for s in range(styles) if (c, s) not in seen)


def _search_words(path: Path | None) -> dict[str, tuple[str, ...]]:
    if path is None:
        return {}
    return {entry["name"]: (*entry["examples"], *entry["tags"]) for entry in json.loads(path.read_text())["classes"]}
