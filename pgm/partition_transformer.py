"""Partition Transformer (arXiv 2505.18883, section 4): two groups of tokens, blind to each other, predict each other.

Positions: the beginning-of-sequence token (BOS) has position 0, content position p (0-based) has position p + 1.
Internally registers come first, so position p lives at p + registers. Module names are the public checkpoints' keys.

    encoder   tokens of a group attend to their own group
    GroupSwap position queries fetch the other group's encoder outputs
    decoder   queries attend to the other group's encoder outputs, then logits
"""

import re
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pgm.attention import resolve_backend
from pgm.compiled_pass import CompiledPass, make_pass
from pgm.conditioning import LabelEmbedding, LatentEmbedding, TimestepEmbedding, text_condition
from pgm.group_swap import GroupSwap, QueryMode, QueryProcessor
from pgm.layers import CrossAttentionBlock, OutputLayer, SelfAttentionBlock, TokenEmbedding
from pgm.partitioning import visibility
from pgm.positions import RotaryEmbedding
from pgm.prepared_layers import (
    Angles,
    Embedded,
    cross_attention,
    fold,
    normalise,
    plain_norm,
    project,
    rotary_table,
    self_attention,
    turn,
)


@dataclass(frozen=True)
class PartitionTransformerConfig:
    """Sizes of a Partition Transformer. Defaults are those of the published image models."""

    vocab_size: int  # rows of the embedding and logits, special ids included
    length: int  # content positions, BOS not counted
    width: int
    heads: int
    encoder_layers: int
    decoder_layers: int
    mask_id: int  # never fed in, its logit is suppressed
    bos_id: int
    registers: int = 2  # first half belongs to group 1, second half to group 0
    num_classes: int = 0
    num_styles: int = 0  # optional second label table, added to the class's
    latent_width: int = 0  # text models: size of a latent sentence vector, 0 = none
    condition_width: int = 0  # 0: the width; text models use 128 with a timestep embedding
    query_mode: QueryMode = "learn+freqs"
    query_processor: QueryProcessor = "linear"
    decoder_mode: str = "cross-only"  # or interleave, interleave-k-cross, interleave-k-self, k-cross-first
    self_attention_first: bool = False
    mlp_ratio: int = 4
    dropout: float = 0.1
    model_type: str = "partition-transformer"

    @property
    def special_ids(self) -> tuple[int, ...]:
        """Ids that no sampler may produce: the mask, and BOS where it is not a token of the data."""
        return (self.mask_id, self.bos_id) if self.bos_id > self.mask_id else (self.mask_id,)

    @property
    def extra_queries(self) -> int:
        """Registers of group 1 that are queried along where decoder layers mix queries."""
        return 0 if self.decoder_mode == "cross-only" else self.registers // 2


@dataclass(frozen=True)
class Prepared:
    """What does not change during a generation: modulations, angles and queries of all positions, folded weights."""

    blocks: Tensor  # (N, 6, B, 1, D) folded modulations of the encoder's blocks, then of the decoder's layers
    output: Tensor  # (2, B, 1, D)
    cosines: Tensor  # (P, 1, E), with `sines` the angles of all P = registers + 1 + length internal positions
    sines: Tensor
    queries: Tensor | None  # (P, H, E) GroupSwap's queries, turned; None where they depend on encoder outputs
    keys_values: Tensor | None  # (2 n D, D) of all n cross-attention layers, first their keys, then their values

    def rows(self, rows: slice | Tensor) -> "Prepared":
        """The same for some of the B conditions."""
        return replace(self, blocks=self.blocks[:, :, rows], output=self.output[:, rows])

    def angles(self, internal: Tensor) -> Angles:
        """Angles of internal positions (B, L), each (B, L, 1, E)."""
        return self.cosines[internal], self.sines[internal]


@dataclass(frozen=True)
class Memory:
    """Encoder output with the angles of its rows' positions and, for ragged batches, which rows count."""

    hidden: Tensor  # (B, K, D)
    angles: Angles
    visible: Tensor | None  # (B, K) bool, None = all


def decoder_layer_kinds(mode: str, layers: int, self_attention_first: bool = False) -> list[str]:
    """Kinds ("cross" or "self") of decoder layers for a decoder mode of the published code.

    Raises ValueError for an unknown mode.
    """
    if mode == "cross-only":
        return ["cross"] * layers
    if match := re.fullmatch(r"(\d+)-cross-first", mode):
        return ["cross" if i < int(match[1]) else "self" for i in range(layers)]
    if mode == "interleave":
        kinds = ["self", "cross"] if self_attention_first else ["cross", "self"]
    elif match := re.fullmatch(r"interleave-(\d+)-(cross|self)", mode):
        count, kind = int(match[1]), match[2]
        kinds = ["cross"] * count + ["self"] if kind == "cross" else ["cross"] + ["self"] * count
    else:
        raise ValueError(
            "decoder_mode must be cross-only, interleave, interleave-k-cross, interleave-k-self or k-cross-first, "
            f"got {mode!r}"
        )
    return [kinds[i % len(kinds)] for i in range(layers)]


