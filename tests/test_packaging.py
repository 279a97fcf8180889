"""Packaging: pins, ranges and the Space's header agree; optional packages stay optional."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
PACKAGES = [
    name for name in ("pgm", "tokenizer", "pgm_image", "pgm_text", "app") if (ROOT / name / "__init__.py").is_file()
]
LIBRARIES = [name for name in PACKAGES if name != "app"]

# Imported where they are used, if they are there; nothing but speed or a cross-check depends on them.
OPTIONAL = {"flash_attn", "xformers", "taming", "spaces", "lpips"}


def requirements(*lines: str) -> dict[str, Requirement]:
    parsed = [Requirement(line) for line in lines]
    return {canonicalize_name(requirement.name): requirement for requirement in parsed}


def pins(name: str) -> dict[str, Requirement]:
    lines = [re.sub(r"(^|\s)#.*", "", line).strip() for line in (ROOT / name).read_text().splitlines()]
    return requirements(*filter(None, lines))


def front_matter() -> dict[str, object]:
    _, header, _ = (ROOT / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(header)


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=280)


def test_the_space_header_names_the_pinned_gradio():
    assert str(pins("requirements.txt")["gradio"].specifier) == f"=={front_matter()['sdk_version']}"


def test_the_space_header_is_one_that_spaces_accept():
    header = front_matter()
    assert header["sdk"] == "gradio"
    assert header["app_file"] == "app.py"
    assert header["license"] == PROJECT["license"].lower()
    assert len(header["short_description"]) <= 60
    colours = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
    assert {header["colorFrom"], header["colorTo"]} <= colours
    # Quoted in the header: as a bare number, 3.10 would be read as 3.1.
    assert isinstance(header["python_version"], str)
    assert header["python_version"] in Requirement(f"python{PROJECT['requires-python']}").specifier


def test_pins_satisfy_the_ranges_of_the_project():
    extras = [line for name in ("app", "train", "eval", "dev") for line in EXTRAS[name]]
    pinned = pins("requirements.txt") | pins("requirements-dev.txt") | pins("requirements-features.txt")
    compared = 0
    for line in PROJECT["dependencies"] + extras:
        range_ = Requirement(line)
        pin = pinned.get(canonicalize_name(range_.name))
        exact = [part.version for part in pin.specifier if part.operator == "=="] if pin else []
        if exact:
            compared += 1
            assert exact[0] in range_.specifier, f"requirements say {pin}, pyproject.toml says {range_}"
    assert compared >= 12


def test_installed_versions_satisfy_the_ranges_of_the_project():
    for line in PROJECT["dependencies"] + EXTRAS["app"]:
        range_ = Requirement(line)
        assert version(range_.name) in range_.specifier, f"{range_.name} {version(range_.name)} is not in {range_}"


def test_the_pinned_versions_are_the_installed_ones():
    for pin in (pins("requirements.txt") | pins("requirements-dev.txt") | pins("requirements-features.txt")).values():
        assert pin.specifier.contains(version(pin.name)), f"{pin.name} {version(pin.name)} is installed, not {pin}"


def test_xformers_is_never_installed_unless_asked_for():
    assert "xformers" not in pins("requirements.txt")
    assert "xformers" not in pins("requirements-dev.txt")
    holders = [name for name, lines in EXTRAS.items() if "xformers" in requirements(*lines)]
    assert holders == ["xformers"]
    assert "xformers" not in requirements(*PROJECT["dependencies"])


def test_the_library_does_not_depend_on_the_page():
    assert "gradio" not in requirements(*PROJECT["dependencies"])
    assert "gradio" in requirements(*EXTRAS["app"])


def imported_libraries(folder: str) -> dict[str, str]:
    """Top-level name of every library that files under `folder` import, with a file that does."""
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            found |= {name.partition(".")[0]: str(path.relative_to(ROOT)) for name in names}
    house = {"app", "benchmarks", "pgm", "pgm_image", "pgm_text", "tokenizer", "__future__"}
    return {name: path for name, path in found.items() if name not in sys.stdlib_module_names | house}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_imported_library_is_declared(package):
    lines = PROJECT["dependencies"] + [line for extra in EXTRAS.values() for line in extra]
    declared = set(requirements(*lines)) | set(pins("requirements-features.txt"))
    distributions = packages_distributions()
    for name, path in imported_libraries(package).items():
        owners = {canonicalize_name(owner) for owner in distributions.get(name, [name])}
        assert owners & declared or name in OPTIONAL, f"{path} imports {name}, which pyproject.toml does not name"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_typed_and_shipped(package):
    assert (ROOT / package / "py.typed").is_file()
    assert {package, f"{package}.*"} <= set(PYPROJECT["tool"]["setuptools"]["packages"]["find"]["include"])


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_of_a_package_is_a_package(package):
    folders = {path.parent for path in (ROOT / package).rglob("*.py")}
    assert [str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").is_file()] == []


@pytest.mark.parametrize("command", sorted(PROJECT["scripts"]))
def test_every_command_has_its_function(command):
    module, function = PROJECT["scripts"][command].split(":")
    source = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    assert source.is_file(), f"pyproject.toml names {module}, which is not there"
    names = [node.name for node in ast.parse(source.read_text()).body if isinstance(node, ast.FunctionDef)]
    assert function in names, f"{source.relative_to(ROOT)} has no function {function}"


def test_the_library_imports_with_nothing_but_its_core_dependencies():
    core = set(requirements(*PROJECT["dependencies"]))
    extra_only = {canonicalize_name(Requirement(line).name) for lines in EXTRAS.values() for line in lines} - core
    absent = {
        name
        for name, owners in packages_distributions().items()
        if {canonicalize_name(o) for o in owners} <= extra_only
    }
    assert {"gradio", "accelerate", "torch_fidelity", "taming"} <= absent
    # A None in sys.modules is what Python takes for "not installed", for import and find_spec alike.
    prelude = f"import sys\nfor name in {sorted(absent | OPTIONAL)}: sys.modules[name] = None\n"
    result = run_python(prelude + f"import {', '.join(LIBRARIES)}")
    assert result.returncode == 0, result.stderr


# diffusers and gradio look for optional packages in ways of their own; here our own imports count.
BROKEN = """
import importlib.machinery, sys
import gradio
from diffusers import VQModel

class Broken:
    "Finds the packages, whose import then fails: a build for another torch, a missing shared library."
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name.partition(".")[0] in {names} else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        raise ImportError(f"{{module.__name__}}: undefined symbol")

for name in [name for name in sys.modules if name.partition(".")[0] in {names}]:
    del sys.modules[name]
sys.meta_path.insert(0, Broken())
"""


def test_broken_optional_packages_do_not_break_the_import():
    code = BROKEN.format(names=sorted(OPTIONAL)) + f"import {', '.join(PACKAGES)}\nimport xformers.ops"
    result = run_python(code)
    assert result.stderr.splitlines()[-1] == "ImportError: xformers: undefined symbol", result.stderr
