"""Training losses: PGM over both groups (arXiv 2505.18883, eq. 6) and MaskGIT's cross-entropy. Pure functions."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pgm.masked_transformer import MaskedTransformer
from pgm.partition_transformer import PartitionTransformer


def partition_cross_entropy(logits: Tensor, tokens: Tensor, mask_id: int) -> Tensor:
    """Mean cross-entropy over all content positions of both groups, in nats.

    logits: (B, 1 + L, V) and tokens: (B, 1 + L) with BOS first, which is not counted; the mask id's logit is
    suppressed. Every position is predicted from the other group, so one pass supervises all of them.
    """
    content = logits[:, 1:].float()
    suppressed = torch.zeros(logits.shape[-1], device=logits.device)
    suppressed[mask_id] = -1e6
    return F.cross_entropy((content + suppressed).flatten(0, 1), tokens[:, 1:].flatten())


def masked_cross_entropy(logits: Tensor, codes: Tensor) -> Tensor:
    """Mean cross-entropy over all positions, masked or not, as in the published MaskGIT training (nats).

    logits: (B, L, V + 1), codes: (B, L) the true ones.
    """
    return F.cross_entropy(logits.float().flatten(0, 1), codes.flatten())


def drop_labels(labels: Tensor, probability: float, generator: torch.Generator) -> Tensor:
    """Labels (B,) int64 with each replaced by -1 (null) at `probability`, for classifier-free guidance."""
    dropped = torch.rand(len(labels), generator=generator) < probability
    return torch.where(dropped.to(labels.device), -1, labels)


def training_loss(
    model: nn.Module,
    codes: Tensor,
    hidden: Tensor,
    classes: Tensor,
    styles: Tensor | None = None,
    stages: Tensor | None = None,
    positions: Tensor | None = None,
) -> Tensor:
    """Loss of either architecture on the same batch.

    codes: (B, L) int64; hidden: (B, L) bool, True = group 1 (partition) or masked (masked transformer);
    classes, styles: (B,) int64 with -1 = null. For partition transformers only, or None: stages (B, L) int64 as in
    `pgm.partitioning.visibility`; positions (L,) int64 of the codes, from 0, where these are some of all. Raises
    TypeError for another model and ValueError for what it cannot have.
    """
    inner = getattr(model, "module", model)  # a distributed wrapper
    inner = getattr(inner, "_orig_mod", inner)  # a compiled one
    if isinstance(inner, PartitionTransformer):
        bos = codes.new_full((len(codes), 1), inner.config.bos_id)
        tokens = torch.cat((bos, codes), dim=1)
        groups = torch.cat((torch.zeros_like(bos, dtype=torch.bool), hidden), dim=1)
        if stages is not None:
            stages = torch.cat((torch.zeros_like(bos), stages), dim=1)
        if positions is not None:
            positions = F.pad(positions + 1, (1, 0))
        logits = model(tokens, groups, classes, styles, stages, positions)
        return partition_cross_entropy(logits, tokens, inner.config.mask_id)
    if isinstance(inner, MaskedTransformer):
        for name, value in (("stages", stages), ("positions", positions)):
            if value is not None:
                raise ValueError(f"{name} are for partition transformers, got them with a masked transformer")
        masked = torch.where(hidden, inner.config.mask_id, codes)
        return masked_cross_entropy(model(masked, classes, styles), codes)
    raise TypeError(f"no objective for {type(inner).__name__}")
