"""`python -m pgm_text models`: what can be asked for."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from pgm_text.registry import models


def add_models_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `models`."""
    parser.add_argument("--json", action="store_true")


def run_models(args: argparse.Namespace) -> int:
    """Print the bundled models and the published checkpoints with their recommended settings."""
    found = models(public=True)
    if args.json:
        print(json.dumps([asdict(info) for info in found]))
        return 0
    for info in found:
        settings = ", ".join(f"{key} {value}" for key, value in info.recommended.items())
        size = f"{info.parameters / 1e6:.1f} M parameters, " if info.parameters else "downloaded on first use, "
        print(f"{info.name}: {info.title}")
        print(f"  {size}up to {info.length} tokens; licence {info.licence}")
        print(f"  recommended: {settings}")
    return 0
