"""The Partition Transformer's sampler as published (arXiv 2505.18883, section 5), in plain words: nothing is saved.

Every pass computes the modulations, rotary angles and position queries anew, attends through a padding mask that hides
nothing, and takes the conditional and the unconditional rows together at all steps, weight 0 included. Whatever ours
does, it must find these codes; how much faster it is, is measured against this.
"""

import torch
from torch import Tensor

from pgm.guidance import guidance_weights
from pgm.layers import CrossAttentionBlock
from pgm.noise import Noise
from pgm.orders import fixed_order
from pgm.partition_transformer import PartitionTransformer
from pgm.sampling import SamplingConfig
from pgm.schedules import step_counts


@torch.no_grad()
def plain_sample(
    model: PartitionTransformer,
    classes: Tensor,
    styles: Tensor | None,
    noise: Noise,
    grid: tuple[int, int],
    config: SamplingConfig,
) -> Tensor:
    """Codes (B, L) int64 for labels (B,); a top-k, top-p or temperature warm-up in the config is not known here."""
    device, guided, by_confidence = classes.device, config.guidance_scale > 0, config.order == "confidence"
    batch, length = noise.codes.shape
    if guided:
        classes = torch.cat((classes, torch.full_like(classes, -1)))
        styles = None if styles is None else torch.cat((styles, torch.full_like(styles, -1)))
    tokens = torch.full((batch, 1), model.config.bos_id, device=device)
    positions = torch.zeros_like(tokens)
    order = torch.arange(length).expand(batch, -1)
    if not by_confidence:
        order = fixed_order(config.order, grid, noise.order, noise.roll if config.roll else None)
    left = order.to(device) + 1  # (B, L) positions not yet known
    uniforms = noise.codes.float().to(device)
    counts = step_counts(config.schedule, length, config.steps, "confidence" if by_confidence else "ordered")
    weights = guidance_weights(config.guidance_scale, len(counts), config.guidance_schedule)
    for index, count in enumerate(counts):
        done = index / (len(counts) - 1) if len(counts) > 1 else 0.0
        heat = config.temperature * (config.temperature_anneal + (1 - config.temperature_anneal) * done)
        queries = left if by_confidence else left[:, :count]
        asked = tokens, positions, queries
        if guided:
            asked = tuple(torch.cat((t, t)) for t in asked)
        logits = plain_logits(model, *asked, classes, styles)
        if guided:
            conditional, unconditional = logits.chunk(2)
            logits = (1 + weights[index]) * conditional - weights[index] * unconditional
        logits[:, :, list(model.config.special_ids)] = -torch.inf
        probabilities = torch.softmax(logits / heat if heat else logits, dim=-1)  # (B, Q, V)
        if heat:
            cumulative = probabilities.cumsum(-1)
            target = uniforms.gather(1, queries - 1)[..., None] * cumulative[..., -1:]
            chosen = torch.searchsorted(cumulative, target, right=True)[..., 0]
        else:
            chosen = logits.argmax(-1)
        taken = torch.arange(queries.shape[1], device=device).expand(batch, -1)
        if by_confidence:
            confidence = probabilities.gather(-1, chosen[..., None])[..., 0].log()
            fading = config.confidence_temperature * (1 - done if len(counts) > 1 else 0.0)
            confidence = confidence + fading * noise.confidence[:, index].float().to(device).gather(1, queries - 1)
            best = confidence.topk(count, dim=1).indices
            kept = torch.ones_like(queries, dtype=torch.bool).scatter(1, best, False)
            left, taken = left[kept].reshape(batch, -1), best
        else:
            left = left[:, count:]
        tokens = torch.cat((tokens, chosen.gather(1, taken)), dim=1)
        positions = torch.cat((positions, queries.gather(1, taken)), dim=1)
    return tokens.gather(1, positions.argsort(dim=1))[:, 1:]


def plain_logits(
    model: PartitionTransformer, tokens: Tensor, positions: Tensor, queries: Tensor, classes: Tensor, styles: Tensor
) -> Tensor:
    """Logits (B, Q, V) at queries (B, Q) given known tokens (B, K) at positions (B, K), BOS (0) included."""
    condition = model.condition(classes, styles)
    swap, registers, extra = model.decoder.group_swap, model.config.registers, model.config.extra_queries
    batch, own = len(tokens), torch.arange(registers // 2, registers, device=tokens.device)
    x = torch.cat((model.reg_tokens(own).expand(batch, -1, -1), model.vocab_embed(tokens)), dim=1)
    internal = torch.cat((own.expand(batch, -1), positions + registers), dim=1)
    lengths = torch.full((batch,), x.shape[1], device=tokens.device)
    mask = (torch.arange(x.shape[1], device=tokens.device) < lengths[:, None])[:, None, None]  # (B, 1, 1, K)
    angles = model.rotary_emb(internal, x.dtype)
    for block in model.encoder.blocks:
        x = block(x, block.modulation(condition), angles, mask, "sdpa")
    memory = x
    other = torch.arange(extra, device=tokens.device).expand(batch, -1)
    internal = torch.cat((other, queries + registers), dim=1)
    query_angles = model.rotary_emb(internal, x.dtype)
    query_mask = torch.ones(batch, 1, 1, internal.shape[1], dtype=torch.bool, device=tokens.device)
    summary = swap.summary(memory, mask[:, 0]) if swap.depends_on_memory else None
    x = swap(swap.queries(internal, summary), memory, query_angles, angles, mask, "sdpa")
    for layer in model.decoder.layers:
        if isinstance(layer, CrossAttentionBlock):
            x = layer(x, memory, layer.modulation(condition), query_angles, angles, mask, "sdpa")
        else:
            x = layer(x, layer.modulation(condition), query_angles, query_mask, "sdpa")
    return model.output_layer(x[:, extra:], model.output_layer.modulation(condition))
