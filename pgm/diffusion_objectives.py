"""Losses of masked diffusion over text: MDLM, PGM and complementary masking (arXiv 2505.18883, section 3 and 4).

All return the loss of every token (B, L') in nats, already weighted; `mean_over_valid` reduces them. The weights come
from `pgm.noise_schedule`: 1/t for tokens hidden at time t, 1/(1-t) for the other side of a partition.
"""

import torch
from torch import Tensor

from pgm.noise_schedule import complement_weight, masked_weight, partition_weights


def token_log_probabilities(logits: Tensor, tokens: Tensor, mask_id: int) -> Tensor:
    """log p of the true tokens, normalised over real tokens only: logits (B, L', V), tokens (B, L') -> (B, L')."""
    suppressed = torch.zeros(logits.shape[-1], device=logits.device)
    suppressed[mask_id] = -torch.inf
    return (logits.float() + suppressed).log_softmax(-1).gather(-1, tokens[..., None]).squeeze(-1)


def masked_token_loss(logits: Tensor, tokens: Tensor, hidden: Tensor, t: Tensor, mask_id: int) -> Tensor:
    """MDLM's negative ELBO per token: -log p / t where hidden, 0 where visible. hidden (B, L') bool, t (B,)."""
    return torch.where(hidden, -token_log_probabilities(logits, tokens, mask_id) * masked_weight(t)[:, None], 0.0)


def partition_token_loss(logits: Tensor, tokens: Tensor, groups: Tensor, t: Tensor, mask_id: int) -> Tensor:
    """PGM's training loss per token: the mean of two complementary ELBO estimates, so all tokens count half."""
    nll = -token_log_probabilities(logits, tokens, mask_id)
    return nll * partition_weights(groups, t) / 2


def partition_bound(logits: Tensor, tokens: Tensor, groups: Tensor, t: Tensor, mask_id: int) -> Tensor:
    """PGM's evaluation bound per token: group 1 only, weight 1/t, comparable with MDLM's."""
    return masked_token_loss(logits, tokens, groups.bool(), t, mask_id)


def complementary_token_loss(
    logits: Tensor, complement_logits: Tensor, tokens: Tensor, hidden: Tensor, t: Tensor, mask_id: int
) -> Tensor:
    """Complementary masking: each token's loss comes from the copy in which it is hidden, both halved.

    logits: of the copy with `hidden` masked; complement_logits: of the copy with everything else masked.
    """
    log_p = torch.where(
        hidden,
        token_log_probabilities(logits, tokens, mask_id) * masked_weight(t)[:, None],
        token_log_probabilities(complement_logits, tokens, mask_id) * complement_weight(t)[:, None],
    )
    return -log_p / 2


def mean_over_valid(token_loss: Tensor, valid: Tensor) -> Tensor:
    """Sum over valid tokens divided by the number of *all* valid tokens: (B, L'), (B, L') -> scalar."""
    return (token_loss * valid).sum() / valid.sum()
