"""Sets up what `make` runs in: a virtual environment that clones share, and a browser for the page's test.

The environment is some 6 GB, so it lies in the user's cache under a name made from the pins of
requirements.txt and the Python version: clones with the same pins share it, a changed pin makes a new one.
The project itself is not installed into it; commands run from the root of the repository.

    python scripts/environment.py app       install requirements.txt, print the interpreter's path
    python scripts/environment.py dev       the same and the development packages
    python scripts/environment.py browser   find or install Chromium (without one, an error if CI=true)
    python scripts/environment.py where     print the environment's folder
    python scripts/environment.py clean     remove it

VENV=folder chooses another folder, CHROMIUM=path another browser. Progress goes to the error stream.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
APP = ROOT / "requirements.txt"
DEV = ROOT / "requirements-dev.txt"
FEATURES = ROOT / "requirements-features.txt"  # installed without the dependencies they name

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


class SetupError(Exception):
    """A set-up step failed; the message is one sentence for the person at the keyboard."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pgm-image"


def requirements_key(*files: Path) -> str:
    """Hash of what would be installed: lines bar comments and order, Python's version, the platform."""
    lines = [re.sub(r"(^|\s)#.*", "", line).strip() for file in files for line in file.read_text().splitlines()]
    facts = [f"{sys.version_info.major}.{sys.version_info.minor}", sys.platform, platform.machine()]
    return hashlib.sha256("\n".join(facts + sorted(filter(None, lines))).encode()).hexdigest()[:12]


