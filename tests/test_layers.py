"""The shape of the house: which package may import which, and what no file of the repository may contain."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Who may import whom: arrows run one way, from the page to the ground floor; nobody imports benchmarks.
MAY_IMPORT = {
    "pgm": set(),
    "tokenizer": {"pgm"},
    "pgm_image": {"tokenizer", "pgm"},
    "pgm_text": {"tokenizer", "pgm"},
    "app": {"pgm_image", "pgm_text", "tokenizer", "pgm"},
    "app.py": {"app", "pgm_image", "pgm_text", "tokenizer", "pgm"},
    "benchmarks": {"pgm_image", "pgm_text", "tokenizer", "pgm"},
    "scripts": set(),
}
HOUSE = set(MAY_IMPORT) - {"app.py"}

TEXT_SUFFIXES = {
    ".py",
    ".md",
    ".toml",
    ".txt",
    ".json",
    ".cfg",
    ".ini",
    ".yml",
    ".yaml",
    ".sh",
    ".css",
    ".js",
    ".html",
    ".svg",
    "",
}
MEGABYTE = 2**20


@cache
def repository_files() -> tuple[Path, ...]:
    """Files that `git add .` would track; in a copy without git, all but hidden and prepared ones."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
        names = [Path(name) for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [path.relative_to(ROOT) for path in ROOT.rglob("*")]
        skipped = {"data", "runs", "outputs", "__pycache__"}
        names = [name for name in names if name.parts[0] not in skipped and "__pycache__" not in name.parts]
        names = [name for name in names if not name.parts[0].startswith(".") or name.parts[0] == ".ci"]
    return tuple(name for name in names if (ROOT / name).is_file())


def python_files() -> list[Path]:
    return [name for name in repository_files() if name.suffix == ".py"]


@cache
def syntax(name: Path) -> ast.Module:
    return ast.parse((ROOT / name).read_text(encoding="utf-8"), filename=str(name))


def imported_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and full name of what a file imports, at its top or in functions; relative imports stay inside."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, node.module or ""
        elif isinstance(node, ast.Call) and called(node).endswith(("import_module", "__import__")):
            yield from ((node.lineno, str(value.value)) for value in node.args if isinstance(value, ast.Constant))


def called(node: ast.Call) -> str:
    return ast.unparse(node.func)


def forbidden_imports(place: str, tree: ast.Module) -> list[str]:
    """Imports in a file of package `place` that go against the arrows, as 'line: name'."""
    allowed = MAY_IMPORT[place] | {place}
    tops = [(line, name, name.partition(".")[0]) for line, name in imported_names(tree)]
    return [f"{line}: {name}" for line, name, top in tops if top in HOUSE and top not in allowed]


def unsafe_loads(tree: ast.Module) -> list[str]:
    """Calls that could run code hidden in a file of weights or arrays, as 'line: call'."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        options = {keyword.arg: keyword.value for keyword in node.keywords}
        says = {name: value.value for name, value in options.items() if isinstance(value, ast.Constant)}
        name = called(node)
        unsafe = (
            (name == "torch.load" and says.get("weights_only") is not True)
            or says.get("weights_only") is False
            or says.get("allow_pickle") is True
            or name in ("pickle.load", "pickle.loads", "pickle.Unpickler")
        )
        if unsafe:
            found.append(f"{node.lineno}: {name}")
    return found


# Written in pieces, so that this file does not hold what it looks for.
PLACES = "|".join([r"work\b", r"root\b", r"farm\b", r"home/\w", r"Users/\w", "tmp/[a-z]"])
REGISTRIES = [r"pypi\." + "org", "python" + "hosted", r"registry\." + "npmjs", r"deb\." + r"debian\.org"]
MACHINE_WORDS = re.compile(rf"(?<![\w.:~}}$)-])/(?:{PLACES})|" + "|".join(REGISTRIES))


def machine_words(text: str) -> list[str]:
    """Paths that exist on one machine only and hosts of package registries, as 'line: text'."""
    lines = enumerate(text.splitlines(), 1)
    return [f"{number}: {match.group()}" for number, line in lines for match in MACHINE_WORDS.finditer(line)]


def report(findings: dict[Path, list[str]]) -> str:
    return "\n".join(f"{name}:{finding}" for name, found in findings.items() for finding in found)


def place_of(name: Path) -> str:
    return name.parts[0]


def test_imports_run_one_way():
    house = [name for name in python_files() if place_of(name) in MAY_IMPORT]
    assert {place_of(name) for name in house} >= {"pgm", "tokenizer", "pgm_image"}
    found = {name: forbidden_imports(place_of(name), syntax(name)) for name in house}
    assert not any(found.values()), f"imports against the arrows of the house:\n{report(found)}"


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("pgm", "import tokenizer.vqgan"),
        ("pgm", "def late():\n    from pgm_image import load"),
        ("pgm_image", "from pgm_text.pipeline import TextPipeline"),
        ("pgm_text", "import importlib\nimportlib.import_module('pgm_image')"),
        ("tokenizer", "import pgm_image as images"),
        ("pgm_image", "from app import page"),
        ("benchmarks", "import app"),
        ("app", "import benchmarks.speed"),
    ],
)
def test_an_import_against_the_arrows_is_found(place, line):
    assert len(forbidden_imports(place, ast.parse(line))) == 1


def test_imports_along_the_arrows_and_of_libraries_are_allowed():
    lines = [
        "import torch, pgm.sampling",
        "from tokenizer import load",
        "from . import app",
        "import pgm_image.pipeline",
    ]
    assert forbidden_imports("pgm_image", ast.parse("\n".join(lines))) == []


def test_every_folder_of_python_files_has_its_place():
    known = {*HOUSE, "tests", "app.py"}
    strangers = sorted({str(name) for name in python_files() if place_of(name) not in known})
    assert strangers == [], "folders or files that the design does not name"


def test_no_file_is_a_drawer_for_everything():
    drawers = {"utils", "util", "helpers", "helper", "misc", "common"}
    found = [str(name) for name in python_files() if drawers & {part.removesuffix(".py") for part in name.parts}]
    assert found == []


def test_every_python_file_starts_with_a_docstring():
    silent = [str(name) for name in python_files() if not ast.get_docstring(syntax(name))]
    assert silent == []


def test_no_python_file_is_longer_than_400_lines():
    lengths = {str(name): len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in python_files()}
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_no_file_is_larger_than_10_megabytes():
    sizes = {str(name): (ROOT / name).stat().st_size for name in repository_files()}
    assert {name: size for name, size in sizes.items() if size > 10 * MEGABYTE} == {}


def test_nothing_read_from_disk_can_run_code():
    found = {name: unsafe_loads(syntax(name)) for name in python_files()}
    assert not any(found.values()), f"loads that trust the file:\n{report(found)}"


@pytest.mark.parametrize(
    "line",
    [
        "torch.load(path)",
        "torch.load(path, weights_only=trust)",
        "load(path, weights_only=" + "False)",
        "numpy.load(path, allow_pickle=True)",
        "pickle.loads(data)",
    ],
)
def test_a_load_that_trusts_the_file_is_found(line):
    assert len(unsafe_loads(ast.parse(line))) == 1
    assert unsafe_loads(ast.parse("torch.load(path, map_location='cpu', weights_only=True); numpy.load(path)")) == []


def test_no_file_names_one_machine_or_a_package_registry():
    found = {}
    for name in repository_files():
        if name.suffix in TEXT_SUFFIXES and (ROOT / name).stat().st_size < MEGABYTE:
            found[name] = machine_words((ROOT / name).read_text(encoding="utf-8", errors="ignore"))
    assert len(found) > 10
    assert not any(found.values()), f"words of one machine:\n{report(found)}"


@pytest.mark.parametrize("place", ["work", "root", "home/someone", "Users/someone", "tmp/scratch"])
def test_a_path_of_one_machine_is_found(place):
    assert machine_words(f'open("/{place}/file.txt")') != []
    assert machine_words(f"see https://example.com/{place}/page and ./{place}/x and $HOME/{place}/y") == []
