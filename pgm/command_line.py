"""Command lines of the packages: `python -m PACKAGE COMMAND`, modules loaded only when their command is asked for."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

Run = Callable[[argparse.Namespace], int | None]
Commands = Mapping[str, tuple[str, str]]  # name: (module, one line of help)


def parser_for(package: str, commands: Commands, name: str) -> tuple[argparse.ArgumentParser, Run]:
    """Parser and function of one command.

    Its module has `add_arguments(parser)` and `run(args)`, or, when it holds several commands, `add_NAME_arguments`
    and `run_NAME` (dashes as underscores).
    """
    module_name, help_line = commands[name]
    module = import_module(module_name)
    parser = argparse.ArgumentParser(prog=f"python -m {package} {name}", description=help_line.capitalize() + ".")
    own = name.replace("-", "_")
    if hasattr(module, f"run_{own}"):
        getattr(module, f"add_{own}_arguments")(parser)
        return parser, getattr(module, f"run_{own}")
    module.add_arguments(parser)
    return parser, module.run


def run_command(package: str, commands: Commands, argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` (default: the process's arguments) names; returns the exit code.

    Bad input, a file that cannot be read or written or a missing package is one sentence on standard error and exit
    code 2. A reader that has had enough (`| head`) ends the command without a word.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv or argv[0] not in commands:
        width = max(map(len, commands))
        lines = [f"  {name:{width}}  {line}" for name, (_, line) in commands.items()]
        print(f"usage: python -m {package} COMMAND [--help]\n\n" + "\n".join(lines))
        if argv[:1] in (["-h"], ["--help"]):
            return 0
        if argv:
            print(f"\nno command named {argv[0]!r}", file=sys.stderr)
        return 2
    parser, run = parser_for(package, commands, argv[0])
    try:
        code = run(parser.parse_args(argv[1:])) or 0
        sys.stdout.flush()  # here, where a closed pipe is still caught
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered has no reader either
        return 128 + 13  # what a shell reports for SIGPIPE
    except (ValueError, ModuleNotFoundError, OSError) as error:
        print(f"{parser.prog}: {_sentence(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)
