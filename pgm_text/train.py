"""`python -m pgm_text train`: train PGM, MDLM, complementary MDLM, RMDM or the scorer on a prepared corpus.

Also under `accelerate launch -m pgm_text train ...`, from one CPU to many nodes of GPUs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pgm.attention import training_backend
from pgm.models import build
from pgm.recipes import add_recipe_argument, with_arguments, write_recipe
from pgm.starting import start
from pgm.training import Trainer, mean_loss
from pgm.training_arguments import add_training_arguments
from pgm.weights import load_into
from pgm_text import scorer
from pgm_text.algorithms import ALGORITHMS
from pgm_text.export import info_of
from pgm_text.latent_files import read_latents
from pgm_text.packing import read_manifest
from pgm_text.pipeline import TextPipeline
from pgm_text.recipes import RECIPES, TextRecipe, find_recipe
from pgm_text.text_batches import TextBatches
from pgm_text.tokenizer import Tokenizer

HELD_OUT_ROWS = 256


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command; every field of `TrainingConfig` overrides the recipe's."""
    add_recipe_argument(parser, RECIPES, "dictionary-pgm")
    parser.add_argument("--data", required=True, type=Path, help="corpus folder, made by `prepare`")
    parser.add_argument("--out", required=True, type=Path, help="folder of the run; goes on if it holds a checkpoint")
    parser.add_argument("--latents", type=Path, help="folder of `fit-representation` (RMDM)")
    parser.add_argument("--start-from", type=Path, help="weights to start from, with a fresh optimiser")
    add_training_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Train; returns 0 when finished, 3 when stopped by SIGTERM with everything saved."""
    if args.threads:
        torch.set_num_threads(args.threads)
    recipe = with_arguments(find_recipe(args.recipe), args)
    training = recipe.training
    tokens = args.data / "tokens"
    manifest = read_manifest(tokens)
    latents = _latents(recipe, args.latents)
    torch.manual_seed(training.seed)
    model = build(recipe.model_config(manifest, latents["train"].shape[1] if latents else 0))
    model.set_attention_backend(training_backend("cuda" if torch.cuda.is_available() else "cpu"))

    def take(trained: nn.Module, model: nn.Module) -> None:
        load_into(model, trained.state_dict(), args.start_from)

    seed = start(model, args.start_from, args.out, training, take)
    train = TextBatches(
        tokens, training.batch_size, seed, "train", latents.get("train"), recipe.latent_dropout,
        recipe.smoothing,
    )  # fmt: skip
    held_out = TextBatches(
        tokens, HELD_OUT_ROWS, 1, "heldout", latents.get("heldout"), latent_dropout=0, smoothing=recipe.smoothing
    )
    loss = scorer.loss if recipe.algorithm == "scorer" else ALGORITHMS[recipe.algorithm].loss
    tokenizer = Tokenizer.load(args.data)

    def report(averaged: nn.Module, folder: Path, step: int) -> dict[str, float]:
        if recipe.algorithm != "scorer":
            _write_samples(averaged, tokenizer, manifest, folder / "samples" / f"{step:07d}.txt")
        return {"held_out_loss": mean_loss(averaged, held_out(0), loss)}

    trainer = Trainer(model, loss, train, training, args.out, report)
    first = trainer.accelerator.is_main_process
    if first:
        write_recipe(args.out, args.recipe, recipe)
        print(
            f"{args.recipe}: {trainer.parameters:,} parameters, {len(train.rows):,} training rows, "
            f"{trainer.config.precision}, from step {trainer.step}"
        )
    began, before = trainer.seconds, trainer.step
    finished = trainer.run(args.until)
    if first and trainer.step > before and trainer.seconds > began:
        rows = training.batch_size * training.accumulation * trainer.accelerator.num_processes
        seen = (trainer.step - before) * rows * (manifest["grid"][1] - 1)
        print(f"{seen / (trainer.seconds - began):,.0f} tokens per second in this run, start-up included")
    return 0 if finished else 3


def _write_samples(model: nn.Module, tokenizer: Tokenizer, manifest: dict[str, Any], path: Path) -> None:
    training = model.training
    pipeline = TextPipeline(model, tokenizer, info_of(model, manifest, "run", "a training run"))
    texts = pipeline.generate(num_texts=8, steps=32, seed=0)
    model.train(training)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")


def _latents(recipe: TextRecipe, folder: Path | None) -> dict[str, Tensor]:
    if recipe.algorithm != "rmdm":
        if folder is not None:
            raise ValueError(f"--latents is for RMDM; {recipe.algorithm} has no latent")
        return {}
    if folder is None:
        raise ValueError("RMDM needs latents: run `fit-representation` and give its folder with --latents")
    return {split: read_latents(folder, split) for split in ("train", "heldout")}
