"""MaskGIT's transformer as in the PGM comparison (Halton-MaskGIT, arXiv 2503.17076): all positions at every step.

Module names are the public checkpoints' keys. RMS norms, SwiGLU, learned positions, adaLN with SiLU, head tied to
the token table, one register behind the image tokens.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pgm.attention import attention, merge_heads, resolve_backend, split_heads
from pgm.layers import modulate


@dataclass(frozen=True)
class MaskedTransformerConfig:
    """Sizes of a masked transformer; the codebook's ids come first, the mask id is `codebook_size`."""

    codebook_size: int
    grid: int  # side of the square grid of codes
    width: int
    layers: int
    heads: int
    num_classes: int
    num_styles: int = 0
    registers: int = 1
    patch: int = 1  # 2: codes are merged 2x2 before the transformer ("proj" in the published code)
    dropout: float = 0.1
    model_type: str = "masked-transformer"

    @property
    def mask_id(self) -> int:
        return self.codebook_size

    @property
    def length(self) -> int:
        return self.grid**2

    @property
    def special_ids(self) -> tuple[int, ...]:
        """Ids that no sampler may produce."""
        return (self.mask_id,)


class RMSNorm(nn.Module):
    """x / rms(x) in float32, eps 1e-5, with weight and optionally bias."""

    def __init__(self, width: int, bias: bool = False):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        out = F.rms_norm(x.float(), x.shape[-1:], self.weight.float(), eps=1e-5)
        return (out if self.bias is None else out + self.bias.float()).to(x.dtype)


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        inner = width // heads * heads  # 510 for the published "small" (512 over 6 heads)
        self.heads, self.dropout = heads, dropout
        self.wq, self.wk, self.wv = (nn.Linear(width, inner, bias=False) for _ in range(3))
        self.wo = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor, backend: str) -> Tensor:
        v = self.wv(x)
        q, k = (F.rms_norm(w(x).float(), (w.out_features,), eps=1e-5).to(v.dtype) for w in (self.wq, self.wk))
        heads = (split_heads(t, self.heads) for t in (q, k, v))
        out = merge_heads(attention(*heads, backend=backend, dropout=self.dropout if self.training else 0.0))
        return F.dropout(self.wo(out), self.dropout, self.training)


class _SwiGLU(nn.Module):
    def __init__(self, width: int, dropout: float):
        super().__init__()
        hidden = -(-int(2 * 4 * width / 3) // 256) * 256  # rounded up to a multiple of 256
        self.dropout = dropout
        self.w1, self.w3 = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.w2 = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.dropout(F.silu(self.w1(x)) * self.w3(x), self.dropout, self.training))


class _Block(nn.Module):
    def __init__(self, config: MaskedTransformerConfig):
        super().__init__()
        width = config.width
        self.mlp = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))
        self.ln1, self.ln2 = RMSNorm(width), RMSNorm(width)
        self.attn = _Attention(width, config.heads, config.dropout)
        self.ff = _SwiGLU(width, config.dropout)

    def forward(self, x: Tensor, modulation: Tensor, backend: str) -> Tensor:
        shift1, scale1, gate1, shift2, scale2, gate2 = (modulation[:, i : i + 1] for i in range(6))
        x = x + gate1 * self.attn(modulate(self.ln1(x), shift1, scale1), backend)
        return x + gate2 * self.ff(modulate(self.ln2(x), shift2, scale2))


class _Transformer(nn.Module):
    def __init__(self, config: MaskedTransformerConfig):
        super().__init__()
        self.layers = nn.ModuleList(_Block(config) for _ in range(config.layers))


class _LastNorm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mlp = nn.Sequential(nn.SiLU(), nn.Linear(width, 2 * width))
        self.norm_final = RMSNorm(width, bias=True)