class _Encoder(nn.Module):
    def __init__(self, blocks: list[SelfAttentionBlock]):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)


class _Decoder(nn.Module):
    def __init__(self, group_swap: GroupSwap, layers: list[nn.Module]):
        super().__init__()
        self.group_swap = group_swap
        self.layers = nn.ModuleList(layers)


class PartitionTransformer(nn.Module):
    """The model; `forward` trains both groups at once, `prepare`/`encode`/`decode` generate."""

    def __init__(self, config: PartitionTransformerConfig):
        super().__init__()
        self.config = config
        self.attention_backend = "sdpa"
        self.compiled_pass: CompiledPass | None = None
        width, condition = config.width, config.condition_width or config.width
        block = (width, config.heads, condition, config.mlp_ratio, config.dropout)
        self.vocab_embed = TokenEmbedding(config.vocab_size, width)
        if config.num_classes:
            self.cls_embed = LabelEmbedding(config.num_classes, condition)
        if config.num_styles:
            self.style_embed = LabelEmbedding(config.num_styles, condition)
        if not config.num_classes:
            self.sigma_map = TimestepEmbedding(condition)
        if config.latent_width:
            self.latent_map = LatentEmbedding(config.latent_width, condition)
        self.rotary_emb = RotaryEmbedding(width // config.heads)
        if config.registers:
            self.reg_tokens = nn.Embedding(config.registers, width)
        self.encoder = _Encoder([SelfAttentionBlock(*block) for _ in range(config.encoder_layers)])
        kinds = decoder_layer_kinds(config.decoder_mode, config.decoder_layers, config.self_attention_first)
        layers = [CrossAttentionBlock(*block) if kind == "cross" else SelfAttentionBlock(*block) for kind in kinds]
        positions = config.length + 1 + config.registers
        swap = GroupSwap(width, config.heads, positions, config.query_mode, config.query_processor)
        self.decoder = _Decoder(swap, layers)
        self.output_layer = OutputLayer(width, config.vocab_size, condition)
        self._initialise()

    def _initialise(self) -> None:
        # Zero gates and zero head: a fresh model predicts the uniform distribution and every block is the identity.
        for name, module in self.named_modules():
            if name.endswith("adaLN_modulation") or name == "output_layer.linear":
                nn.init.zeros_(module.weight)
                nn.init.zeros_(module.bias)
        if self.config.registers:
            nn.init.normal_(self.reg_tokens.weight, std=0.02)

    def set_attention_backend(self, backend: str) -> None:
        """Choose the attention kernel: auto, sdpa, xformers or math. Raises ValueError where it cannot run."""
        self.attention_backend = resolve_backend(backend, self.vocab_embed.embedding.device)

    def set_compilation(self, compilation: str) -> None:
        """Whether generations run through `torch.compile`: "auto" where it works, or "off". Raises ValueError else."""
        self.compiled_pass = make_pass(compilation, self.vocab_embed.embedding.device)

    def condition(self, classes: Tensor | None, styles: Tensor | None = None) -> Tensor:
        """Class labels (B,) int64 (-1 = null), style labels likewise -> condition (B, C).

        A model without class labels takes a (B,) tensor of sigmas (zeros for the released text models) and, where it
        has one, the latent z (B, K) in place of the styles.
        """
        if not self.config.num_classes:
            return text_condition(self.sigma_map, getattr(self, "latent_map", None), classes, styles)
        vector = self.cls_embed(classes)
        if self.config.num_styles:
            vector = vector + self.style_embed(torch.full_like(classes, -1) if styles is None else styles)
        return vector

    # -- training -----------------------------------------------------------------------------------------------

    def forward(
        self,
        tokens: Tensor,
        groups: Tensor,
        classes: Tensor,
        styles: Tensor | None = None,
        stages: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Predict every token from the other group, or from what is known before its stage.

        tokens: (B, 1 + L) int64, BOS first, all true; groups: (B, 1 + L) in {0, 1}; classes, styles: (B,) as in
        `condition`; stages: (B, 1 + L) int64 as in `visibility`, BOS at 0, or None; positions: (1 + L,) int64 where the
        tokens are some of all, BOS at 0, or None. Returns logits (B, 1 + L, V); the logits of a position depend on
        tokens of the other group only, in staged rows on those of earlier stages only.
        Raises ValueError for stages where decoder layers or queries mix more than that.
        """
        condition = self.condition(classes, styles)
        registers, swap, backend = self.config.registers, self.decoder.group_swap, self.attention_backend
        if stages is not None and (swap.depends_on_memory or self.config.decoder_mode != "cross-only"):
            raise ValueError(
                "stages need decoder_mode 'cross-only' and query_mode 'learn' or 'learn+freqs', got a model with "
                f"{self.config.decoder_mode!r} and {self.config.query_mode!r}"
            )
        hidden = self.vocab_embed(tokens)
        groups = groups.bool()
        if registers:
            batch = len(tokens)
            hidden = torch.cat((self.reg_tokens.weight.to(hidden.dtype).expand(batch, -1, -1), hidden), dim=1)
            first = torch.arange(registers, device=tokens.device) < registers // 2
            groups = torch.cat((first.expand(batch, -1), groups), dim=1)
            if stages is not None:  # the sampler has the registers of group 0 from the start, the others never
                late = torch.where(first, tokens.shape[1], 0) * (stages > 0).any(1, keepdim=True)
                stages = torch.cat((late, stages), dim=1)
        internal = torch.arange(hidden.shape[1], device=tokens.device)  # (L',)
        if positions is not None:
            internal = torch.cat((internal[:registers], positions + registers))
        angles = self.rotary_emb(internal, hidden.dtype)
        same, other = visibility(groups, stages)  # (B, L', L')
        for block in self.encoder.blocks:
            hidden = block(hidden, block.modulation(condition), angles, same[:, None], backend)
        # Register rows are not predicted; they only matter as queries where decoder layers mix queries.
        drop = registers if self.config.decoder_mode == "cross-only" else 0
        query_angles = tuple(a[:, :, drop:] for a in angles)
        other = other[:, None, drop:]
        summary = None
        if swap.depends_on_memory:
            per_group = swap.summary(hidden, torch.stack((groups, ~groups), dim=1))  # (B, 2, D): for group 0, group 1
            summary = per_group.gather(1, groups[:, drop:, None].long().expand(-1, -1, per_group.shape[-1]))
        x = swap(swap.queries(internal[drop:], summary), hidden, query_angles, angles, other, backend)
        for layer in self.decoder.layers:
            if isinstance(layer, CrossAttentionBlock):
                x = layer(x, hidden, layer.modulation(condition), query_angles, angles, other, backend)
            else:
                x = layer(x, layer.modulation(condition), query_angles, same[:, None], backend)
        x = x[:, registers - drop :]
        return self.output_layer(x, self.output_layer.modulation(condition))  # (B, 1 + L, V)

    # -- generation ---------------------------------------------------------------------------------------------

    def prepare(self, condition: Tensor) -> Prepared:
        """Compute once per generation what no step changes, for condition (B, C)."""
        swap, registers = self.decoder.group_swap, self.config.registers
        positions = torch.arange(registers + 1 + self.config.length, device=condition.device)
        cosines, sines = rotary_table(self.rotary_emb(positions, self.vocab_embed.embedding.dtype))
        queries = None
        if not swap.depends_on_memory:
            queries = turn(swap.queries(positions).unflatten(-1, (swap.heads, -1)), (cosines, sines))[0]
        blocks = [fold(block.modulation(condition), block.norm1, block.norm2) for block in self.encoder.blocks]
        weights = []
        for layer in self.decoder.layers:
            norm = layer.norm1 if isinstance(layer, SelfAttentionBlock) else layer.q_norm1
            blocks.append(fold(layer.modulation(condition), norm, layer.norm2))
            if isinstance(layer, CrossAttentionBlock):
                weight = layer.attn_kv.weight.float() * layer.kv_norm1.weight.float()
                weights.append(weight.to(layer.attn_kv.weight.dtype).chunk(2))
        output = fold(self.output_layer.modulation(condition), self.output_layer.norm_final)
        keys_values = torch.cat([part for kind in zip(*weights, strict=True) for part in kind]) if weights else None
        return Prepared(torch.stack(blocks), output, cosines, sines, queries, keys_values)

    def embed(self, tokens: Tensor, positions: Tensor, prepared: Prepared, registers: bool = True) -> Embedded:
        """What each clean token's computation does not share with the others: a generation does it once per token.

        tokens, positions: (B, K) int64 in any order, BOS at position 0; registers: whether to put the registers in
        front, as the first call of a generation has to.
        """
        hidden, internal = self.vocab_embed(tokens), positions + self.config.registers
        if registers and self.config.registers:
            ids = torch.arange(self.config.registers // 2, self.config.registers, device=tokens.device)
            hidden = torch.cat((self.reg_tokens(ids).to(hidden.dtype).expand(len(tokens), -1, -1), hidden), dim=1)
            internal = torch.cat((ids.expand(len(tokens), -1), internal), dim=1)
        angles = prepared.angles(internal)
        return Embedded(hidden, project(self.encoder.blocks[0], prepared.blocks[0], hidden, angles), *angles)

    def encode(self, tokens: Tensor, positions: Tensor, prepared: Prepared, lengths: Tensor | None = None) -> Memory:
        """Encode the clean tokens of a generation.

        tokens, positions: (B, K) int64 in any order, BOS included at position 0; lengths: (B,) how many of the K
        columns count in each row (the rest is padding), or None for all.
        """
        return self.encode_embedded(self.embed(tokens, positions, prepared), prepared, lengths)

    def encode_embedded(self, embedded: Embedded, prepared: Prepared, lengths: Tensor | None = None) -> Memory:
        """Encode embedded tokens (B, K, D), registers in front; lengths as in `encode`, registers not counted."""
        hidden, visible, mask = embedded.hidden, None, None
        if lengths is not None:
            registers = self.config.registers - self.config.registers // 2
            columns = torch.arange(hidden.shape[1], device=hidden.device)
            visible = columns < (lengths + registers)[:, None]
            mask = visible[:, None, None]
        for index, block in enumerate(self.encoder.blocks):
            folded = prepared.blocks[index]
            projected = project(block, folded, hidden, embedded.angles) if index else embedded.projected
            hidden = self_attention(block, folded, hidden, projected, mask, self.attention_backend)
        return Memory(hidden, embedded.angles, visible)

    def decode(self, memory: Memory, positions: Tensor, prepared: Prepared, lengths: Tensor | None = None) -> Tensor:
        """Logits (B, Q, V) at positions (B, Q) int64 (0 = BOS, 1.. = content) given encoded clean tokens.

        lengths: (B,) how many queries of each row count; needed only where decoder layers mix queries.
        """
        internal = positions + self.config.registers
        extra = self.config.extra_queries
        if extra:
            registers = torch.arange(extra, device=positions.device).expand(len(positions), -1)
            internal = torch.cat((registers, internal), dim=1)
        x = self._swap(memory, internal, prepared)
        query_mask = None
        if lengths is not None:
            columns = torch.arange(internal.shape[1], device=positions.device)
            query_mask = (columns < extra + lengths[:, None])[:, None, None]
        x = self._decode_layers(x, memory, prepared.angles(internal), prepared, query_mask)
        return self._head(x[:, extra:], prepared)

    def _swap(self, memory: Memory, internal: Tensor, prepared: Prepared) -> Tensor:
        """Decoder input (B, Q, D) at internal positions (B, Q)."""
        swap = self.decoder.group_swap
        if prepared.queries is not None:
            queries = prepared.queries[internal]  # (B, Q, H, E)
        else:
            visible = memory.visible
            if visible is None:
                visible = torch.ones(memory.hidden.shape[:2], dtype=torch.bool, device=internal.device)
            queries = swap.queries(internal, swap.summary(memory.hidden, visible[:, None]))
            queries = turn(queries.unflatten(-1, (swap.heads, -1)), prepared.angles(internal))
        mask = None if memory.visible is None else memory.visible[:, None, None]
        return swap.fetch(queries, memory.hidden, memory.angles, mask, self.attention_backend)

    def _decode_layers(
        self, x: Tensor, memory: Memory, angles: Angles, prepared: Prepared, query_mask: Tensor | None
    ) -> Tensor:
        """All decoder layers: x (B, Q, D) -> (B, Q, D)."""
        heads, backend = self.config.heads, self.attention_backend
        mask = None if memory.visible is None else memory.visible[:, None, None]
        keys: list[Tensor] = []
        values: list[Tensor] = []
        if prepared.keys_values is not None:
            both = self.keys_values(memory.hidden, memory.angles, prepared).transpose(1, 2)
            keys, values = (list(t.split(heads, dim=1)) for t in both.chunk(2, dim=1))  # n of (B, H, K, E) each
        first = self.config.encoder_layers
        crossed = 0
        for index, layer in enumerate(self.decoder.layers):
            folded = prepared.blocks[first + index]
            if isinstance(layer, CrossAttentionBlock):
                x = cross_attention(layer, folded, x, keys[crossed], values[crossed], angles, mask, backend)
                crossed += 1
            else:
                x = self_attention(layer, folded, x, project(layer, folded, x, angles), query_mask, backend)
        return x

    def keys_values(self, hidden: Tensor, angles: Angles, prepared: Prepared) -> Tensor:
        """Keys, turned, and values of all n cross-attention layers: encoder output (B, K, D) -> (B, K, 2 n H, E)."""
        both = F.linear(plain_norm(hidden), prepared.keys_values)  # (B, K, 2 n D)
        both = both.unflatten(-1, (-1, self.config.width // self.config.heads))
        turn(both[:, :, : both.shape[2] // 2], angles)
        return both

    def _head(self, x: Tensor, prepared: Prepared) -> Tensor:
        """x (B, Q, D) -> logits (B, Q, V)."""
        return self.output_layer.linear(normalise(x, *prepared.output))
