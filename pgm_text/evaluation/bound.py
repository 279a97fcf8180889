"""Likelihood bounds of masked and partition models, and RMDM's valid bound with both of its terms.

The continuous-time NELBO of masked diffusion equals a mean over numbers of hidden tokens: with k uniform in 1..L and a
random set of k positions hidden, L / k times their cross-entropy is an unbiased estimate of it (MDLM, arXiv
2406.07524; Ou et al., arXiv 2406.03736). No schedule constant enters, the weights are at most L, and k is stratified
over the draws of each text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pgm.predictors import evaluating
from pgm_text.algorithms import algorithm_of
from pgm_text.algorithms.rmdm import kl_nats
from pgm_text.representation import smooth
from pgm_text.scorer import up_to_end

TokenNLL = Callable[[Tensor, Tensor, Tensor | None], Tensor]  # tokens, hidden, z -> (B, N) nats


@dataclass(frozen=True)
class Bound:
    """An upper bound of the negative log-likelihood, averaged over texts; per-token figures divide by real tokens."""

    nats_per_text: float
    standard_error: float  # over texts
    nats_per_token: float
    perplexity: float
    texts: int
    tokens: int  # up to and including the first end token of each text, BOS not counted
    draws: int  # Monte Carlo draws of hidden sets per text

    @classmethod
    def of(cls, nats: Tensor, tokens: int, draws: int) -> Bound:
        """From nats (n,) of each text."""
        per_token = nats.sum().item() / tokens
        error = nats.std().item() / math.sqrt(len(nats)) if len(nats) > 1 else math.nan
        return cls(nats.mean().item(), error, per_token, math.exp(per_token), len(nats), tokens, draws)


def nelbo(
    token_nll: TokenNLL,
    tokens: Tensor,
    draws: int,
    generator: torch.Generator,
    latents: Callable[[int], Tensor] | None = None,
    batch_size: int = 64,
) -> Tensor:
    """NELBO of each text in nats, (n,) float64: tokens (n, 1 + L), BOS first and never hidden.

    latents(draw) -> z (n, K) of that draw, or None for models without.
    """
    n, length = len(tokens), tokens.shape[1] - 1
    start = torch.rand(n, generator=generator, dtype=torch.float64)
    total = torch.zeros(n, dtype=torch.float64)
    for draw in range(draws):
        k = (((draw + start) / draws) * length).long() + 1  # (n,) in 1..L, stratified over the draws
        ranks = torch.rand(n, length, generator=generator).argsort(1).argsort(1)
        hidden = torch.cat((torch.zeros(n, 1, dtype=torch.bool), ranks < k[:, None]), dim=1)
        z = latents(draw) if latents else None
        for part in torch.arange(n).split(batch_size):
            nats = token_nll(tokens[part], hidden[part], None if z is None else z[part])
            total[part] += nats.double().sum(1).cpu() * length / k[part]
    return total / draws


def measure_bound(
    model: nn.Module,
    tokens: Tensor,
    eos_id: int,
    *,
    draws: int = 16,
    seed: int = 0,
    z: Tensor | None = None,
    smoothing: float = 0.3,
) -> dict[str, Any]:
    """Bound of a model on texts (n, 1 + L) int64.

    For a model with a latent, z (n, K) are the texts' own z_0: "bound" is then the valid one, E[L(x | z')] + KL, with
    both terms beside it, and "given" holds the first term alone under other z, as a check that z is used.
    """
    count = int(up_to_end(tokens, eos_id)[:, 1:].sum())
    device = model.vocab_embed.embedding.device
    algorithm = algorithm_of(model)

    def token_nll(part: Tensor, hidden: Tensor, latent: Tensor | None) -> Tensor:
        latent = None if latent is None else latent.to(device)
        return algorithm.token_nll(model, part.to(device), hidden.to(device), latent)

    def first_term(latents: Callable[[int], Tensor] | None) -> Tensor:
        return nelbo(token_nll, tokens, draws, torch.Generator().manual_seed(seed), latents)

    with evaluating(model):
        if not getattr(model.config, "latent_width", 0):
            return {"bound": vars(Bound.of(first_term(None), count, draws))}
        if z is None:
            raise ValueError("z must be given for a model with a latent: the bound needs each text's own z_0")
        z = z.float()
        noise = torch.Generator().manual_seed(seed + 1)
        own = first_term(lambda draw: smooth(z, smoothing, torch.randn(z.shape, generator=noise)))
        price = kl_nats(z, smoothing).double()
        others = {
            "another text's z": lambda draw: smooth(z.roll(1, 0), smoothing, torch.randn(z.shape, generator=noise)),
            "fresh z": lambda draw: torch.randn(z.shape, generator=noise),
            "null z": lambda draw: torch.full_like(z, torch.nan),
        }
        given = {name: first_term(latents).sum().item() / count for name, latents in others.items()}
    return {
        "bound": vars(Bound.of(own + price, count, draws)),
        "smoothing": smoothing,
        "terms_per_token": {"given z": own.sum().item() / count, "price of z": price.sum().item() / count},
        "given": {"own z": own.sum().item() / count, **given},
    }
