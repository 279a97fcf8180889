"""Condition vectors: what adaLN is modulated by. Class and style labels for images, a timestep embedding for text."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LabelEmbedding(nn.Module):
    """One table of `count` labels with the null label in the last row (index `count`)."""

    def __init__(self, count: int, width: int):
        super().__init__()
        self.count = count
        self.embedding_table = nn.Embedding(count + 1, width)

    def forward(self, labels: Tensor) -> Tensor:
        """labels (B,) int64, `count` or -1 = null -> (B, width)."""
        return self.embedding_table(torch.where(labels < 0, self.count, labels))


class TimestepEmbedding(nn.Module):
    """Sinusoid of sigma through a small MLP, with the text checkpoints' extra SiLU at the end (key `sigma_map.mlp`)."""

    def __init__(self, width: int, frequencies: int = 128):
        super().__init__()
        self.frequencies = frequencies
        self.mlp = nn.Sequential(nn.Linear(2 * frequencies, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, sigma: Tensor) -> Tensor:
        """sigma (B,) -> (B, width). The released text models are trained with sigma = 0 throughout."""
        steps = torch.arange(self.frequencies, device=sigma.device).float()
        angles = sigma.float()[:, None] * 10000 ** (-steps / self.frequencies)
        features = torch.cat((angles.cos(), angles.sin()), dim=-1)  # (B, 2 * frequencies)
        return F.silu(self.mlp(features.to(self.mlp[0].weight.dtype)))
