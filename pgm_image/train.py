"""`python -m pgm_image train`: train a partition or masked transformer on code shards.

Also under `accelerate launch -m pgm_image train ...`, from one CPU to many nodes of GPUs.
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from pgm.attention import training_backend
from pgm.growth import grow
from pgm.models import build
from pgm.objectives import training_loss
from pgm.recipes import add_recipe_argument, with_arguments, write_recipe
from pgm.starting import start
from pgm.training import Batch, Trainer, mean_loss
from pgm.training_arguments import add_training_arguments
from pgm.weights import config_dict
from pgm_image.code_batches import DRAWS, CodeBatches, LabelDropout
from pgm_image.recipes import RECIPES, find_recipe
from pgm_image.sample_sheet import write_sample_sheet
from tokenizer.shards import read_manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command; every field of `TrainingConfig` overrides the recipe's."""
    add_recipe_argument(parser, RECIPES, "emoji64")
    parser.add_argument("--data", required=True, type=Path, help="code shards, made by `python -m tokenizer encode`")
    parser.add_argument("--draw", choices=DRAWS, help="how rows are drawn (default: the recipe's)")
    parser.add_argument(
        "--staged-share",
        type=float,
        help="share of the rows that are staged along the Halton order, as a sampler that encodes each code once meets "
        "them; the others are split into groups at random (default: the recipe's)",
    )
    parser.add_argument(
        "--beginnings",
        type=int,
        nargs="*",
        metavar="CODES",
        help="also passes of staged rows that end after so many codes in Halton order, in turn with whole rows; "
        "with an --accumulation of one more than these, every step makes each once (default: the recipe's)",
    )
    parser.add_argument("--out", required=True, type=Path, help="folder of the run; goes on if it holds a checkpoint")
    parser.add_argument("--tokenizer", type=Path, help="tokenizer folder, to draw sample sheets while training")
    parser.add_argument(
        "--start-from", type=Path, help="weights to start from, with a fresh optimiser; may have fewer layers"
    )
    add_training_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Train; returns 0 when finished, 3 when stopped by SIGTERM with everything saved."""
    if args.threads:
        torch.set_num_threads(args.threads)
    recipe = with_arguments(find_recipe(args.recipe), args)
    staged_share = recipe.staged_share if args.staged_share is None else args.staged_share
    beginnings = recipe.beginnings if args.beginnings is None else tuple(args.beginnings)
    recipe = replace(recipe, draw=args.draw or recipe.draw, staged_share=staged_share, beginnings=beginnings)
    training = recipe.training
    manifest = read_manifest(args.data)
    config = recipe.model_config(
        tuple(manifest["grid"]), manifest["codebook_size"], len(manifest["classes"]), len(manifest["styles"])
    )
    torch.manual_seed(training.seed)
    model = build(config_dict(config))
    model.set_attention_backend(training_backend("cuda" if torch.cuda.is_available() else "cpu"))
    seed = start(model, args.start_from, args.out, training, take=grow)
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    rows = {"mask_schedule": recipe.mask_schedule, "draw": recipe.draw}
    train = CodeBatches(
        args.data,
        training.batch_size,
        seed,
        dropout=recipe.labels,
        processes=processes,
        staged_share=recipe.staged_share,
        beginnings=recipe.beginnings,
        **rows,
    )
    held_out = None
    if manifest["splits"].get("heldout"):  # with groups at random whatever the recipe says, so that runs compare
        held_out = CodeBatches(args.data, 256, seed=1, split="heldout", dropout=LabelDropout(0, 0, 0), **rows)

    def report(averaged: nn.Module, folder: Path, step: int) -> dict[str, float]:
        if args.tokenizer:
            write_sample_sheet(averaged, args.tokenizer, manifest, folder / "sheets" / f"{step:07d}.png")
        return {"held_out_loss": mean_loss(averaged, held_out(0), _loss)} if held_out else {}

    trainer = Trainer(model, _loss, train, training, args.out, report)
    per_step = round(train.rows_per_pass * training.accumulation * processes)
    until = args.until or recipe.last_step(len(train.codes), per_step)
    if trainer.accelerator.is_main_process:
        write_recipe(args.out, args.recipe, recipe)
        print(
            f"{args.recipe}: {trainer.parameters:,} parameters, {len(train.codes):,} training images, "
            f"{per_step} a step ({processes} processes x {train.rows_per_pass:g} x {training.accumulation} passes), "
            f"{trainer.config.precision}, from step {trainer.step} to {until}"
        )
    finished = trainer.run(until)
    return 0 if finished else 3


def _loss(model: nn.Module, batch: Batch) -> Tensor:
    return training_loss(model, **batch)
