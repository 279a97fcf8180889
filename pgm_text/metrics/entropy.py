"""Token entropy: Shannon entropy in nats of a text's own token counts, the usual check against repetition."""

from __future__ import annotations

import torch
from torch import Tensor


def token_entropy(ids: Tensor, valid: Tensor | None = None) -> Tensor:
    """ids (B, L) integers, valid (B, L) bool or None for all -> (B,) float64 nats; 0 for a text of one repeated token.

    The published figure is the mean over samples, all positions counted.
    """
    if ids.ndim != 2 or ids.shape[1] == 0:
        raise ValueError(f"ids must have shape (B, L) with L >= 1, got {tuple(ids.shape)}")
    rows = []
    for row, keep in zip(ids, torch.ones_like(ids, dtype=torch.bool) if valid is None else valid, strict=True):
        counts = torch.unique(row[keep], return_counts=True)[1].double()
        share = counts / counts.sum()
        rows.append(-(share * share.log()).sum())
    return torch.stack(rows)
