"""RMDM (arXiv 2609.12382): masked diffusion given one latent z per text, which explains what tokens share.

The batch brings z already smoothed and, in a tenth of the rows, dropped (NaN, the null latent). The loss is that of
the backbone: MDLM as in the paper, or PGM, which is our combination. With z alone E[-log p(x | z(x))] is no
likelihood, because z has seen x; the bound adds the price of z (`kl_nats`).
"""

from __future__ import annotations

from torch import Tensor, nn

from pgm.models import unwrapped
from pgm.partition_transformer import PartitionTransformer
from pgm.training import Batch
from pgm_text.algorithms import mdlm, pgm
from pgm_text.representation import noised_posterior_kl as kl_nats

__all__ = ["kl_nats", "loss", "token_nll"]


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """The backbone's loss on rows with their z. Raises ValueError for a batch without z."""
    if "z" not in batch:
        raise ValueError("RMDM needs latents: run `fit-representation` and give its folder with --latents")
    return _backbone(model).loss(model, batch)


def token_nll(model: nn.Module, tokens: Tensor, hidden: Tensor, z: Tensor | None = None) -> Tensor:
    """As the backbone's; z (B, K), None or rows of NaN = the null latent."""
    return _backbone(model).token_nll(model, tokens, hidden, z)


def _backbone(model: nn.Module):
    return pgm if isinstance(unwrapped(model), PartitionTransformer) else mdlm
