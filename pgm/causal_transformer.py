"""A left-to-right transformer from the same blocks: the scorer of generated text, no generator of ours.

Without a condition: adaLN is fed the constant 1, so its biases are ordinary learned shifts, scales and gates.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pgm.attention import resolve_backend
from pgm.layers import OutputLayer, SelfAttentionBlock, TokenEmbedding
from pgm.positions import RotaryEmbedding


@dataclass(frozen=True)
class CausalTransformerConfig:
    """Sizes of a left-to-right transformer for sequences of BOS and `length` tokens."""

    vocab_size: int  # mask id included, though it never occurs
    length: int
    width: int
    heads: int
    layers: int
    mask_id: int
    bos_id: int
    mlp_ratio: int = 4
    dropout: float = 0.1
    model_type: str = "causal-transformer"


class CausalTransformer(nn.Module):
    """Tokens in, logits of the next token at every position out."""

    def __init__(self, config: CausalTransformerConfig):
        super().__init__()
        self.config = config
        self.attention_backend = "sdpa"
        width = config.width
        self.vocab_embed = TokenEmbedding(config.vocab_size, width)
        self.rotary_emb = RotaryEmbedding(width // config.heads)
        block = (width, config.heads, 1, config.mlp_ratio, config.dropout)
        self.blocks = nn.ModuleList(SelfAttentionBlock(*block) for _ in range(config.layers))
        self.output_layer = OutputLayer(width, config.vocab_size, 1)
        for name, module in self.named_modules():
            if name.endswith("adaLN_modulation") or name == "output_layer.linear":
                nn.init.zeros_(module.weight)
                nn.init.zeros_(module.bias)

    def set_attention_backend(self, backend: str) -> None:
        """Choose the attention kernel: auto, sdpa, xformers or math. Raises ValueError where it cannot run."""
        self.attention_backend = resolve_backend(backend, self.vocab_embed.embedding.device)

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens (B, L) int64, BOS first -> logits (B, L, V) of the token that follows each position."""
        x = self.vocab_embed(tokens)  # (B, L, D)
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        angles = self.rotary_emb(positions, x.dtype)
        earlier = positions[:, None] >= positions  # (L, L)
        constant = x.new_ones(1, 1)
        for block in self.blocks:
            x = block(x, block.modulation(constant), angles, earlier[None, None], self.attention_backend)
        return self.output_layer(x, self.output_layer.modulation(constant))
