"""Sentence embeddings of every training row, computed once and kept beside the token shards (RMDM's first stage).

What is embedded is the decoded text of the row, exactly what the masked model sees. Shards are written one by one, so a
run that was stopped goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from pgm_text.packing import read_token_rows
from pgm_text.tokenizer import Tokenizer

ROWS_PER_FILE = 10_000


class Encoder(Protocol):
    name: str

    def encode(self, texts: list[str], *, batch_size: int = 32) -> Tensor:
        """texts (n) -> (n, D)."""


def write_embeddings(
    tokens: str | Path,
    out: str | Path,
    tokenizer: Tokenizer,
    encoder: Encoder,
    *,
    batch_size: int = 32,
    report: Callable[[str, int], None] | None = None,
) -> dict:
    """Embed all rows of the token shards in folder `tokens` into float16 files in folder `out`; returns the manifest.

    Files of an earlier, interrupted run with the same encoder are kept. report: called with (split, rows done).
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    begun = out / "encoder.json"
    if begun.exists() and json.loads(begun.read_text())["encoder"] != encoder.name:
        raise ValueError(f"{out} holds embeddings of {json.loads(begun.read_text())['encoder']}, not of {encoder.name}")
    begun.write_text(json.dumps({"encoder": encoder.name}) + "\n")
    splits = json.loads((Path(tokens) / "manifest.json").read_text())["splits"]
    manifest: dict = {"encoder": encoder.name, "dimension": None, "splits": {}}
    for split in splits:
        files, done = [], 0
        for rows in _chunks(tokens, split):
            path = out / f"{split}-{len(files):05d}.embeddings.npy"
            if not path.exists():
                texts = [tokenizer.decode(row) for row in rows]
                embeddings = encoder.encode(texts, batch_size=batch_size).to(torch.float16).numpy()
                unfinished = path.with_suffix(".part")
                with open(unfinished, "wb") as file:
                    np.save(file, embeddings)
                unfinished.replace(path)  # a file that is there is complete
            shape = np.load(path, mmap_mode="r").shape
            if shape[0] != len(rows):
                raise ValueError(f"{path} holds {shape[0]} rows, the token shards have {len(rows)}: delete it")
            manifest["dimension"] = shape[1]
            files.append({"embeddings": path.name, "count": len(rows)})
            done += len(rows)
            if report:
                report(split, done)
        manifest["splits"][split] = files
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def read_embeddings(folder: str | Path, split: str) -> Tensor:
    """All embeddings of a split in the order of the token rows: (n, D) float16."""
    folder = Path(folder)
    if not (folder / "manifest.json").is_file():
        raise FileNotFoundError(f"{folder} holds no finished embeddings (no manifest.json)")
    splits = json.loads((folder / "manifest.json").read_text())["splits"]
    if split not in splits:
        raise ValueError(f"split must be one of {sorted(splits)}, got {split!r}")
    return torch.from_numpy(np.concatenate([np.load(folder / file["embeddings"]) for file in splits[split]]))


def _chunks(tokens: str | Path, split: str) -> Iterator[np.ndarray]:
    for codes, _ in read_token_rows(tokens, split):
        for start in range(0, len(codes), ROWS_PER_FILE):
            yield codes[start : start + ROWS_PER_FILE]
