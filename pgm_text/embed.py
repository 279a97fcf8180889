"""`python -m pgm_text embed` and `fit-representation`: RMDM's first stage (arXiv 2609.12382), from rows to z_0."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import torch

from pgm.meanflow_checks import cycle_error, smallest_singular_value, step_difference
from pgm_text.embeddings import read_embeddings, write_embeddings
from pgm_text.latent_files import write_latents
from pgm_text.representation import Representation, fit_representation
from pgm_text.sentence_encoder import SentenceEncoder
from pgm_text.tokenizer import Tokenizer


def add_embed_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `embed`."""
    parser.add_argument("--data", required=True, type=Path, help="corpus folder, made by `prepare`")
    parser.add_argument("--out", required=True, type=Path, help="folder to write; goes on where it was stopped")
    parser.add_argument("--encoder", type=Path, help="folder of a MiniLM (default: the packaged all-MiniLM-L6-v2)")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--dtype",
        default="float32",
        choices=("float32", "bfloat16"),
        help="bfloat16 halves the time where the device has it in hardware (cosine > 0.999)",
    )
    parser.add_argument("--threads", type=int, help="CPU threads")


def run_embed(args: argparse.Namespace) -> int:
    """Embed every row of the corpus."""
    if args.threads:
        torch.set_num_threads(args.threads)
    encoder = SentenceEncoder.minilm(args.encoder).to(args.device, getattr(torch, args.dtype))
    write_embeddings(
        args.data / "tokens",
        args.out,
        Tokenizer.load(args.data),
        encoder,
        batch_size=args.batch_size,
        report=lambda split, done: print(f"{split}: {done:,} rows", flush=True),
    )
    print(args.out)
    return 0


def add_fit_representation_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `fit-representation`."""
    parser.add_argument("--embeddings", required=True, type=Path, help="folder of `embed`")
    parser.add_argument("--out", required=True, type=Path, help="folder to write: representation, latents, report")
    parser.add_argument("--dimension", type=int, help="size of z (default: what holds --variance)")
    parser.add_argument("--variance", type=float, default=0.9)
    parser.add_argument("--noise", type=float, default=0.2, help="added to whitened embeddings (default: %(default)s)")
    parser.add_argument("--flow-steps", type=int, default=4, help="jumps to the Gaussian; the paper takes 1")
    parser.add_argument("--flow-width", type=int, default=512)
    parser.add_argument("--flow-blocks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, help="CPU threads")


def run_fit_representation(args: argparse.Namespace) -> int:
    """Fit whitening and flow, write z_0 of all rows, and check on held-out rows that they arrived."""
    if args.threads:
        torch.set_num_threads(args.threads)
    encoder = json.loads((args.embeddings / "manifest.json").read_text())["encoder"]
    embeddings = {split: read_embeddings(args.embeddings, split).float() for split in ("train", "heldout")}
    representation = fit_representation(
        embeddings["train"],
        encoder=encoder,
        dimension=args.dimension,
        variance=args.variance,
        noise=args.noise,
        flow_steps=args.flow_steps,
        flow_width=args.flow_width,
        flow_blocks=args.flow_blocks,
        steps=args.steps,
        batch_size=args.batch_size,
        learning_rate=args.lr,
        seed=args.seed,
        device=args.device,
        report=lambda step, loss: print(f"step {step:,}: loss {loss:.4f}", flush=True),
    )
    representation.save(args.out)
    for split, rows in embeddings.items():
        write_latents(args.out, split, representation(rows, seed=args.seed))
    report = check_representation(representation, embeddings["heldout"])
    (args.out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    for name, value in report.items():
        print(f"{name:24} {value:.4f}" if isinstance(value, float) else f"{name:24} {value}")
    print(args.out)
    return 0 if report["passed"] else 1


def check_representation(representation: Representation, held_out: torch.Tensor) -> dict[str, float | int | bool]:
    """Whether held-out embeddings (n, D) reach N(0, I), come back, and do not fold on the way."""
    report = representation.check(held_out)
    white = representation.whitening(held_out[:512]) / (1 + representation.config.noise**2) ** 0.5
    flow = representation.flow
    return {
        **asdict(report),
        "passed": report.passed,
        "cycle_error": cycle_error(flow, white),
        "one_step_difference": step_difference(flow, white, few=1),
        "few_steps_difference": step_difference(flow, white, few=representation.config.flow_steps),
        "smallest_singular_value": smallest_singular_value(flow, white[:32]),
    }
