"""`python -m pgm_text evaluate`: bounds, generative perplexity, variety, copying, speed, and the known language."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pgm.models import load_model
from pgm_text.evaluation.bound import measure_bound
from pgm_text.evaluation.known_truth import study
from pgm_text.evaluation.report import readable
from pgm_text.evaluation.samples import few_step_table, measure_texts
from pgm_text.evaluation.steps_plot import draw_steps
from pgm_text.latent_files import read_latents
from pgm_text.metrics import VerbatimIndex
from pgm_text.packing import read_manifest, read_token_rows
from pgm_text.registry import DEFAULT_MODEL, load
from pgm_text.request import SAMPLERS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--models", nargs="*", default=[DEFAULT_MODEL], help="names or folders; none: only the rest")
    parser.add_argument("--data", type=Path, help="corpus folder, made by `prepare`; none: only the known language")
    parser.add_argument("--scorer", type=Path, help="export folder of a dictionary-scorer run")
    parser.add_argument("--latents", type=Path, help="folder of `fit-representation`, for RMDM's bound")
    parser.add_argument("--rows", type=int, default=512, help="held-out texts for bounds (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=16, help="Monte Carlo draws per text (default: %(default)s)")
    parser.add_argument("--texts", type=int, default=128, help="texts to generate per setting (default: %(default)s)")
    parser.add_argument("--steps", type=int, nargs="*", default=[4, 8, 16, 32, 64])
    parser.add_argument("--sampler", help=f"one of {', '.join(SAMPLERS)} (default: the model's)")
    parser.add_argument("--temperature", type=float, help="0 or more (default: the model's)")
    parser.add_argument("--top-p", type=float, help="0 to 1 (default: the model's)")
    parser.add_argument("--refine-rounds", type=int, help="of taking unlikely tokens back (default: the model's)")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--copying", action=argparse.BooleanOptionalAction, default=True, help="search for copies")
    parser.add_argument("--known-language", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--device")
    parser.add_argument("--threads", type=int, help="CPU threads")
    parser.add_argument("--out", type=Path, help="also write the report as JSON")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE.svg", help="also draw generative perplexity and entropy against steps"
    )


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables, write the JSON and the plot. ValueError for bad arguments, before anything is run."""
    if args.plot:
        _check_plot(args)
    if args.threads:
        torch.set_num_threads(args.threads)
    report: dict[str, Any] = {
        "protocol": {
            "rows": args.rows, "draws": args.draws, "texts": args.texts, "seed": args.seed,
            "scorer": str(args.scorer) if args.scorer else None, "threads": torch.get_num_threads(),
            "torch": torch.__version__, "settings": _settings(args),
        },
        "models": {},
    }  # fmt: skip
    if args.data:
        _measure_models(args, report)
    if args.known_language:
        report["known_truth"] = study(seed=args.seed)
    print(readable(report))
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(report, indent=1) + "\n")
    if args.plot:
        args.plot.parent.mkdir(parents=True, exist_ok=True)
        args.plot.write_text(draw_steps(report), encoding="utf-8")
    return 0


def _check_plot(args: argparse.Namespace) -> None:
    if args.plot.suffix != ".svg":
        raise ValueError(f"plot must be a file that ends in .svg, got {str(args.plot)!r}")
    for name in ("data", "scorer", "models", "steps"):
        if not getattr(args, name):
            raise ValueError(f"plot needs --{name}: without it there is no generative perplexity to draw")


def _measure_models(args: argparse.Namespace, report: dict[str, Any]) -> None:
    tokens = args.data / "tokens"
    manifest = read_manifest(tokens)
    held_out = _rows(tokens, "heldout")
    chosen = np.random.default_rng(args.seed).permutation(len(held_out))[: args.rows]
    rows = torch.from_numpy(held_out[chosen].astype(np.int64))
    scorer = load_model(args.scorer, device=args.device or "cpu") if args.scorer else None
    index = VerbatimIndex(_bodies(tokens)) if args.copying else None
    report["protocol"]["rows"] = len(rows)
    report["held_out"] = measure_texts(rows[: args.texts], manifest["eos_id"], scorer, index)
    for name in args.models:
        pipeline = load(name, args.device)
        if pipeline.info.vocab_size != manifest["vocab_size"]:
            raise ValueError(f"{name!r} has {pipeline.info.vocab_size} tokens, the corpus {manifest['vocab_size']}")
        found: dict[str, Any] = {"architecture": pipeline.info.architecture, "parameters": pipeline.info.parameters}
        found |= _bound(args, pipeline, rows, chosen)
        settings = {"batch_size": args.batch_size, "seed": args.seed, **_settings(args)}
        found["steps"] = few_step_table(pipeline, args.steps, args.texts, scorer, index, **settings)
        report["models"][pipeline.info.name] = found


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    """Sampling settings asked for; the model's own hold for the others."""
    names = ("sampler", "temperature", "top_p", "refine_rounds")
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def _bound(args: argparse.Namespace, pipeline: Any, rows: Tensor, chosen: np.ndarray) -> dict[str, Any]:
    z = None
    if pipeline.info.latent_width:
        if args.latents is None:
            return {}  # without the texts' own z there is no valid bound
        z = read_latents(args.latents, "heldout")[torch.from_numpy(chosen)]
    smoothing = pipeline.info.training.get("smoothing", 0.3)
    return measure_bound(
        pipeline.transformer, rows, pipeline.tokenizer.eos_id, draws=args.draws, seed=args.seed, z=z,
        smoothing=smoothing,
    )  # fmt: skip


def _rows(tokens: Path, split: str) -> np.ndarray:
    return np.concatenate([codes for codes, _ in read_token_rows(tokens, split)])


def _bodies(tokens: Path) -> list[np.ndarray]:
    """Training texts as token ids without BOS and end tokens."""
    return [
        row[1 : length - 1]
        for codes, labels in read_token_rows(tokens, "train")
        for row, length in zip(codes, labels[:, 0], strict=True)
    ]
