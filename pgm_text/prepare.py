"""`python -m pgm_text prepare`: build a corpus with its tokenizer and token shards."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pgm_text.corpus import prepare


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--corpus", default="dictionary", help="dictionary (WordNet) or prose (default: %(default)s)")
    parser.add_argument("--out", required=True, type=Path, help="folder to write, e.g. data/dictionary")
    parser.add_argument("--source", type=Path, help="folder with the raw texts (default: installed, or fetched)")
    parser.add_argument("--vocab-size", type=int, help="entries of the vocabulary, the mask included")
    parser.add_argument("--length", type=int, help="positions of a row, BOS included")
    parser.add_argument("--cache", type=Path, help="where fetched packages are kept")


def run(args: argparse.Namespace) -> int:
    """Build it and print what it holds."""
    try:
        manifest = prepare(
            args.out, args.corpus, source=args.source, vocab_size=args.vocab_size, length=args.length, cache=args.cache
        )
    except FileNotFoundError as error:
        raise ValueError(str(error)) from error
    print(json.dumps({"out": str(args.out), **manifest["counts"]}))
    return 0
