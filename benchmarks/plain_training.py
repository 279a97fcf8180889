"""The Partition Transformer's training step as published (arXiv 2505.18883, section 4), in plain words.

Full-length rows, boolean masks (B, 1, L', L') that keep the two groups apart, PyTorch's attention with those masks,
autocast, one operation after another without compilation, an ordinary AdamW. It reads a model of ours for its weights
alone, so that losses and gradients can be compared; how much faster our step is, is measured against this.
"""

import copy
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pgm.devices import resolve_precision
from pgm.partition_transformer import PartitionTransformer
from pgm.training import Batch, TrainingConfig, learning_rate


class PlainTraining:
    """A copy of a model with its optimiser; `step` trains it on a batch."""

    def __init__(self, model: PartitionTransformer, config: TrainingConfig):
        """Raises ValueError for a model that this plain step does not know."""
        check(model)
        self.model, self.steps = copy.deepcopy(model).train(), 0
        precision = resolve_precision(config.precision, next(self.model.parameters()).device)
        self.config = replace(config, precision=precision)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=config.lr, betas=config.betas, weight_decay=config.weight_decay
        )
        self.average = [parameter.detach().clone() for parameter in self.model.parameters()]

    def step(self, batch: Batch) -> float:
        """One optimiser step on a batch of `pgm.objectives.training_loss`. Returns the loss before it."""
        parameters = list(self.model.parameters())
        self.steps += 1
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.config, self.steps)
        device = parameters[0].device
        batch = {name: tensor.to(device) for name, tensor in batch.items()}
        with torch.autocast(device.type, torch.bfloat16, enabled=self.config.precision == "bf16"):
            loss = plain_loss(self.model, batch)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, self.config.clip)
        self.optimizer.step()
        if decay := self.config.ema_decay:
            with torch.no_grad():
                for average, parameter in zip(self.average, parameters, strict=True):
                    average.mul_(decay).add_((1 - decay) * parameter)
        return loss.item()


def check(model: PartitionTransformer) -> None:
    """Raises ValueError for a model without registers, without classes, or with another decoder than the published."""
    config = model.config
    if config.registers < 2 or not config.num_classes or config.decoder_mode != "cross-only":
        raise ValueError(f"the plain step trains models of pictures with cross-attention alone, got {config}")


def plain_loss(model: PartitionTransformer, batch: Batch) -> Tensor:
    """Mean cross-entropy over all positions of both groups, in nats."""
    codes = batch["codes"]
    logits = plain_logits(model, codes, batch["hidden"], batch["classes"], batch.get("styles")).float()  # (B, 1 + L, V)
    logits[..., model.config.mask_id] = -1e6
    return F.cross_entropy(logits[:, 1:].transpose(1, 2), codes)


def plain_logits(
    model: PartitionTransformer, codes: Tensor, hidden: Tensor, classes: Tensor, styles: Tensor | None
) -> Tensor:
    """Logits (B, 1 + L, V) of true codes (B, L) in groups hidden (B, L) bool, True = group 1, for labels (B,)."""
    config, swap = model.config, model.decoder.group_swap
    batch, half, registers = len(codes), config.registers // 2, config.registers
    condition = label_rows(model.cls_embed.embedding_table, classes)
    if config.num_styles:
        nulls = torch.full_like(classes, -1)
        condition = condition + label_rows(model.style_embed.embedding_table, nulls if styles is None else styles)
    tokens = torch.cat((codes.new_full((batch, 1), config.bos_id), codes), dim=1)
    x = torch.cat((model.reg_tokens.weight.repeat(batch, 1, 1), model.vocab_embed.embedding[tokens]), dim=1)
    own = hidden.new_zeros(batch, registers + 1)  # registers and BOS: of group 0 but for the first half
    own[:, :half] = True
    groups = torch.cat((own, hidden), dim=1)  # (B, L')
    same = (groups[:, :, None] == groups[:, None, :])[:, None]  # (B, 1, L', L')
    other = ~same[:, :, registers:]  # (B, 1, 1 + L, L')
    positions = torch.arange(x.shape[1], device=codes.device)
    angles = rotary_angles(positions, config.width // config.heads)
    query_angles = angles[registers:]
    for block in model.encoder.blocks:
        shift, scale, gate, *rest = block.adaLN_modulation(condition)[:, None].chunk(6, dim=-1)
        q, k, v = block.attn_qkv(modulated(norm(x, block.norm1), shift, scale)).chunk(3, dim=-1)
        attended = attend(q, k, v, same, angles, angles, config.heads)
        x = x + gate * F.dropout(block.attn_out(attended), block.dropout)
        x = feed(block, x, *rest)
    memory = x
    queries = swap.base_embedding + swap.pos_freqs[registers : x.shape[1]]
    queries = swap.query_processor(swap.pre_query_norm(queries)).expand(batch, -1, -1)
    k, v = swap.hidden_to_key_value(memory).chunk(2, dim=-1)
    x = swap.output_linear(attend(queries, k, v, other, query_angles, angles, config.heads))
    for layer in model.decoder.layers:
        shift, scale, gate, *rest = layer.adaLN_modulation(condition)[:, None].chunk(6, dim=-1)
        q = layer.attn_q(modulated(norm(x, layer.q_norm1), shift, scale))
        k, v = layer.attn_kv(norm(memory, layer.kv_norm1)).chunk(2, dim=-1)
        attended = attend(q, k, v, other, query_angles, angles, config.heads)
        x = x + gate * F.dropout(layer.attn_out(attended), layer.dropout)
        x = feed(layer, x, *rest)
    last = model.output_layer
    shift, scale = last.adaLN_modulation(condition)[:, None].chunk(2, dim=-1)
    return last.linear(modulated(norm(x, last.norm_final), shift, scale))


def label_rows(table: nn.Embedding, labels: Tensor) -> Tensor:
    """Rows (B, C) of a table whose last row is that of the null label, -1."""
    return table(labels.where(labels >= 0, table.num_embeddings - 1))


def norm(x: Tensor, module: nn.Module) -> Tensor:
    """Layer norm with a weight, in float32 whatever autocast says."""
    with torch.autocast(x.device.type, enabled=False):
        return F.layer_norm(x.float(), x.shape[-1:]) * module.weight


def modulated(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    return x * (1 + scale) + shift


def feed(block: nn.Module, x: Tensor, shift: Tensor, scale: Tensor, gate: Tensor) -> Tensor:
    """The gated feed-forward branch of a block."""
    inner = F.gelu(block.mlp[0](modulated(norm(x, block.norm2), shift, scale)), approximate="tanh")
    return x + gate * F.dropout(block.mlp[2](inner), block.dropout)


def rotary_angles(positions: Tensor, head_dim: int) -> Tensor:
    """(L, E/2) angles of the rotary embedding."""
    halves = torch.arange(0, head_dim, 2, device=positions.device).float()
    return positions.float()[:, None] / 10000 ** (halves / head_dim)


def rotated(x: Tensor, angles: Tensor) -> Tensor:
    """x (B, H, L, E) turned by angles (L, E/2), its first half paired with its second."""
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)


def attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor, query_angles: Tensor, key_angles: Tensor, heads: int
) -> Tensor:
    """Attention of q (B, Q, D) to k, v (B, K, D) where the mask, broadcastable to (B, H, Q, K), is True."""
    q, k, v = (t.reshape(*t.shape[:2], heads, -1).transpose(1, 2) for t in (q, k, v))
    out = F.scaled_dot_product_attention(rotated(q, query_angles), rotated(k, key_angles), v, attn_mask=mask)
    return out.transpose(1, 2).reshape(len(out), -1, heads * out.shape[-1])
