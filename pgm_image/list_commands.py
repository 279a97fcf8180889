"""`python -m pgm_image classes` and `models`: what can be asked for."""

import argparse
import json
from dataclasses import asdict

from pgm_image.labels import nearest_names
from pgm_image.registry import DEFAULT_MODEL, model_info, models


def add_classes_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `classes`."""
    parser.add_argument("search", nargs="?", help="show only classes that match this word, e.g. eagle")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="bundled name, folder or hub id (default: %(default)s)")
    parser.add_argument("--json", action="store_true")


def run_classes(args: argparse.Namespace) -> int:
    """Print ids and names; exit code 1 when nothing matches."""
    info = model_info(args.model)
    rows = list(enumerate(info.classes))
    if args.search:
        word = args.search.casefold()
        found = set(nearest_names(word, info.classes, info.words, limit=len(info.classes)))
        rows = [row for row in rows if row[1] in found]
    if args.json:
        print(json.dumps([{"id": i, "name": name, "words": info.words.get(name, ())} for i, name in rows]))
    else:
        for i, name in rows:
            words = ", ".join(info.words.get(name, ())[:6])
            print(f"{i:4}  {name:28} {words}".rstrip())
        if not args.search and info.styles:
            print("\nstyles: " + ", ".join(info.styles))
    return 0 if rows else 1


def add_models_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `models`."""
    parser.add_argument("--json", action="store_true")


def run_models(args: argparse.Namespace) -> int:
    """Print the bundled models with what they are and their recommended settings."""
    found = models()
    if args.json:
        print(json.dumps([asdict(info) for info in found]))
        return 0
    for info in found:
        settings = ", ".join(f"{key} {value}" for key, value in info.recommended.items())
        print(f"{info.name}: {info.title}")
        print(f"  {info.parameters / 1e6:.1f} M parameters, {info.image_size} px, {info.grid[0]}x{info.grid[1]} codes")
        print(f"  {len(info.classes)} classes, {len(info.styles)} styles; licence {info.licence}")
        print(f"  recommended: {settings}")
    return 0
