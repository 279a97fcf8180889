"""MDLM's transformer (arXiv 2406.07524): the masked baseline of the text models, full attention over all positions.

Blocks, keys and conditioning are those of the text Partition Transformer without its decoder.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pgm.attention import resolve_backend
from pgm.conditioning import LatentEmbedding, TimestepEmbedding, text_condition
from pgm.layers import OutputLayer, SelfAttentionBlock, TokenEmbedding
from pgm.positions import RotaryEmbedding


@dataclass(frozen=True)
class DiffusionTransformerConfig:
    """Sizes of a masked diffusion transformer for sequences of BOS and `length` tokens."""

    vocab_size: int  # mask id included
    length: int  # content positions, BOS not counted
    width: int
    heads: int
    layers: int
    mask_id: int
    bos_id: int
    latent_width: int = 0  # size of a latent sentence vector (RMDM), 0 = none
    condition_width: int = 128
    mlp_ratio: int = 4
    dropout: float = 0.1
    model_type: str = "diffusion-transformer"

    @property
    def special_ids(self) -> tuple[int, ...]:
        """Ids that no sampler may produce."""
        return (self.mask_id,)


class DiffusionTransformer(nn.Module):
    """Tokens with masks in, logits at all positions out."""

    def __init__(self, config: DiffusionTransformerConfig):
        super().__init__()
        self.config = config
        self.attention_backend = "sdpa"
        width, condition = config.width, config.condition_width
        self.vocab_embed = TokenEmbedding(config.vocab_size, width)
        self.sigma_map = TimestepEmbedding(condition)
        if config.latent_width:
            self.latent_map = LatentEmbedding(config.latent_width, condition)
        self.rotary_emb = RotaryEmbedding(width // config.heads)
        block = (width, config.heads, condition, config.mlp_ratio, config.dropout)
        self.blocks = nn.ModuleList(SelfAttentionBlock(*block) for _ in range(config.layers))
        self.output_layer = OutputLayer(width, config.vocab_size, condition)
        for name, module in self.named_modules():
            if name.endswith("adaLN_modulation") or name == "output_layer.linear":
                nn.init.zeros_(module.weight)
                nn.init.zeros_(module.bias)

    def set_attention_backend(self, backend: str) -> None:
        """Choose the attention kernel: auto, sdpa, xformers or math. Raises ValueError where it cannot run."""
        self.attention_backend = resolve_backend(backend, self.vocab_embed.embedding.device)

    def condition(self, sigma: Tensor, z: Tensor | None = None) -> Tensor:
        """sigma (B,) (zeros for the released models), z (B, K) or None = null -> condition (B, C)."""
        return text_condition(self.sigma_map, getattr(self, "latent_map", None), sigma, z)

    def forward(self, tokens: Tensor, sigma: Tensor, z: Tensor | None = None) -> Tensor:
        """tokens (B, 1 + L) int64, BOS first, `mask_id` where hidden -> logits (B, 1 + L, V)."""
        return self.predict(tokens, self.prepare(self.condition(sigma, z)))

    def prepare(self, condition: Tensor) -> list[Tensor]:
        """Modulations of the blocks (B, 6, D) and of the output layer (B, 2, D): constant during a generation."""
        return [*(block.modulation(condition) for block in self.blocks), self.output_layer.modulation(condition)]

    def predict(self, tokens: Tensor, prepared: list[Tensor], positions: Tensor | None = None) -> Tensor:
        """As `forward` with prepared modulations; positions (B, Q) (0 = BOS) restricts the head: (B, Q, V)."""
        x = self.vocab_embed(tokens)
        angles = self.rotary_emb(torch.arange(tokens.shape[1], device=tokens.device), x.dtype)
        for block, modulation in zip(self.blocks, prepared[:-1], strict=True):
            x = block(x, modulation, angles, None, self.attention_backend)
        if positions is not None:
            x = x.gather(1, positions[..., None].expand(-1, -1, x.shape[-1]))
        return self.output_layer(x, prepared[-1])
