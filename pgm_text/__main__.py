"""Command line of the text models: `python -m pgm_text COMMAND`."""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

# name: (module, suffix of its add_arguments and run, one line of help)
COMMANDS = {
    "generate": ("pgm_text.generate_command", "", "generate texts"),
    "models": ("pgm_text.list_commands", "models", "list the models"),
    "prepare": ("pgm_text.prepare", "", "build a corpus, its tokenizer and token shards"),
    "train": ("pgm_text.train", "", "train PGM, MDLM, RMDM or the scorer"),
    "embed": ("pgm_text.embed", "embed", "embed every row of a corpus (RMDM)"),
    "fit-representation": ("pgm_text.embed", "representation", "map embeddings to Gaussian vectors (RMDM)"),
    "export": ("pgm_text.export", "", "turn a training run into a model folder"),
    "evaluate": ("pgm_text.evaluation.command", "", "measure models: bounds, generative perplexity, speed, copying"),
}


def parser_for(command: str) -> tuple[argparse.ArgumentParser, Callable[[argparse.Namespace], int | None]]:
    """The parser and the function of one command."""
    module_name, suffix, help_line = COMMANDS[command]
    module = import_module(module_name)
    parser = argparse.ArgumentParser(prog=f"python -m pgm_text {command}", description=help_line.capitalize() + ".")
    getattr(module, f"add_{suffix}_arguments" if suffix else "add_arguments")(parser)
    return parser, getattr(module, f"run_{suffix}" if suffix else "run")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit code 2 and one sentence on bad input."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv or argv[0] in ("-h", "--help") or argv[0] not in COMMANDS:
        width = max(map(len, COMMANDS))
        lines = [f"  {name:{width}}  {line}" for name, (*_, line) in COMMANDS.items()]
        print("usage: python -m pgm_text COMMAND [--help]\n\n" + "\n".join(lines))
        if argv and argv[0] not in ("-h", "--help"):
            print(f"\nno command named {argv[0]!r}", file=sys.stderr)
        return 0 if argv[:1] in (["-h"], ["--help"]) else 2
    parser, run = parser_for(argv[0])
    try:
        return run(parser.parse_args(argv[1:])) or 0
    except (ValueError, FileNotFoundError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
