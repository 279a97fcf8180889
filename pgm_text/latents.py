"""RMDM's latent z of each text (arXiv 2609.12382, section 4): drawn once from N(0, I), then held at every step."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from pgm.noise import fold_seed

_STREAM = 0x5BD1E995  # apart from the stream of the token noise, so that z and the draws are independent


def draw_latents(seeds: tuple[int, ...] | list[int], width: int) -> Tensor:
    """z ~ N(0, I) of texts with these seeds, (n, width) float32; each depends on its own seed alone.

    The stream is another one than that of the token noise: texts of one seed share their token noise in all models.
    """
    rows = [
        torch.randn(width, generator=torch.Generator().manual_seed(fold_seed(seed) ^ _STREAM), dtype=torch.float64)
        for seed in seeds
    ]
    return torch.stack(rows).float()


def given_latents(z: Any, count: int, width: int) -> Tensor:
    """Checked z of `count` texts, (count, width) float32, from one vector for all or one per text.

    z: tensor, array or nested list. Raises ValueError naming z otherwise.
    """
    if not width:
        raise ValueError("z must be None for a model without a latent")
    try:
        values = torch.as_tensor(np.asarray(z, dtype=np.float32))
    except (TypeError, ValueError) as error:
        raise ValueError(f"z must be one vector of {width} numbers, or one per text, got {type(z).__name__}") from error
    if values.ndim == 1:
        values = values.expand(count, -1)
    if values.shape != (count, width):
        raise ValueError(f"z must have shape ({width},) or ({count}, {width}), got {tuple(values.shape)}")
    if not values.isfinite().all():
        raise ValueError("z must hold finite numbers, got NaN or infinity")
    return values.clone()
