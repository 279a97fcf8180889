"""`python -m pgm_image classes` and `models`: what can be asked for."""

import argparse
import json
from dataclasses import asdict

from pgm_image.labels import nearest_names
from pgm_image.model_info import ModelInfo
from pgm_image.public_loading import is_here
from pgm_image.public_models import PUBLIC_MODELS, PUBLIC_TOKENIZERS
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
    """Print bundled and published models: what they are, whether they are here, and their recommended settings."""
    bundled = models()
    public = [(model, is_here(model)) for model in PUBLIC_MODELS.values()]
    if args.json:
        rows = [{**asdict(info), "bundled": True, "cached": True} for info in bundled]
        rows += [{**_without_labels(model.info()), "bundled": False, "cached": here} for model, here in public]
        print(json.dumps(rows))
        return 0
    for info in bundled:
        _print_model(info, "bundled")
    for model, here in public:
        size = f"at least {model.download_bytes / 1e9:.1f} GB to download"
        _print_model(model.info(), f"on this machine ({model.repo})" if here else f"{size} from {model.repo}")
    print("tokenizers:")
    for tokenizer in PUBLIC_TOKENIZERS.values():
        config = tokenizer.config
        where = f"{tokenizer.repo}, {tokenizer.file}" if tokenizer.repo else "by hand, then python -m tokenizer convert"
        print(
            f"  {tokenizer.name}: {tokenizer.parameters / 1e6:.1f} M parameters, {config.codebook_size} codes, "
            f"{config.factor} pixels per code; licence {tokenizer.licence}; {where}"
        )
    return 0


def _print_model(info: ModelInfo, where: str) -> None:
    settings = ", ".join(f"{key} {value}" for key, value in info.recommended.items())
    styles = f", {len(info.styles)} styles" if info.styles else ""
    print(f"{info.name}: {info.title}")
    print(f"  {info.parameters / 1e6:.1f} M parameters, {info.image_size} px, {info.grid[0]}x{info.grid[1]} codes")
    print(f"  {len(info.classes)} classes{styles}; published FID {info.fid or 'not stated'}; licence {info.licence}")
    print(f"  {where}")
    print(f"  recommended: {settings}")
    if info.editing:
        print(f"  for edits: {', '.join(f'{key} {value}' for key, value in info.editing.items())}")


def _without_labels(info: ModelInfo) -> dict[str, object]:
    # The same thousand names and their synonyms under every published model; `classes` lists them.
    return {key: value for key, value in asdict(info).items() if key not in ("classes", "words")}
