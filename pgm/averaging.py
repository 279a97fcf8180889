"""Averaging the weights of models that were trained from one another.

Further training on some questions only costs what it leaves out; between the weights before and after lies a model that
has most of both (arXiv 2109.01903). Models that do not descend from common weights average to nothing of use.
"""

import math
from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import nn


@torch.no_grad()
def average(models: Sequence[nn.Module], shares: Sequence[float]) -> nn.Module:
    """A new model whose floating-point weights are the sum of share * weights; all else is the last one's.

    shares: one >= 0 for each model, 1 in all. Raises ValueError for other shares and for models of different configs.
    """
    if len(shares) != len(models):
        raise ValueError(f"shares must be as many as models, got {len(shares)} for {len(models)}")
    if min(shares) < 0 or not math.isclose(sum(shares), 1, abs_tol=1e-6):
        raise ValueError(f"shares must be >= 0 and 1 in all, got {', '.join(f'{share:g}' for share in shares)}")
    averaged = deepcopy(models[-1])
    for model in models:
        if model.config != averaged.config:
            raise ValueError(f"models to average must be alike, got {model.config} and {averaged.config}")
    states = [model.state_dict() for model in models]
    for key, value in averaged.state_dict().items():  # one tensor at a time: large models fit once more, not twice
        if value.is_floating_point():
            value.copy_(sum(share * state[key].float() for share, state in zip(shares, states, strict=True)))
    return averaged
