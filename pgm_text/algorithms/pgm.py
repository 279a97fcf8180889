"""Partition Generative Model for text (arXiv 2505.18883, section 4): both groups predict each other in one pass.

Group 1 is the side hidden at time t, group 0 the one hidden at time 1 - t; BOS always belongs to group 0, the known
side of a generation.
"""

from __future__ import annotations

from torch import Tensor, nn

from pgm.diffusion_objectives import mean_over_valid, partition_token_loss, token_log_probabilities
from pgm.models import unwrapped
from pgm.training import Batch


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """Mean over content positions of the average of both sides' weighted cross-entropies, in nats."""
    tokens, hidden, t = batch["tokens"], batch["hidden"], batch["t"]
    logits = model(tokens, hidden, t.new_zeros(len(t)), batch.get("z"))
    token_loss = partition_token_loss(logits, tokens, hidden, t, unwrapped(model).config.mask_id)
    return mean_over_valid(token_loss[:, 1:], token_loss.new_ones(token_loss[:, 1:].shape))


def token_nll(model: nn.Module, tokens: Tensor, hidden: Tensor, z: Tensor | None = None) -> Tensor:
    """tokens (B, N), hidden (B, N) bool -> nats of hidden tokens given the visible ones, 0 elsewhere."""
    sigma = tokens.new_zeros(len(tokens), dtype=model.vocab_embed.embedding.dtype)
    nll = -token_log_probabilities(model(tokens, hidden, sigma, z), tokens, model.config.mask_id)
    return nll.masked_fill(~hidden, 0.0)
