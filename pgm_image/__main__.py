"""Command line of the image model: `python -m pgm_image COMMAND`."""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

# name: (module with add_arguments and run, one line of help)
COMMANDS = {
    "generate": ("pgm_image.generate_command", "generate pictures of a class"),
    "edit": ("pgm_image.edit_command", "repaint a part of a picture"),
    "variations": ("pgm_image.edit_command", "make pictures like a given one"),
    "outpaint": ("pgm_image.edit_command", "shift or shrink a picture and fill the rest"),
    "classes": ("pgm_image.list_commands", "list or search the classes of a model"),
    "models": ("pgm_image.list_commands", "list the bundled and published models"),
    "convert": ("pgm_image.convert_command", "turn a published weights file into a model folder"),
    "prepare-emoji": ("pgm_image.emoji.prepare", "build the emoji data set"),
    "train": ("pgm_image.train", "train a transformer on code shards"),
    "export": ("pgm_image.export", "turn a training run into a model folder"),
    "evaluate": ("pgm_image.evaluation.command", "measure a model: KID, FID, class and style accuracy, copying"),
    "sweep": ("pgm_image.evaluation.command", "measure a model over settings and name the best"),
    "card": ("pgm_image.model_card", "write the README of a model folder from its evaluation"),
    "benchmark": ("pgm_image.benchmark", "time a model on this machine"),
}


def parser_for(command: str) -> tuple[argparse.ArgumentParser, Callable[[argparse.Namespace], int | None]]:
    """The parser and the function of one command."""
    module_name, help_line = COMMANDS[command]
    module = import_module(module_name)
    parser = argparse.ArgumentParser(prog=f"python -m pgm_image {command}", description=help_line.capitalize() + ".")
    suffix = f"_{command}" if hasattr(module, f"run_{command}") else ""  # a module may hold several commands
    getattr(module, f"add{suffix}_arguments")(parser)
    return parser, getattr(module, f"run{suffix}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit code 2 and one sentence on bad input."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv or argv[0] in ("-h", "--help") or argv[0] not in COMMANDS:
        width = max(map(len, COMMANDS))
        lines = [f"  {name:{width}}  {line}" for name, (_, line) in COMMANDS.items()]
        print("usage: python -m pgm_image COMMAND [--help]\n\n" + "\n".join(lines))
        if argv and argv[0] not in ("-h", "--help"):
            print(f"\nno command named {argv[0]!r}", file=sys.stderr)
        return 0 if argv[:1] in (["-h"], ["--help"]) else 2
    parser, run = parser_for(argv[0])
    try:
        return run(parser.parse_args(argv[1:])) or 0
    except (ValueError, ModuleNotFoundError, FileNotFoundError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
