"""Generative perplexity: how likely a left-to-right scorer finds the samples. Always name the scorer with it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor


def next_token_nll(logits: Tensor, ids: Tensor) -> Tensor:
    """Nats of each next token: logits (B, L, V) after each token, ids (B, L) -> (B, L-1) float64."""
    log_probs = logits[:, :-1].double().log_softmax(-1)
    return -log_probs.gather(-1, ids[:, 1:, None])[..., 0]


@dataclass(frozen=True)
class NegativeLogLikelihood:
    """Running sum over batches; the perplexity is that of the whole set, not a mean of means."""

    total: float = 0.0
    count: int = 0

    def add(self, nll: Tensor, valid: Tensor | None = None) -> NegativeLogLikelihood:
        """With the tokens of one more batch: nll (B, T), valid (B, T) or None for all."""
        if valid is None:
            return NegativeLogLikelihood(self.total + nll.sum().item(), self.count + nll.numel())
        keep = valid.bool()
        return NegativeLogLikelihood(self.total + nll[keep].sum().item(), self.count + int(keep.sum()))

    @property
    def perplexity(self) -> float:
        """exp of the mean negative log-likelihood; NaN while nothing was added."""
        return math.exp(self.total / self.count) if self.count else math.nan

    @property
    def bits_per_token(self) -> float:
        return self.total / self.count / math.log(2) if self.count else math.nan
