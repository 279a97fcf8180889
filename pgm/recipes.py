"""Training recipes of any package: found by name or in a JSON file, changed by arguments, written beside a run.

A recipe is a frozen dataclass with at least `sizes`, what the model's config gets, and `training`, a `TrainingConfig`.
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from pgm.training_arguments import parse_sizes, training_config

Recipe = TypeVar("Recipe")
FILE = "recipe.json"
NAME = "recipe"  # in a file: the name of the recipe that the run started from, which is not a setting


def add_recipe_argument(parser: argparse.ArgumentParser, names: Iterable[str], default: str) -> None:
    """The argument that `find_recipe` takes."""
    text = f"one of {', '.join(names)} (default: %(default)s), or a JSON file such as {FILE} of a run"
    parser.add_argument("--recipe", "--config", default=default, help=text)


def find_recipe(name: str, recipes: Mapping[str, Recipe], kind: type[Recipe]) -> Recipe:
    """A recipe by name, or from a JSON file as `write_recipe` leaves it. ValueError listing all names."""
    if name.endswith(".json"):
        return read_recipe(name, kind)
    if name not in recipes:
        raise ValueError(f"recipe must be one of {', '.join(recipes)} or a JSON file, got {name!r}")
    return recipes[name]


def with_arguments(recipe: Recipe, args: argparse.Namespace) -> Recipe:
    """The recipe with the sizes and training settings of `add_training_arguments`. ValueError for what cannot be."""
    sizes = {**recipe.sizes, **parse_sizes(args.sizes)}
    return replace(recipe, sizes=sizes, training=training_config(args, recipe.training))


def write_recipe(folder: Path, name: str, recipe: Any) -> None:
    """Write recipe.json: every setting, and the `name` of the recipe that was asked for."""
    values = {NAME: Path(name).name, **asdict(recipe)}
    (folder / FILE).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def read_recipe(path: str | Path, kind: type[Recipe]) -> Recipe:
    """A recipe from a JSON file; settings it leaves out are the defaults. ValueError for what no recipe has."""
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"recipe {str(path)!r} cannot be read: {error}") from error
    needed = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    if not isinstance(values, dict) or not set(needed) <= values.keys():
        raise ValueError(f"recipe {str(path)!r} must hold an object with {' and '.join(needed)}")
    values.pop(NAME, None)
    return _build(kind, values, "recipe", path)


def _build(kind: type, values: Any, what: str, path: str | Path) -> Any:
    """A dataclass, with those inside it, from JSON values."""
    if not isinstance(values, dict):
        raise ValueError(f"recipe {str(path)!r}: {what} must be an object, got {values!r}")
    types = get_type_hints(kind)
    unknown = sorted(set(values) - types.keys())
    if unknown:
        raise ValueError(f"recipe {str(path)!r}: {what} has no setting {unknown[0]!r}")
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    for name, value in values.items():
        if is_dataclass(types[name]):
            given[name] = _build(types[name], value, name, path)
    try:
        return kind(**given)
    except TypeError as error:  # a word where a number belongs
        raise ValueError(f"recipe {str(path)!r}: {what}: {error}") from error
