"""Layers of the Partition Transformer for generation: what the condition alone decides is worked into them beforehand.

The functions of `pgm.layers` up to rounding, without gradients and dropout, in half as many operations: a norm's weight
becomes part of the scale that follows it, queries and keys turn together, a gate is added in one pass.
"""

import math
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pgm.attention import attention, merge_heads
from pgm.layers import CrossAttentionBlock, LayerNorm, SelfAttentionBlock

Angles = tuple[Tensor, Tensor]  # cosines and signed sines, each (B, L, 1, E)


@dataclass(frozen=True)
class Embedded:
    """Clean tokens as far as each can be computed without the others: up to the first block's attention."""

    hidden: Tensor  # (B, K, D)
    projected: Tensor  # (B, K, 3H, E): the first block's queries and keys, turned, and its values
    cosines: Tensor  # (B, K, 1, E), with `sines` the angles of the tokens' positions
    sines: Tensor

    @property
    def angles(self) -> Angles:
        return self.cosines, self.sines

    def part(self, rows: slice | Tensor, columns: int) -> "Embedded":
        """The first `columns` tokens of some rows; no copy where rows are a slice."""
        return Embedded(*(getattr(self, f.name)[rows, :columns] for f in fields(self)))

    def room(self, rows: int, columns: int) -> "Embedded":
        """Zeros for so many tokens of the same kind."""
        parts = (getattr(self, f.name) for f in fields(self))
        return Embedded(*(part.new_zeros(rows, columns, *part.shape[2:]) for part in parts))

    def write(self, start: int, new: "Embedded") -> None:
        """Put the tokens of `new` into its first rows from column `start` on, in place."""
        for f in fields(self):
            part = getattr(new, f.name)
            getattr(self, f.name)[: len(part), start : start + part.shape[1]] = part


def rotary_table(angles: tuple[Tensor, Tensor]) -> Angles:
    """Angles of `RotaryEmbedding` for positions (P,) -> cosines and signed sines (P, 1, E) for `turn`."""
    cos, sin = (a[0, 0, :, None] for a in angles)  # (P, 1, E/2)
    return torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)


def turn(x: Tensor, angles: Angles) -> Tensor:
    """`pgm.positions.rotate` for x (B, L, N, E), in place."""
    swapped = torch.cat(x.chunk(2, dim=-1)[::-1], dim=-1)
    return x.mul_(angles[0]).addcmul_(swapped, angles[1])


def fold(modulation: Tensor, *norms: LayerNorm) -> Tensor:
    """A modulation (B, n, D) with the weights of the norms in front of it worked in: (n, B, 1, D).

    Each norm's shift, scale and, if there is one, gate come out as scale, shift and gate; `normalise` takes the first
    two.
    """
    vectors, parts = modulation.float().unbind(1), []
    for start, norm in zip(range(0, len(vectors), 3), norms, strict=True):
        shift, scale, *gate = vectors[start : start + 3]
        parts += [norm.weight.float() * (1 + scale), shift, *gate]
    return torch.stack(parts)[:, :, None].to(modulation.dtype)


def normalise(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Layer norm over the last dimension in float32, then the folded scale and shift."""
    return torch.addcmul(shift, plain_norm(x), scale)


def plain_norm(x: Tensor) -> Tensor:
    """Layer norm over the last dimension in float32, without weight."""
    return F.layer_norm(x, x.shape[-1:], eps=1e-5)


def gelu(x: Tensor) -> Tensor:
    """GELU in tanh form; contiguous x of a CPU is overwritten.

    There tanh costs three times as much as the equal x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3), whose passes
    over small parts of x stay in the cache.
    """
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return F.gelu(x, approximate="tanh")
    double = 2 * (2 / math.pi) ** 0.5
    for part in x.flatten().split(2**16):
        wide = part.float()
        gate = (wide * wide).mul_(0.044715 * double).add_(double).mul_(wide).sigmoid_()
        torch.mul(wide, gate, out=part) if wide is part else part.copy_(gate.mul_(wide))
    return x


def project(block: SelfAttentionBlock, folded: Tensor, x: Tensor, angles: Angles) -> Tensor:
    """Queries, keys (both turned) and values of self-attention: x (B, L, D) -> (B, L, 3H, E)."""
    h = block.attn_qkv(normalise(x, folded[0], folded[1])).unflatten(-1, (3 * block.heads, -1))
    turn(h[:, :, : 2 * block.heads], angles)
    return h


def self_attention(
    block: SelfAttentionBlock,
    folded: Tensor,
    x: Tensor,
    projected: Tensor,
    mask: Tensor | None,
    backend: str,
    keys_values: Tensor | None = None,
) -> Tensor:
    """A self-attention block: folded (6, B, 1, D), x (B, L, D), `project`ed (B, L, 3H, E) -> (B, L, D).

    keys_values: (B, K, 2H, E), `project`ed as well, to attend to in place of x's own.
    """
    queries, own = projected.split((block.heads, 2 * block.heads), dim=2)
    key, value = (own if keys_values is None else keys_values).chunk(2, dim=2)
    q, k, v = (t.transpose(1, 2) for t in (queries, key, value))  # each (B, H, L or K, E)
    return _finish(block, folded, x, merge_heads(attention(q, k, v, mask, backend)))


def cross_attention(
    block: CrossAttentionBlock,
    folded: Tensor,
    x: Tensor,
    key: Tensor,
    value: Tensor,
    angles: Angles,
    mask: Tensor | None,
    backend: str,
) -> Tensor:
    """A cross-attention block: folded (6, B, 1, D), x (B, Q, D), turned key and value (B, H, K, E) -> (B, Q, D)."""
    q = block.attn_q(normalise(x, folded[0], folded[1])).unflatten(-1, (block.heads, -1))  # (B, Q, H, E)
    q = turn(q, angles).transpose(1, 2)
    return _finish(block, folded, x, merge_heads(attention(q, key, value, mask, backend)))


def _finish(block: nn.Module, folded: Tensor, x: Tensor, attended: Tensor) -> Tensor:
    x = torch.addcmul(x, folded[2], block.attn_out(attended))
    branch = block.mlp[2](gelu(block.mlp[0](normalise(x, folded[3], folded[4]))))
    return torch.addcmul(x, folded[5], branch)