class MaskedTransformer(nn.Module):
    """The model: codes with masked positions in, logits at all positions out."""

    def __init__(self, config: MaskedTransformerConfig):
        super().__init__()
        self.config = config
        self.attention_backend = "sdpa"
        width, side = config.width, config.grid // config.patch
        self.cls_emb = nn.Embedding(config.num_classes + 1, width)
        if config.num_styles:
            self.style_emb = nn.Embedding(config.num_styles + 1, width)
        self.tok_emb = nn.Embedding(config.codebook_size + 1, width)
        self.pos_emb = nn.Embedding(side**2, width)
        if config.registers:
            self.reg_tokens = nn.Embedding(config.registers, width)
        if config.patch > 1:
            self.in_proj = nn.Conv2d(width, width, config.patch, stride=config.patch, bias=False)
            self.out_proj = nn.Conv2d(width, config.patch**2 * width, 1, bias=False)
        self.transformer = _Transformer(config)
        self.last_norm = _LastNorm(width)
        self.head = nn.Linear(width, config.codebook_size + 1)
        self._initialise()
        self.head.weight = self.tok_emb.weight

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
        for layer in self.transformer.layers:
            nn.init.zeros_(layer.mlp[1].weight)

    def set_attention_backend(self, backend: str) -> None:
        """Choose the attention kernel: auto, sdpa, xformers or math. Raises ValueError where it cannot run."""
        self.attention_backend = resolve_backend(backend, self.tok_emb.weight.device)

    def condition(self, classes: Tensor, styles: Tensor | None = None) -> Tensor:
        """Class labels (B,) int64 (-1 = null), style labels likewise -> condition (B, D)."""
        vector = self.cls_emb(torch.where(classes < 0, self.config.num_classes, classes))
        if self.config.num_styles:
            styles = torch.full_like(classes, -1) if styles is None else styles
            vector = vector + self.style_emb(torch.where(styles < 0, self.config.num_styles, styles))
        return vector

    def forward(self, codes: Tensor, classes: Tensor, styles: Tensor | None = None) -> Tensor:
        """codes (B, L) int64 row-major, `mask_id` where unknown; labels as in `condition` -> logits (B, L, V + 1)."""
        return self.predict(codes, self.prepare(self.condition(classes, styles)))

    def prepare(self, condition: Tensor) -> list[Tensor]:
        """Modulations of every block (B, 6, D) and of the last norm (B, 2, D): constant during a generation."""
        blocks = [layer.mlp(condition).unflatten(-1, (6, -1)) for layer in self.transformer.layers]
        return [*blocks, self.last_norm.mlp(condition).unflatten(-1, (2, -1))]

    def predict(self, codes: Tensor, prepared: list[Tensor], positions: Tensor | None = None) -> Tensor:
        """As `forward` with prepared modulations; positions (B, Q) restricts the head to those: (B, Q, V + 1)."""
        config, side = self.config, self.config.grid // self.config.patch
        x = self.tok_emb(codes)
        if config.patch > 1:
            x = x.transpose(1, 2).unflatten(-1, (config.grid, config.grid))  # (B, D, h, w)
            x = self.in_proj(x).flatten(2).transpose(1, 2)
        x = x + self.pos_emb.weight
        if config.registers:
            x = torch.cat((x, self.reg_tokens.weight.expand(len(x), -1, -1)), dim=1)
        for layer, modulation in zip(self.transformer.layers, prepared, strict=False):
            x = layer(x, modulation, self.attention_backend)
        x = x[:, : side**2]
        if config.patch > 1:
            x = self.out_proj(x.transpose(1, 2).unflatten(-1, (side, side)))
            x = F.pixel_shuffle(x, config.patch).flatten(2).transpose(1, 2)  # (B, L, D)
        if positions is not None:
            x = x.gather(1, positions[..., None].expand(-1, -1, x.shape[-1]))
        last = prepared[-1]
        return self.head(modulate(self.last_norm.norm_final(x), last[:, 0:1], last[:, 1:2]))
