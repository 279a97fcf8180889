"""The scorer of generative perplexity: a left-to-right transformer trained on our own corpus.

The published figure uses GPT-2 large. Ours judges dictionary entries by what dictionary entries look like; figures of
different scorers cannot be compared, so reports name it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pgm.predictors import evaluating
from pgm.training import Batch
from pgm_text.metrics import NegativeLogLikelihood, next_token_nll


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """Mean next-token cross-entropy in nats over the tokens up to and including the first end token."""
    tokens, valid = batch["tokens"], batch["valid"][:, 1:]
    log_p = model(tokens)[:, :-1].float().log_softmax(-1)
    nll = -log_p.gather(-1, tokens[:, 1:, None]).squeeze(-1)
    return (nll * valid).sum() / valid.sum()


def score(model: nn.Module, tokens: Tensor, eos_id: int, batch_size: int = 64) -> NegativeLogLikelihood:
    """Likelihood of texts: tokens (n, N) int64 with BOS first; each counts up to and including its first end token."""
    measured = NegativeLogLikelihood()
    device = model.vocab_embed.embedding.device
    with evaluating(model):
        for part in tokens.split(batch_size):
            nll = next_token_nll(model(part.to(device)), part.to(device))
            measured = measured.add(nll, up_to_end(part, eos_id)[:, 1:].to(device))
    return measured


def up_to_end(tokens: Tensor, eos_id: int) -> Tensor:
    """(n, N) bool, True up to and including the first end token behind BOS; all True where there is none."""
    ends = (tokens == eos_id).long()
    ends[:, 0] = 0
    return torch.cumsum(ends, dim=1) - ends == 0
