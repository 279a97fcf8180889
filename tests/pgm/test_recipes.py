"""Recipes of any package: by name, in a file and back, changed by arguments, and one sentence for what cannot be."""

import argparse
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from pgm.recipes import add_recipe_argument, find_recipe, read_recipe, with_arguments, write_recipe
from pgm.training import TrainingConfig
from pgm.training_arguments import add_training_arguments


@dataclass(frozen=True)
class Dropout:
    share: float = 0.1


@dataclass(frozen=True)
class Recipe:
    kind: str
    sizes: dict[str, Any]
    training: TrainingConfig = field(default_factory=TrainingConfig)
    dropout: Dropout = field(default_factory=Dropout)

    def __post_init__(self) -> None:
        if self.kind == "poem":
            raise ValueError("kind must not be 'poem'")


SMALL = Recipe("pgm", {"width": 8}, TrainingConfig(steps=7, betas=(0.8, 0.9)), Dropout(0.5))
RECIPES = {"small": SMALL}


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_recipe_argument(parser, RECIPES, "small")
    add_training_arguments(parser)
    return parser.parse_args(words)


def test_a_recipe_is_found_by_name_and_comes_back_from_its_file(tmp_path):
    assert find_recipe("small", RECIPES, Recipe) is SMALL
    write_recipe(tmp_path, "small", SMALL)
    path = tmp_path / "recipe.json"
    assert find_recipe(str(path), RECIPES, Recipe) == read_recipe(path, Recipe) == SMALL
    assert json.loads(path.read_text())["recipe"] == "small"
    with pytest.raises(ValueError, match="recipe must be one of small or a JSON file, got 'huge'"):
        find_recipe("huge", RECIPES, Recipe)


def test_a_file_does_not_tell_where_it_lay(tmp_path):
    write_recipe(tmp_path, str(tmp_path / "mine.json"), SMALL)
    assert json.loads((tmp_path / "recipe.json").read_text())["recipe"] == "mine.json"


def test_what_a_file_leaves_out_is_the_default(tmp_path):
    path = tmp_path / "short.json"
    path.write_text(json.dumps({"kind": "pgm", "sizes": {}, "training": {"steps": 3}}))
    assert read_recipe(path, Recipe) == Recipe("pgm", {}, TrainingConfig(steps=3), Dropout())


def test_arguments_change_sizes_and_training():
    args = arguments("--config", "small", "--sizes", "width=16,heads=2", "--lr", "0.5", "--global-batch", "6")
    changed = with_arguments(find_recipe(args.recipe, RECIPES, Recipe), args)
    assert changed.sizes == {"width": 16, "heads": 2} and SMALL.sizes == {"width": 8}
    assert (changed.training.lr, changed.training.steps, changed.training.betas) == (0.5, 7, (0.8, 0.9))
    assert changed.training.batch_size * changed.training.accumulation == 6
    assert changed.dropout == SMALL.dropout


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"kind": "pgm"}, "must hold an object with kind and sizes"),
        (["kind", "sizes"], "must hold an object with kind and sizes"),
        ({"kind": "pgm", "sizes": {}, "speed": 1}, "recipe has no setting 'speed'"),
        ({"kind": "pgm", "sizes": {}, "dropout": {"part": 1}}, "dropout has no setting 'part'"),
        ({"kind": "pgm", "sizes": {}, "training": 3}, "training must be an object, got 3"),
        ({"kind": "pgm", "sizes": {}, "training": {"steps": "many"}}, "training: '>' not supported"),
        ({"kind": "pgm", "sizes": {}, "training": {"steps": 0}}, "steps must be positive, got 0"),
        ({"kind": "poem", "sizes": {}}, "kind must not be 'poem'"),
    ],
)
def test_a_file_that_cannot_be_is_one_sentence(values, says, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match=says):
        read_recipe(path, Recipe)


def test_a_file_that_is_no_json_or_is_not_there_is_one_sentence(tmp_path):
    (tmp_path / "bad.json").write_bytes(b"\xff{")
    for name in ("bad.json", "missing.json"):
        with pytest.raises(ValueError, match="cannot be read"):
            read_recipe(tmp_path / name, Recipe)
