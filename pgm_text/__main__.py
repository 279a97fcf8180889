"""Command line of the text models: `python -m pgm_text COMMAND`."""

import argparse
import sys
from collections.abc import Sequence

from pgm import command_line

# name: (module, one line of help)
COMMANDS = {
    "generate": ("pgm_text.generate_command", "generate texts"),
    "models": ("pgm_text.list_commands", "list the models"),
    "prepare": ("pgm_text.prepare", "build a corpus, its tokenizer and token shards"),
    "train": ("pgm_text.train", "train PGM, MDLM, RMDM or the scorer"),
    "embed": ("pgm_text.embed", "embed every row of a corpus (RMDM)"),
    "fit-representation": ("pgm_text.embed", "map embeddings to Gaussian vectors (RMDM)"),
    "export": ("pgm_text.export", "turn a training run into a model folder"),
    "evaluate": ("pgm_text.evaluation.command", "measure models: bounds, generative perplexity, speed, copying"),
}


def parser_for(command: str) -> tuple[argparse.ArgumentParser, command_line.Run]:
    """The parser and the function of one command."""
    return command_line.parser_for("pgm_text", COMMANDS, command)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit code 2 and one sentence on bad input."""
    return command_line.run_command("pgm_text", COMMANDS, argv)


if __name__ == "__main__":
    sys.exit(main())
