"""Token ids -> rows of fixed length, and the shard files that hold them.

Two layouts. "entries": one document per row, BOS, tokens, EOS, then EOS up to the end; a text of known beginning and
end per sample. "wrapped": documents joined and cut into blocks, as the OpenWebText models were trained.
Shards follow the layout of image code shards: codes uint16 (n, N), labels int32 (n, 1), opened with mmap.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from pgm_text.tokenizer import Tokenizer

ROWS_PER_SHARD = 100_000


def pack_entries(
    documents: Iterable[Sequence[int]], length: int, bos_id: int, eos_id: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """One document per row of `length` ids.

    Returns rows uint16 (n, length), labels int32 (n, 1) with the number of positions up to and including the first EOS,
    and the number of documents left out because they do not fit (more than length - 2 tokens) or are empty.
    """
    rows, used, left_out = [], [], 0
    for ids in documents:
        if not 0 < len(ids) <= length - 2:
            left_out += 1
            continue
        row = np.full(length, eos_id, np.uint16)
        row[0] = bos_id
        row[1 : len(ids) + 1] = ids
        rows.append(row)
        used.append(len(ids) + 2)
    stacked = np.stack(rows) if rows else np.empty((0, length), np.uint16)
    return stacked, np.array(used, np.int32)[:, None], left_out


def pack_wrapped(
    documents: Iterable[Sequence[int]], length: int, bos_id: int, eos_id: int, *, group: int = 1000
) -> Iterator[np.ndarray]:
    """Blocks of `length` ids, uint16 (length,): an EOS ends each document, `group` documents are joined and cut into
    pieces of length - 2, the remainder of each group is dropped, and each piece is framed by BOS and EOS.
    """
    joined: list[int] = []
    count = 0

    def blocks() -> Iterator[np.ndarray]:
        body = length - 2
        for start in range(0, len(joined) - body + 1, body):
            yield np.array([bos_id, *joined[start : start + body], eos_id], np.uint16)

    for ids in documents:
        joined += [*ids, eos_id]
        count += 1
        if count == group:
            yield from blocks()
            joined, count = [], 0
    yield from blocks()


def valid_mask(labels: np.ndarray, length: int) -> np.ndarray:
    """Positions that carry text: labels (n, 1) -> (n, length) bool, True up to and including the first EOS.

    Training counts all positions (the model has to learn where a text ends, or positions after the end would hold noise
    that other tokens see); per-token figures divide by the number of True positions, because the rest is implied by the
    first EOS.
    """
    return np.arange(length)[None] < np.asarray(labels)[:, :1]


def write_token_shards(
    folder: str | Path,
    splits: dict[str, Iterable[list[int]]],
    tokenizer: Tokenizer,
    *,
    length: int,
    layout: str = "entries",
    name: str = "",
) -> dict:
    """Pack the token ids of every split, write shards and manifest.json into `folder`, return the manifest."""
    if layout not in ("entries", "wrapped"):
        raise ValueError(f"layout must be 'entries' or 'wrapped', got {layout!r}")
    if not isinstance(length, int) or length < 3:
        raise ValueError(f"length must be an integer >= 3, got {length!r}")
    if tokenizer.vocab_size > 2**16:
        raise ValueError(f"shards hold 16-bit ids, the tokenizer has {tokenizer.vocab_size}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {
        "name": name,
        "layout": layout,
        "grid": [1, length],
        "codebook_size": tokenizer.vocab_size - 1,
        "labels": ["length"],
        "vocab_size": tokenizer.vocab_size,
        "bos_id": tokenizer.bos_id,
        "eos_id": tokenizer.eos_id,
        "mask_id": tokenizer.mask_id,
        "splits": {},
        "counts": {},
    }
    for split, documents in splits.items():
        if layout == "entries":
            rows, labels, _ = pack_entries(documents, length, tokenizer.bos_id, tokenizer.eos_id)
        else:
            blocks = list(pack_wrapped(documents, length, tokenizer.bos_id, tokenizer.eos_id))
            rows = np.stack(blocks) if blocks else np.empty((0, length), np.uint16)
            labels = np.full((len(rows), 1), length, np.int32)
        shards = []
        for number, start in enumerate(range(0, len(rows), ROWS_PER_SHARD)):
            part = slice(start, start + ROWS_PER_SHARD)
            files = {"codes": f"{split}-{number:05d}.codes.npy", "labels": f"{split}-{number:05d}.labels.npy"}
            np.save(folder / files["codes"], rows[part])
            np.save(folder / files["labels"], labels[part])
            shards.append({**files, "count": len(rows[part])})
        manifest["splits"][split] = shards
        manifest["counts"][split] = {
            "rows": len(rows),
            "tokens": int((labels - 1).sum()),  # BOS is given, everything up to the first EOS is predicted
        }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def read_manifest(folder: str | Path) -> dict:
    """manifest.json of token shards. Raises ValueError when it is missing or not JSON."""
    path = Path(folder) / "manifest.json"
    if not path.is_file():
        raise ValueError(f"no token shards at {str(folder)!r}: manifest.json is missing")
    try:
        return json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from error


def read_token_rows(folder: str | Path, split: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Shards of a split, opened without reading them: codes uint16 (n, N) and labels int32 (n, 1)."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    if split not in manifest["splits"]:
        raise ValueError(f"split must be one of {sorted(manifest['splits'])}, got {split!r}")
    for shard in manifest["splits"][split]:
        yield (
            np.load(folder / shard["codes"], mmap_mode="r"),
            np.load(folder / shard["labels"], mmap_mode="r"),
        )
