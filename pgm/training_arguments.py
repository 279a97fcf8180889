"""Command-line arguments of a training: every field of `TrainingConfig`, and sizes that differ from a recipe's."""

import argparse
import os
from dataclasses import fields, replace

from pgm.models import ARCHITECTURES
from pgm.training import TrainingConfig


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    """One optional argument per field; what is not given stays the recipe's."""
    parser.add_argument("--sizes", default="", help="sizes that differ from the recipe's, as name=value,name=value")
    parser.add_argument("--until", type=int, help="stop at this step although the schedule goes on")
    parser.add_argument("--threads", type=int, help="CPU threads")
    group = parser.add_argument_group("training (defaults come from the recipe)")
    standard = TrainingConfig()
    for field in fields(TrainingConfig):
        value = getattr(standard, field.name)
        flag = f"--{field.name.replace('_', '-')}"
        if isinstance(value, bool):
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None)
        elif isinstance(value, tuple):
            group.add_argument(flag, type=float, nargs=len(value))
        else:
            group.add_argument(flag, type=type(value))


def training_config(args: argparse.Namespace, recipe: TrainingConfig) -> TrainingConfig:
    """The recipe's config with what the command line gives, divided among the processes that were launched.

    Raises ValueError for a value that cannot be.
    """
    given = {f.name: getattr(args, f.name) for f in fields(TrainingConfig) if getattr(args, f.name) is not None}
    config = replace(recipe, **{name: tuple(v) if isinstance(v, list) else v for name, v in given.items()})
    return config.divided(int(os.environ.get("WORLD_SIZE", "1")))


def parse_sizes(text: str) -> dict[str, int | float | str]:
    """Parse "name=value,name=value". Raises ValueError for a name that no architecture has."""
    known = {f.name for kind, _ in ARCHITECTURES.values() for f in fields(kind)}
    sizes: dict[str, int | float | str] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in known or not value:
            raise ValueError(f"sizes must be like layers=4,dropout=0.1, got {part!r}")
        sizes[name] = float(value) if "." in value else int(value) if value.isdigit() else value
    return sizes
