"""Condition vectors, what adaLN is modulated by: labels for images; a timestep and a latent vector for text."""

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
    """Sinusoid of sigma through a small MLP (key `sigma_map.mlp` of the text checkpoints)."""

    def __init__(self, width: int, frequencies: int = 128):
        super().__init__()
        self.frequencies = frequencies
        self.mlp = nn.Sequential(nn.Linear(2 * frequencies, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, sigma: Tensor) -> Tensor:
        """sigma (B,) -> (B, width). The released text models are trained with sigma = 0 throughout."""
        steps = torch.arange(self.frequencies, device=sigma.device).float()
        angles = sigma.float()[:, None] * 10000 ** (-steps / self.frequencies)
        features = torch.cat((angles.cos(), angles.sin()), dim=-1)  # (B, 2 * frequencies)
        return self.mlp(features.to(self.mlp[0].weight.dtype))


class LatentEmbedding(nn.Module):
    """A latent sentence vector z (RMDM, arXiv 2609.12382) through a small MLP, with a learned `null` (our choice)."""

    def __init__(self, latent_width: int, width: int):
        super().__init__()
        self.null = nn.Parameter(torch.zeros(latent_width))
        self.mlp = nn.Sequential(nn.Linear(latent_width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, z: Tensor) -> Tensor:
        """z (B, latent_width), rows of NaN = null -> (B, width)."""
        z = torch.where(z.isnan().any(-1, keepdim=True), self.null.to(z.dtype), z)
        return self.mlp(z.to(self.mlp[0].weight.dtype))


def text_condition(
    sigma_map: TimestepEmbedding, latent_map: LatentEmbedding | None, sigma: Tensor, z: Tensor | None
) -> Tensor:
    """Condition of text models: sigma (B,), z (B, K) or None for the null latent -> (B, width).

    The text checkpoints apply a SiLU last; the latent is added in front of it.
    """
    vector = sigma_map(sigma)
    if latent_map is not None:
        null = torch.full((len(sigma), len(latent_map.null)), torch.nan, device=sigma.device)
        vector = vector + latent_map(null if z is None else z)
    return F.silu(vector)
