"""Reads a SWORD "zText" module (here the World English Bible) into plain chapters.

Format: <name>.bzz holds zlib-compressed blocks, one per book; <name>.bzs lists them as three little-endian uint32
(offset, compressed size, size); the text is OSIS markup. Reading the markup ourselves keeps words apart where a
footnote stands between them, which plain-text exporters glue together.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from html import unescape
from pathlib import Path

_CHAPTER_START = re.compile(r'<chapter [^>]*?osisID="([^"]+)"[^>]*?sID="[^"]*"[^>]*/>')
_NOTE = re.compile(r"<note\b[^>]*>.*?</note>", re.DOTALL)
_HEADING = re.compile(r"<title\b[^>]*>.*?</title>", re.DOTALL)
_INLINE = re.compile(r"</?(?:w|hi|q|divineName|transChange|seg|foreign)\b[^>]*>")
_TAG = re.compile(r"<[^>]+>")


def plain_text(markup: str) -> str:
    """OSIS markup -> text on one line, without notes and headings."""
    text = _HEADING.sub(" ", _NOTE.sub(" ", markup))
    text = unescape(_TAG.sub(" ", _INLINE.sub("", text)))
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"\s+([,;:.?!)’”])", r"\1", text)
    return re.sub(r"([(“‘])\s+", r"\1", text).strip()


def read_blocks(folder: str | Path, name: str) -> Iterator[str]:
    """Markup of each book in <name>.bzz ("ot" or "nt")."""
    folder = Path(folder)
    packed = (folder / f"{name}.bzz").read_bytes()
    for offset, packed_size, size in struct.iter_unpack("<III", (folder / f"{name}.bzs").read_bytes()):
        block = zlib.decompress(packed[offset : offset + packed_size])
        if len(block) != size:
            raise ValueError(f"{folder / name}.bzz is damaged: a block holds {len(block)} bytes, {size} were promised")
        yield block.decode("utf-8")


def chapters(folder: str | Path) -> Iterator[tuple[str, str]]:
    """Pairs of chapter key ("Gen.1") and text, in order; prefaces and empty chapters are left out."""
    for name in ("ot", "nt"):
        for markup in read_blocks(folder, name):
            parts = _CHAPTER_START.split(markup)  # preface, key, text, key, text, ...
            for key, body in zip(parts[1::2], parts[2::2], strict=True):
                text = plain_text(body)
                if len(text) > 200:
                    yield key, text


def find_module(folder: str | Path) -> Path:
    """The folder below `folder` that holds ot.bzz and nt.bzz."""
    for found in sorted(Path(folder).rglob("ot.bzz")):
        if (found.parent / "nt.bzz").is_file():
            return found.parent
    raise FileNotFoundError(f"no SWORD text module (ot.bzz, nt.bzz) under {folder}")