def environment_folder() -> Path:
    chosen = os.environ.get("VENV")
    return Path(chosen).expanduser().absolute() if chosen else cache_folder() / f"venv-{requirements_key(APP)}"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[int]:
    """Holds a lock on `path`, waiting for whoever has it; the system frees it when its holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"Waiting for another set-up that holds {path} ...")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def is_environment(folder: Path) -> bool:
    return (folder / "pyvenv.cfg").is_file()


def interpreter(folder: Path) -> Path:
    return folder / "bin" / "python"


def is_ours(folder: Path) -> bool:
    """Whether the folder is one this script names, so that it may be emptied whatever state it is in."""
    return folder.parent == cache_folder()


def works(folder: Path) -> bool:
    """Whether the environment was created to its end and its interpreter, with its base, is still there."""
    if is_ours(folder) and not (folder / "created").is_file():
        return False
    try:
        return subprocess.run([interpreter(folder), "-c", "import pip"], capture_output=True).returncode == 0
    except OSError:
        return False


def create(folder: Path, lock: int) -> None:
    if folder.exists() and any(folder.iterdir()) and not (is_ours(folder) or is_environment(folder)):
        raise SetupError(f"VENV={folder} is a folder with other things in it; name a new or an empty one.")
    say(f"Creating {folder} with Python {platform.python_version()} ...")
    command = [sys.executable, "-m", "venv", "--clear", str(folder)]
    if subprocess.run(command, stdout=sys.stderr, pass_fds=[lock]).returncode:
        raise SetupError("Python could not make a virtual environment (Debian: apt-get install python3-venv).")
    (folder / "created").touch()


def forget_half_installed(folder: Path) -> None:
    """Drops the records of packages whose installation was cut short, so that pip installs those again.

    pip takes a package for installed as soon as its metadata folder exists. What it completed has a RECORD
    that names an INSTALLER, as pip writes last, and has every file that the RECORD names.
    """
    for info in folder.glob("lib/python*/site-packages/*.dist-info"):
        record = info / "RECORD"
        rows = record.read_text().splitlines() if record.is_file() else []
        names = [row.rsplit(",", 2)[0].strip('"') for row in rows]
        complete = f"{info.name}/INSTALLER" in names
        if not (complete and all((info.parent / name).exists() or name.endswith(".pyc") for name in names)):
            say(f"Repairing {info.name.removesuffix('.dist-info')}, which was not installed to its end.")
            shutil.rmtree(info)


def pip_install(folder: Path, lock: int, *arguments: str | Path) -> None:
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    command = [
        interpreter(folder),
        "-m",
        "pip",
        "install",
        "--no-input",
        "--disable-pip-version-check",
        *quiet,
    ]
    # The child holds the lock too: should we be killed and pip live on, the next set-up still waits for it.
    if subprocess.run([*command, *arguments], stdin=subprocess.DEVNULL, stdout=sys.stderr, pass_fds=[lock]).returncode:
        raise SetupError("pip could not install the packages (see above); the same command goes on from here.")


def set_up(development: bool) -> Path:
    """Brings the environment to the requirements of this checkout and returns its interpreter."""
    folder = environment_folder()
    wanted = {"app": requirements_key(APP)}
    if development:
        wanted["dev"] = requirements_key(APP, DEV, FEATURES)
    with locked(folder.with_name(folder.name + ".lock")) as lock:
        if not works(folder):
            create(folder, lock)
        stamps = {name: folder / f"installed-{name}" for name in wanted}
        missing = [name for name in wanted if not (stamps[name].is_file() and stamps[name].read_text() == wanted[name])]
        if missing:
            forget_half_installed(folder)
        for name in missing:
            stamps[name].unlink(missing_ok=True)
            if name == "app":
                say(f"Installing requirements.txt into {folder} (about 6 GB, once; some minutes) ...")
                pip_install(folder, lock, "-r", APP)
            else:
                say(f"Installing the development packages into {folder} ...")
                pip_install(folder, lock, "-c", APP, "-r", DEV)
                pip_install(folder, lock, "--no-deps", "-r", FEATURES)
            stamps[name].write_text(wanted[name])
    return interpreter(folder)


def find_browser() -> str | None:
    """Path of a Chromium or Chrome that runs, or None. CHROMIUM=path, when set, is the only candidate."""
    chosen = os.environ.get("CHROMIUM")
    for name in [chosen] if chosen else BROWSERS:
        path = shutil.which(name)
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            # Ubuntu's "chromium" without snap is a file that exists and does not run.
            if path and subprocess.run([path, "--version"], capture_output=True, timeout=60).returncode == 0:
                return path
    return None


def install_browser() -> None:
    """Installs Debian's chromium where that needs no password; elsewhere does nothing."""
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if not shutil.which("apt-get") or (prefix and not shutil.which("sudo")):
        return
    if prefix and subprocess.run([*prefix, "true"], capture_output=True).returncode:
        return
    say("Installing Chromium for the page's test (apt-get install chromium) ...")
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-o", "DPkg::Lock::Timeout=600"]
    for command in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        subprocess.run([*apt, *command], stdin=subprocess.DEVNULL, stdout=sys.stderr)


def set_up_browser() -> None:
    with locked(cache_folder() / "browser.lock"):
        if find_browser():
            return
        if not os.environ.get("CHROMIUM"):
            install_browser()
        if find_browser():
            return
    sentence = (
        "No Chromium was found: install it (Debian: apt-get install chromium; macOS: "
        "brew install --cask chromium) or set CHROMIUM to the path of a Chromium or Chrome that runs."
    )
    if os.environ.get("CI") == "true":
        raise SetupError(sentence)
    say(f"{sentence} Tests of the page in a browser will be skipped.")


def clean() -> None:
    folder = environment_folder()
    with locked(folder.with_name(folder.name + ".lock")):
        if not folder.exists():
            return say(f"{folder} is not there.")
        if not (is_ours(folder) or is_environment(folder)):
            raise SetupError(f"VENV={folder} is not a virtual environment; it was left alone.")
        shutil.rmtree(folder)
        say(f"Removed {folder}.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["app", "dev", "browser", "where", "clean"])
    action = parser.parse_args().action
    try:
        if action in ("app", "dev"):
            print(set_up(development=action == "dev"))
        elif action == "browser":
            set_up_browser()
        elif action == "where":
            print(environment_folder())
        else:
            clean()
    except (SetupError, OSError) as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
