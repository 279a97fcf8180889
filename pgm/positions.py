"""Position encodings: rotary embedding (RoFormer, arXiv 2104.09864) and the sinusoid of GroupSwap's queries."""

import torch
from torch import Tensor, nn


class RotaryEmbedding(nn.Module):
    """Angles p * 10000^(-2j/E) for j = 0..E/2-1; holds the buffer `inv_freq` that public checkpoints carry.

    The buffer is not read: in a half-precision model or file it is rounded, which turns far positions by whole radians.
    """

    def __init__(self, head_dim: int):
        super().__init__()
        self.head_dim = head_dim
        self.register_buffer("inv_freq", rotary_frequencies(head_dim))

    def forward(self, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """positions: (L,) or (B, L) -> cos, sin, each (1 or B, 1, L, E/2) in `dtype`, to be given to `rotate`."""
        angles = positions.float()[..., None] * rotary_frequencies(self.head_dim, positions.device)  # (..., L, E/2)
        angles = angles[None, None] if positions.ndim == 1 else angles[:, None]
        return angles.cos().to(dtype), angles.sin().to(dtype)


def rotary_frequencies(head_dim: int, device: torch.device | str = "cpu") -> Tensor:
    """(E/2,) inverse frequencies in float32."""
    return 1.0 / 10000 ** (torch.arange(0, head_dim, 2, device=device).float() / head_dim)


def rotate(x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate x (B, H, L, E); the first half of the head dimension is paired with the second half."""
    cos, sin = angles
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1)


def sinusoid(length: int, width: int) -> Tensor:
    """(length, width) table [cos(p / 10000^(2j/width)), sin(...)], cosines first."""
    positions = torch.arange(length).float()[:, None]
    angles = positions / 10000 ** (torch.arange(0, width, 2).float() / width)
    return torch.cat((angles.cos(), angles.sin()), dim=-1)
