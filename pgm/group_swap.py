"""GroupSwap (arXiv 2505.18883, section 4): position queries that fetch what the other group's encoder outputs know.

It is the only way from one group to the other: no residual connects a position's own token with its prediction.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from pgm.attention import attention, merge_heads, split_heads
from pgm.positions import rotate, sinusoid
from pgm.prepared_layers import Angles, turn

QueryMode = Literal["learn", "learn+freqs", "learn+freqs+mean", "learn+freqs+logsumexp"]
QueryProcessor = Literal["linear", "mlp4"]


class GroupSwap(nn.Module):
    """Queries from positions (and, in two modes, a summary of the other group), attending to encoder outputs."""

    def __init__(self, width: int, heads: int, positions: int, mode: QueryMode, processor: QueryProcessor):
        super().__init__()
        self.heads, self.mode = heads, mode
        self.base_embedding = nn.Parameter(torch.randn(1, width))
        self.pre_query_norm = nn.LayerNorm(width)
        if processor == "linear":
            self.query_processor: nn.Module = nn.Linear(width, width)
        else:
            self.query_processor = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
        self.hidden_to_key_value = nn.Linear(width, 2 * width)
        self.output_linear = nn.Linear(width, width)
        self.register_buffer("pos_freqs", sinusoid(positions, width), persistent=False)

    @property
    def depends_on_memory(self) -> bool:
        """Whether queries depend on encoder outputs; otherwise a model can compute them once for all positions."""
        return self.mode in ("learn+freqs+mean", "learn+freqs+logsumexp")

    def queries(self, positions: Tensor, summary: Tensor | None = None) -> Tensor:
        """Internal positions (Q,) or (B, Q), summary (B, Q or 1, D) or None -> (1 or B, Q, D)."""
        base = self.base_embedding.expand(*positions.shape, -1)  # (..., Q, D)
        if self.mode != "learn":
            base = base + self.pos_freqs[positions].to(base.dtype)
        base = base[None] if positions.ndim == 1 else base
        if summary is not None:
            base = base + summary
        return self.query_processor(self.pre_query_norm(base))

    def summary(self, memory: Tensor, visible: Tensor) -> Tensor:
        """Mean or logsumexp of visible encoder outputs; no visible one gives zero.

        memory (B, K, D); visible bool (B, G, K), True where set g holds key k. Returns (B, G, D).
        """
        if self.mode == "learn+freqs+mean":
            weight = visible.to(memory.dtype)
            return weight @ memory / weight.sum(-1, keepdim=True).clamp(min=1)
        hidden = memory.float()[:, None].masked_fill(~visible[..., None], -torch.inf)  # (B, G, K, D)
        pooled = hidden.logsumexp(dim=2)
        return torch.where(pooled.isinf(), 0.0, pooled).to(memory.dtype)

    def forward(
        self, queries: Tensor, memory: Tensor, query_angles, key_angles, mask: Tensor | None, backend: str
    ) -> Tensor:
        """queries (1 or B, Q, D), memory (B, K, D), mask broadcastable to (B, 1, Q, K) -> decoder input (B, Q, D)."""
        k, v = (split_heads(t, self.heads) for t in self.hidden_to_key_value(memory).chunk(2, dim=-1))
        q = rotate(split_heads(queries, self.heads), query_angles).to(k.dtype).expand(len(memory), -1, -1, -1)
        return self.output_linear(merge_heads(attention(q, rotate(k, key_angles), v, mask, backend)))

    def fetch(self, queries: Tensor, memory: Tensor, key_angles: Angles, mask: Tensor | None, backend: str) -> Tensor:
        """As `forward` while generating: queries (B, Q, H, E) already turned, angles as `turn` takes them."""
        k, v = self.hidden_to_key_value(memory).unflatten(-1, (2 * self.heads, -1)).chunk(2, dim=2)  # (B, K, H, E)
        q, k, v = (t.transpose(1, 2) for t in (queries, turn(k, key_angles), v))
        return self.output_linear(merge_heads(attention(q, k, v, mask, backend)))
