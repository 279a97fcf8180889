"""`python -m pgm_text export`: a training run becomes a model folder that `load` takes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pgm.diffusion_transformer import DiffusionTransformer
from pgm.learning_curve import draw_learning_curve
from pgm.models import load_model
from pgm_text.model_info import TextModelInfo
from pgm_text.packing import read_manifest
from pgm_text.pipeline import TextPipeline
from pgm_text.representation import Representation
from pgm_text.tokenizer import Tokenizer

CURVE = "curve.svg"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--run", required=True, type=Path, help="folder of the training run")
    parser.add_argument("--data", required=True, type=Path, help="the corpus it was trained on")
    parser.add_argument("--out", required=True, type=Path, help="folder to write, e.g. assets/text/dictionary-pgm")
    parser.add_argument("--name", help="default: the name of the folder")
    parser.add_argument("--title", default="Dictionary entries")
    parser.add_argument("--licence", default="Apache-2.0")
    parser.add_argument("--representation", type=Path, help="folder of `fit-representation`, to turn texts into z")
    parser.add_argument(
        "--settings", type=Path, help='JSON {"recommended": {...}, "presets": {...}, "examples": [...]}'
    )
    parser.add_argument("--measured", type=Path, help="report of `evaluate`, whose figures for this model are kept")
    parser.add_argument("--dtype", default="float16", choices=("float32", "float16", "bfloat16"))


def run(args: argparse.Namespace) -> int:
    """Write model_index.json, transformer/, tokenizer.json, the learning curve and, if asked for, representation/."""
    transformer = load_model(args.run / "export")
    name = args.name or args.out.name
    settings = json.loads(args.settings.read_text()) if args.settings else {}
    corpus = json.loads((args.data / "manifest.json").read_text())
    manifest = read_manifest(args.data / "tokens")
    info = info_of(
        transformer, manifest, name, args.title,
        recommended=settings.get("recommended", {"steps": 32, "sampler": "uniform", "temperature": 1.0}),
        presets=settings.get("presets", {}),
        examples=tuple(settings.get("examples", ())),
        licence=args.licence,
        credits=tuple(corpus.get("licences", ())),
        training=_training(args.run, manifest),
        measured=_measured(args.measured, name),
    )  # fmt: skip
    representation = Representation.load(args.representation) if args.representation else None
    pipeline = TextPipeline(transformer, Tokenizer.load(args.data), info, representation)
    pipeline.save_pretrained(args.out, getattr(torch, args.dtype))
    curve = draw_learning_curve(args.run / "metrics.jsonl", "position of a row")
    (args.out / CURVE).write_text(curve, encoding="utf-8")
    for credit in corpus.get("licences", ()):  # the notices have to go along with the model
        (args.out / credit["notice"]).write_bytes((args.data / credit["notice"]).read_bytes())
    print(args.out)
    return 0


def info_of(model: nn.Module, manifest: dict[str, Any], name: str, title: str, **more: Any) -> TextModelInfo:
    """Index of a model trained on token shards with this manifest."""
    config = model.config
    latent_width = getattr(config, "latent_width", 0)
    entries = manifest["layout"] == "entries"
    return TextModelInfo(
        name=name,
        architecture="rmdm" if latent_width else "mdlm" if isinstance(model, DiffusionTransformer) else "pgm",
        title=title,
        length=config.length - entries,  # the last cell of an entry's row always holds the end token
        layout=manifest["layout"],
        vocab_size=config.vocab_size,
        latent_width=latent_width,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        **more,
    )


def _training(run: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """What a run trained, its steps and tokens, from its own files."""
    config = json.loads((run / "training.json").read_text())
    lines = (run / "metrics.jsonl").read_text().splitlines()
    steps = json.loads(lines[-1])["step"]
    rows = steps * config["batch_size"] * config["accumulation"]
    seen = {"steps": steps, "rows": rows, "tokens": rows * (manifest["grid"][1] - 1)}
    recipe = json.loads((run / "recipe.json").read_text())
    return {**{name: recipe[name] for name in ("recipe", "algorithm", "smoothing")}, **seen}


def _measured(report: Path | None, name: str) -> dict[str, Any]:
    if report is None:
        return {}
    found = json.loads(report.read_text())["models"]
    if name not in found:
        raise ValueError(f"{report} has no figures of {name!r}; it has {', '.join(found) or 'none'}")
    return found[name]
