"""What a command does when its surroundings fail it: one sentence, or silence for a reader that has left."""

import os
import subprocess
import sys
from types import ModuleType

import pytest

from pgm.command_line import run_command

LONG = """
import sys, types
from pgm.command_line import run_command
long = types.ModuleType("long")
long.add_arguments = lambda parser: None
long.run = lambda arguments: [print("line", i) for i in range(int(sys.argv[1]))] and 0
sys.modules["long"] = long
sys.exit(run_command("package", {"long": ("long", "many lines")}, ["long"]))
"""


@pytest.fixture
def failing(monkeypatch):
    def command(error):
        def run(arguments):
            raise error

        module = ModuleType("failing")
        module.add_arguments, module.run = lambda parser: None, run
        monkeypatch.setitem(sys.modules, "failing", module)
        return run_command("package", {"fail": ("failing", "fail as told")}, ["fail"])

    return command


@pytest.mark.parametrize("lines", [3, 100_000])  # what fits into the buffer, and what does not
def test_a_reader_that_has_left_ends_the_command_without_a_word(lines):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run([sys.executable, "-c", LONG, str(lines)], stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert done.stderr == "" and done.returncode == 141


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (PermissionError(13, "Permission denied", "kept.png"), "kept.png: Permission denied"),
        (IsADirectoryError(21, "Is a directory", "outputs"), "outputs: Is a directory"),
        (OSError(28, "No space left on device", "x.safetensors"), "x.safetensors: No space left on device"),
        (FileNotFoundError("no checkpoint in runs/x"), "no checkpoint in runs/x"),
        (ValueError("steps must be >= 1, got 0"), "steps must be >= 1, got 0"),
    ],
)
def test_what_fails_is_one_sentence_and_exit_code_2(failing, capsys, error, says):
    assert failing(error) == 2
    assert capsys.readouterr().err == f"python -m package fail: {says}\n"
