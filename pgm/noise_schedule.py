"""Log-linear noise schedule and loss weights of masked diffusion (MDLM arXiv 2406.07524, PGM arXiv 2505.18883).

t = 0 is clean text, t = 1 is (almost) all masked. A token is hidden with probability 1 - alpha(t). A partition has two
sides: side 1 plays "masked at time t" and side 0 "masked at time 1 - t", so each side has its own weight.
"""

from __future__ import annotations

import torch
from torch import Tensor

NOISE_EPS = 1e-3  # alpha(1) = NOISE_EPS: the published schedule never hides everything for sure
SAMPLING_EPS = 1e-3  # smallest t drawn in training, so that 1/t stays below 1000


def alpha(t: Tensor) -> Tensor:
    """Probability that a token is still visible at time t in [0, 1]; any shape in, same shape out."""
    return 1 - (1 - NOISE_EPS) * t


def alpha_derivative(t: Tensor) -> Tensor:
    """d alpha / dt, constant for this schedule; same shape as t."""
    return torch.full_like(t, -(1 - NOISE_EPS))


def sample_times(uniforms: Tensor, *, stratified: bool = True, sampling_eps: float = SAMPLING_EPS) -> Tensor:
    """Map uniforms (n,) in [0, 1) to times (n,) in [sampling_eps, 1).

    stratified: sample i is moved into the i-th of n equal bins (wrapping around), which lowers the variance of the
    loss.
    """
    if stratified:
        n = uniforms.shape[0]
        offsets = torch.arange(n, dtype=uniforms.dtype, device=uniforms.device) / n
        uniforms = (uniforms / n + offsets) % 1
    return (1 - sampling_eps) * uniforms + sampling_eps


def hidden_mask(uniforms: Tensor, t: Tensor) -> Tensor:
    """Tokens hidden at time t: uniforms (B, L), t (B,) -> (B, L) bool, True with probability 1 - alpha(t)."""
    return uniforms < (1 - alpha(t))[:, None]


def masked_weight(t: Tensor) -> Tensor:
    """Weight -alpha'(t) / (1 - alpha(t)) = 1/t of a token hidden at time t > 0; same shape as t."""
    return 1 / t


def complement_weight(t: Tensor, *, largest: float = 1 / SAMPLING_EPS) -> Tensor:
    """Weight 1/(1-t) of a token on the other side of the partition (hidden at time 1 - t); same shape as t.

    1/(1-t) grows without bound at t -> 1 while the chance of landing on this side stops at NOISE_EPS, which would give
    rare enormous losses, so the weight is capped at `largest`, the same bound that sampling_eps sets for 1/t.
    """
    return 1 / (1 - t).clamp(min=1 / largest)


def partition_weights(group: Tensor, t: Tensor) -> Tensor:
    """Weight of every token: group (B, L) in {0, 1}, t (B,) -> (B, L); 1/t on side 1, capped 1/(1-t) on side 0."""
    return torch.where(group.bool(), masked_weight(t)[:, None], complement_weight(t)[:, None])
