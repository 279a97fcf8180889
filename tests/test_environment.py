"""scripts/environment.py: the shared environment survives concurrent, interrupted and changed set-ups."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = ("requirements.txt", "requirements-dev.txt", "requirements-features.txt")


@pytest.fixture
def clone(tmp_path):
    """A clone whose requirements name nothing, so that setting up needs no network."""
    return make_clone(tmp_path / "clone")


def make_clone(folder: Path) -> Path:
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "environment.py", folder / "scripts")
    for name in FILES:
        (folder / name).write_text("# nothing\n")
    return folder


def start(clone: Path, action: str, **environment: str) -> subprocess.Popen[str]:
    everything = {
        **os.environ,
        "XDG_CACHE_HOME": str(clone.parent / "cache"),
        "PIP_NO_INDEX": "1",
        "CI": "",
        **environment,
    }
    everything.pop("PYTHONPATH")
    command = [sys.executable, "scripts/environment.py", action]
    return subprocess.Popen(
        command, cwd=clone, env=everything, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def run(clone: Path, action: str, **environment: str) -> tuple[int, str, str]:
    process = start(clone, action, **environment)
    output, errors = process.communicate(timeout=200)
    return process.returncode, output.strip(), errors


def test_two_clones_setting_up_at_once_make_one_environment_of_one_that_was_cut_short(clone):
    folder = Path(run(clone, "where")[1])
    (folder / "lib").mkdir(parents=True)  # what an interrupted creation leaves: no pyvenv.cfg, no pip
    other = make_clone(clone.parent / "other")
    processes = [start(clone, "app"), start(other, "dev")]
    results = [process.communicate(timeout=250) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], results
    assert {output.strip() for output, _ in results} == {str(folder / "bin" / "python")}
    assert subprocess.run([folder / "bin" / "python", "-c", "import pip"]).returncode == 0
    assert sum("Creating" in errors for _, errors in results) == 1
    assert sum("Waiting" in errors for _, errors in results) == 1
    assert run(other, "dev") == (0, str(folder / "bin" / "python"), ""), "a finished one is used as it is"


def test_changed_pins_make_another_environment_and_comments_do_not(clone):
    before = run(clone, "where")[1]
    (clone / "requirements.txt").write_text("\n  # nothing, said otherwise\n")
    assert run(clone, "where")[1] == before
    (clone / "requirements.txt").write_text("pillow==12.3.0  # pictures\n")
    assert run(clone, "where")[1] != before


@pytest.mark.parametrize("action", ["app", "clean"])
def test_a_folder_with_other_things_is_left_alone(clone, action):
    letters = clone.parent / "letters"
    letters.mkdir()
    (letters / "letter.txt").write_text("dear reader")
    status, _, errors = run(clone, action, VENV=str(letters))
    assert status == 1
    assert f"VENV={letters}" in errors
    assert (letters / "letter.txt").read_text() == "dear reader"


def test_packages_that_were_not_installed_to_their_end_are_installed_again(tmp_path, load_file):
    environment = load_file(ROOT / "scripts" / "environment.py")
    site = tmp_path / "lib" / "python3.11" / "site-packages"

    def install(name: str, rows: list[str] | None) -> Path:
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {name}")
        (info / "INSTALLER").write_text("pip")
        (site / f"{name}.py").write_text("")
        if rows is not None:
            (info / "RECORD").write_text("\n".join(f"{row},," for row in [*rows, f"{info.name}/RECORD"]))
        return info

    whole = install("whole", ["whole.py", "whole-1.0.dist-info/INSTALLER", "__pycache__/whole.pyc"])
    unrecorded = install("unrecorded", None)
    as_in_the_wheel = install("as_in_the_wheel", ["as_in_the_wheel.py"])
    with_a_gap = install("with_a_gap", ["gone.py", "with_a_gap-1.0.dist-info/INSTALLER"])
    environment.forget_half_installed(tmp_path)
    assert whole.is_dir()
    assert not any(info.exists() for info in (unrecorded, as_in_the_wheel, with_a_gap))


def test_a_missing_browser_is_an_error_in_continuous_integration_only(clone):
    status, _, errors = run(clone, "browser", CHROMIUM="no-such-browser")
    assert status == 0
    assert "install it" in errors and "skipped" in errors
    status, _, errors = run(clone, "browser", CHROMIUM="no-such-browser", CI="true")
    assert status == 1
    assert errors.startswith("error: No Chromium was found: install it")


def test_a_browser_that_does_not_start_is_not_taken(clone):
    stub = clone / "chromium"
    stub.write_text("#!/bin/sh\nexit 1\n")
    stub.chmod(0o755)
    assert "No Chromium" in run(clone, "browser", CHROMIUM=str(stub))[2]
    stub.write_text("#!/bin/sh\necho Chromium 1.0\n")
    assert run(clone, "browser", CHROMIUM=str(stub))[::2] == (0, "")
