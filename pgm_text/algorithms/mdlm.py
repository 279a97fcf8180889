"""Masked diffusion language model (MDLM, arXiv 2406.07524): the baseline, supervised at masked positions only."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pgm.diffusion_objectives import masked_token_loss, mean_over_valid, token_log_probabilities
from pgm.models import unwrapped
from pgm.training import Batch


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """Sum of -log p / t over masked positions divided by the number of content positions, in nats."""
    tokens, hidden, t = batch["tokens"], batch["hidden"], batch["t"]
    mask_id = unwrapped(model).config.mask_id
    logits = model(torch.where(hidden, mask_id, tokens), t.new_zeros(len(t)), batch.get("z"))
    token_loss = masked_token_loss(logits, tokens, hidden, t, mask_id)
    return mean_over_valid(token_loss[:, 1:], token_loss.new_ones(token_loss[:, 1:].shape))


def token_nll(model: nn.Module, tokens: Tensor, hidden: Tensor, z: Tensor | None = None) -> Tensor:
    """tokens (B, N), hidden (B, N) bool -> nats of hidden tokens given the visible ones, 0 elsewhere."""
    mask_id = model.config.mask_id
    sigma = tokens.new_zeros(len(tokens), dtype=model.vocab_embed.embedding.dtype)
    logits = model(torch.where(hidden, mask_id, tokens), sigma, z)
    return -token_log_probabilities(logits, tokens, mask_id).masked_fill(~hidden, 0.0)
