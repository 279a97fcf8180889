"""Command line of the image model: `python -m pgm_image COMMAND`."""

import argparse
import sys
from collections.abc import Sequence

from pgm import command_line

# name: (module, one line of help)
COMMANDS = {
    "generate": ("pgm_image.generate_command", "generate pictures of a class"),
    "edit": ("pgm_image.edit_command", "repaint a part of a picture"),
    "variations": ("pgm_image.edit_command", "make pictures like a given one"),
    "outpaint": ("pgm_image.edit_command", "shift or shrink a picture and fill the rest"),
    "classes": ("pgm_image.list_commands", "list or search the classes of a model"),
    "models": ("pgm_image.list_commands", "list the bundled and published models"),
    "convert": ("pgm_image.convert_command", "turn a published weights file into a model folder"),
    "prepare-emoji": ("pgm_image.emoji.prepare", "build the emoji data set"),
    "draw-codes": ("pgm_image.draw_codes", "draw code grids to train a tokenizer's decoder on"),
    "train": ("pgm_image.train", "train a transformer on code shards"),
    "export": ("pgm_image.export", "turn a training run into a model folder"),
    "evaluate": ("pgm_image.evaluation.command", "measure a model: KID, FID, class and style accuracy, copying"),
    "sweep": ("pgm_image.evaluation.command", "measure a model over settings and name the best"),
    "card": ("pgm_image.model_card", "write the README of a model folder from its evaluation"),
    "benchmark": ("pgm_image.benchmark", "time a model on this machine"),
}


def parser_for(command: str) -> tuple[argparse.ArgumentParser, command_line.Run]:
    """The parser and the function of one command."""
    return command_line.parser_for("pgm_image", COMMANDS, command)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit code 2 and one sentence on bad input."""
    return command_line.run_command("pgm_image", COMMANDS, argv)


if __name__ == "__main__":
    sys.exit(main())
