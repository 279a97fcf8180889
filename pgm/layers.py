"""Building blocks of the Partition Transformer: layer norm, adaLN blocks with self- and cross-attention, output layer.

Names of modules follow the public PGM checkpoints (arXiv 2505.18883), so that their state dicts load as they are.
A block takes its modulation (the adaLN vectors) as an argument: it depends only on the condition, so a generation
computes it once.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pgm.attention import attention, merge_heads, split_heads
from pgm.positions import rotate

Angles = tuple[Tensor, Tensor]


class LayerNorm(nn.Module):
    """Layer norm over the last dimension in float32 with a learned weight and no bias."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x.float(), x.shape[-1:], self.weight.float(), eps=1e-5).to(x.dtype)


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """x (B, L, D) scaled by 1 + scale and shifted; shift and scale are (B, 1, D)."""
    return torch.addcmul(shift, x, 1 + scale)


class GELU(nn.Module):
    """GELU in tanh form, 0.5 x (1 + tanh u) with u = sqrt(2/pi) (x + 0.044715 x^3).

    Compiled for a CPU it is the equal x sigmoid(2u): there tanh and its gradient take more than twice as long.
    """

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type != "cpu" or not torch.compiler.is_compiling():
            return F.gelu(x, approximate="tanh")
        wide, double = x.float(), 2 * (2 / math.pi) ** 0.5
        return (wide * torch.sigmoid(wide * (double + 0.044715 * double * wide * wide))).to(x.dtype)


def feed_forward(width: int, ratio: int) -> nn.Sequential:
    """Linear, GELU, Linear."""
    return nn.Sequential(nn.Linear(width, ratio * width), GELU(), nn.Linear(ratio * width, width))


class _ModulatedBlock(nn.Module):
    """What self- and cross-attention blocks share: the adaLN projection and the two gated residual branches."""

    def _finish(self, x: Tensor, attended: Tensor, modulation: Tensor) -> Tensor:
        gate1, shift2, scale2, gate2 = modulation[:, 2:3], modulation[:, 3:4], modulation[:, 4:5], modulation[:, 5:6]
        x = x + gate1 * F.dropout(self.attn_out(attended), self.dropout, self.training)
        branch = self.mlp(modulate(self.norm2(x), shift2, scale2))
        return x + gate2 * F.dropout(branch, self.dropout, self.training)

    def modulation(self, condition: Tensor) -> Tensor:
        """condition (B, C) -> (B, 6, D): shift, scale, gate of attention, then of the feed-forward branch."""
        return self.adaLN_modulation(condition).unflatten(-1, (6, -1))


class SelfAttentionBlock(_ModulatedBlock):
    """Encoder block: modulated self-attention and feed-forward, both gated."""

    def __init__(self, width: int, heads: int, condition_width: int, mlp_ratio: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1 = LayerNorm(width)
        self.attn_qkv = nn.Linear(width, 3 * width, bias=False)
        self.attn_out = nn.Linear(width, width, bias=False)
        self.norm2 = LayerNorm(width)
        self.mlp = feed_forward(width, mlp_ratio)
        self.adaLN_modulation = nn.Linear(condition_width, 6 * width)

    def forward(self, x: Tensor, modulation: Tensor, angles: Angles, mask: Tensor | None, backend: str) -> Tensor:
        """x (B, L, D), modulation (B, 6, D), mask True = visible, broadcastable to (B, 1, L, L) -> (B, L, D)."""
        h = self.attn_qkv(modulate(self.norm1(x), modulation[:, 0:1], modulation[:, 1:2]))
        q, k, v = (split_heads(t, self.heads) for t in h.chunk(3, dim=-1))  # each (B, H, L, E)
        attended = merge_heads(attention(rotate(q, angles), rotate(k, angles), v, mask, backend))
        return self._finish(x, attended, modulation)


class CrossAttentionBlock(_ModulatedBlock):
    """Decoder block: queries attend to the encoder's output, whose keys and values are not modulated."""

    def __init__(self, width: int, heads: int, condition_width: int, mlp_ratio: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.q_norm1 = LayerNorm(width)
        self.kv_norm1 = LayerNorm(width)
        self.norm2 = LayerNorm(width)
        self.attn_q = nn.Linear(width, width, bias=False)
        self.attn_kv = nn.Linear(width, 2 * width, bias=False)
        self.attn_out = nn.Linear(width, width, bias=False)
        self.mlp = feed_forward(width, mlp_ratio)
        self.adaLN_modulation = nn.Linear(condition_width, 6 * width)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        modulation: Tensor,
        query_angles: Angles,
        key_angles: Angles,
        mask: Tensor | None,
        backend: str,
    ) -> Tensor:
        """x (B, Q, D), memory (B, K, D), modulation (B, 6, D) -> (B, Q, D)."""
        q = split_heads(self.attn_q(modulate(self.q_norm1(x), modulation[:, 0:1], modulation[:, 1:2])), self.heads)
        k, v = (split_heads(t, self.heads) for t in self.attn_kv(self.kv_norm1(memory)).chunk(2, dim=-1))
        attended = merge_heads(attention(rotate(q, query_angles), rotate(k, key_angles), v, mask, backend))
        return self._finish(x, attended, modulation)


class OutputLayer(nn.Module):
    """Modulated norm and the projection to logits."""

    def __init__(self, width: int, vocab_size: int, condition_width: int):
        super().__init__()
        self.norm_final = LayerNorm(width)
        self.linear = nn.Linear(width, vocab_size)
        self.adaLN_modulation = nn.Linear(condition_width, 2 * width)

    def modulation(self, condition: Tensor) -> Tensor:
        """condition (B, C) -> (B, 2, D): shift, scale."""
        return self.adaLN_modulation(condition).unflatten(-1, (2, -1))

    def forward(self, x: Tensor, modulation: Tensor) -> Tensor:
        """x (B, L, D) -> logits (B, L, V)."""
        return self.linear(modulate(self.norm_final(x), modulation[:, 0:1], modulation[:, 1:2]))


class TokenEmbedding(nn.Module):
    """A plain lookup table under the key `embedding`."""

    def __init__(self, vocab_size: int, width: int):
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(vocab_size, width))
        nn.init.kaiming_uniform_(self.embedding, a=5**0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens (B, L) int64 -> (B, L, D)."""
        return F.embedding(tokens, self.embedding)
