"""MDLM with complementary masking (arXiv 2505.18883, section 5): PGM's two-sided supervision without its network.

Every text is seen twice, masked and with the complement masked, so that each token is predicted once. It costs two
passes and isolates what two-sided supervision gains. Evaluated and sampled as MDLM.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pgm.diffusion_objectives import complementary_token_loss, mean_over_valid
from pgm.models import unwrapped
from pgm.training import Batch
from pgm_text.algorithms.mdlm import token_nll

__all__ = ["loss", "token_nll"]


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """As MDLM's, averaged over the two copies, in nats."""
    tokens, hidden, t = batch["tokens"], batch["hidden"], batch["t"]
    mask_id = unwrapped(model).config.mask_id
    other = ~hidden
    other[:, 0] = False  # BOS stays known in both copies
    both = torch.cat((torch.where(hidden, mask_id, tokens), torch.where(other, mask_id, tokens)))
    z = batch.get("z")
    logits = model(both, t.new_zeros(len(both)), None if z is None else torch.cat((z, z)))
    token_loss = complementary_token_loss(*logits.chunk(2), tokens, hidden, t, mask_id)
    return mean_over_valid(token_loss[:, 1:], token_loss.new_ones(token_loss[:, 1:].shape))
