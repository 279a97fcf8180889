"""The README runs: its Python is executed, its command lines are parsed by the commands they name, its links exist."""

import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BUNDLED = (ROOT / "assets" / "emoji64" / "model_index.json").is_file()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def command_lines() -> list[list[str]]:
    """Every `python -m ...` of the bash blocks as words, continuation lines joined, comments and launchers removed."""
    text = "\n".join(blocks("bash")).replace("\\\n", " ")
    lines = [shlex.split(line, comments=True) for line in text.splitlines() if " -m " in line]
    return [line[line.index("-m") + 1 :] for line in lines if line]


@pytest.mark.skipif(not BUNDLED, reason="no model is bundled")
@pytest.mark.parametrize("code", blocks("python"))
def test_its_python_runs(code, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=_environment(), capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", command_lines(), ids=" ".join)
def test_its_command_lines_are_understood(words):
    module, *arguments = words
    if module.startswith("benchmarks"):
        assert import_module(module).main
    elif module == "tokenizer":
        import_module("tokenizer.__main__").parser().parse_args(arguments)
    elif module in ("pgm_image", "pgm_text"):
        parser, _ = import_module(f"{module}.__main__").parser_for(arguments[0])
        parser.parse_args(arguments[1:])
    else:
        assert module in ("venv", "pip", "pytest")


def test_it_names_command_lines_at_all():
    assert len(command_lines()) >= 5 and blocks("python")


@pytest.mark.parametrize("target", re.findall(r"\]\((?!https?:|#)([^)#]+)\)", README))
def test_its_files_exist(target):
    assert (ROOT / target).exists()


def test_the_messages_it_explains_are_messages_of_the_code():
    section = README.partition("## When something goes wrong")[2].partition("\n## ")[0]
    quoted = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    packages = ("pgm", "pgm_image", "pgm_text", "tokenizer", "scripts")
    sources = "".join(path.read_text(encoding="utf-8") for name in packages for path in (ROOT / name).rglob("*.py"))
    assert len(quoted) >= 5
    assert [message for message in quoted if message not in sources] == []


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
