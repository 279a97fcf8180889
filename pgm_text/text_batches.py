"""Training batches from token shards: rows, times, masks and latents, a pure function of the step.

All algorithms see the same rows in the same order with the same times and masks; they differ in the loss alone.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pgm.noise_schedule import hidden_mask, sample_times
from pgm_text.packing import read_token_rows, valid_mask
from pgm_text.representation import smooth


class TextBatches:
    """Batches {"tokens", "valid", "t", "hidden"} and, with latents, {"z"}.

    tokens (B, N) int64, BOS first; valid (B, N) bool, up to the first end token; t (B,) stratified over the batch;
    hidden (B, N) bool, True with probability 0.999 t, never at BOS; z (B, K), smoothed, NaN rows where dropped.
    """

    def __init__(
        self,
        folder: str | Path,
        batch_size: int,
        seed: int = 0,
        split: str = "train",
        latents: Tensor | None = None,
        latent_dropout: float = 0.1,
        smoothing: float = 0.3,
    ):
        """folder: token shards of `prepare`; latents: (rows, K), z_0 of every row of the split in order; smoothing:
        share s of fresh noise in z' = sqrt(1 - s^2) z_0 + s noise. Raises ValueError when latents and rows differ.
        """
        shards = list(read_token_rows(folder, split))
        self.rows = np.concatenate([codes for codes, _ in shards])  # (n, N) uint16
        self.labels = np.concatenate([labels for _, labels in shards])  # (n, 1)
        if latents is not None and len(latents) != len(self.rows):
            raise ValueError(f"{folder} has {len(self.rows)} rows in {split!r}, the latents have {len(latents)}")
        self.batch_size, self.seed = batch_size, seed
        self.latents, self.latent_dropout, self.smoothing = latents, latent_dropout, smoothing
        self._permutation = lru_cache(maxsize=4)(self._draw_permutation)

    def __call__(self, index: int, process: int = 0) -> dict[str, Tensor]:
        """Batch `index` of a process, the same whenever it is asked for."""
        chosen = self.row_numbers(index, process)
        generator = torch.Generator().manual_seed(
            int(np.random.default_rng([self.seed, 1, index, process]).integers(2**62))
        )
        tokens = torch.from_numpy(self.rows[chosen].astype(np.int64))
        valid = torch.from_numpy(valid_mask(self.labels[chosen], tokens.shape[1]))
        t = sample_times(torch.rand(len(tokens), generator=generator))
        hidden = hidden_mask(torch.rand(tokens.shape, generator=generator), t)
        hidden[:, 0] = False  # BOS is known from the first step on
        batch = {"tokens": tokens, "valid": valid, "t": t, "hidden": hidden}
        if self.latents is not None:  # drawn last, so that models without latents see the same masks
            z = self.latents[chosen].float()
            z = smooth(z, self.smoothing, torch.randn(z.shape, generator=generator))
            dropped = torch.rand(len(z), 1, generator=generator) < self.latent_dropout
            batch["z"] = torch.where(dropped, torch.nan, z)
        return batch

    def row_numbers(self, index: int, process: int = 0) -> np.ndarray:
        """Rows of a batch: every epoch visits every row once, in an order of its own per process."""
        places = np.arange(index * self.batch_size, (index + 1) * self.batch_size)
        epochs, offsets = np.divmod(places, len(self.rows))
        return np.array([self._permutation(int(e), process)[o] for e, o in zip(epochs, offsets, strict=True)])

    def _draw_permutation(self, epoch: int, process: int) -> np.ndarray:
        return np.random.default_rng([self.seed, 0, epoch, process]).permutation(len(self.rows))
