"""Conditional total correlation: what sampling tokens in parallel gives up (RMDM, arXiv 2609.12382, section 3.1).

T(x_M | x_U) = sum_i H(x_i | x_U) - H(x_M | x_U) = KL(joint || product of its marginals), in nats. A latent z lowers it
when z is a common cause of the tokens, and can raise it otherwise (two independent bits and their XOR), so it is
measured, not assumed.
"""

from __future__ import annotations

from torch import Tensor


def entropy(probabilities: Tensor) -> Tensor:
    """Entropy in nats over the last dimension: (..., n) -> (...,); zero probabilities contribute zero."""
    return -(probabilities * probabilities.clamp(min=1e-300).log()).sum(-1)


def total_correlation(joint: Tensor, condition_weights: Tensor | None = None) -> Tensor:
    """Total correlation in nats of a table of joint probabilities, float64.

    joint: (n_1, ..., n_m), one axis per token, summing to 1; or, with `condition_weights` (c,) summing to 1, a stack
    (c, n_1, ..., n_m) of tables given each value of the condition, whose weighted mean is returned. Result: scalar.
    """
    if condition_weights is not None:
        each = [total_correlation(table) * weight for table, weight in zip(joint, condition_weights, strict=True)]
        return sum(each[1:], each[0])
    axes = range(joint.ndim)
    marginals = [joint.sum([other for other in axes if other != axis]) if joint.ndim > 1 else joint for axis in axes]
    return sum((entropy(m) for m in marginals[1:]), entropy(marginals[0])) - entropy(joint.flatten())
