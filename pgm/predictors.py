"""What the sampling loop asks of a network: logits at some positions, given the codes known so far.

One adapter per architecture, so that partition and masked transformers run through the same loop.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from pgm.diffusion_transformer import DiffusionTransformer
from pgm.masked_transformer import MaskedTransformer
from pgm.partition_transformer import PartitionTransformer, Prepared

VisibleLength = Literal["full", "reference"]


@dataclass(frozen=True)
class Clean:
    """The known side of a generation."""

    codes: Tensor  # (B, L) int64, -1 where unknown
    arrival: Tensor  # (B, K) int64 known positions in the order they became known, padded where rows differ
    lengths: Tensor | None  # (B,) how many of the K count; None = all


class Predictor(Protocol):
    """A network ready for one generation: conditions are fixed, what never changes is already computed."""

    length: int  # L, content positions
    special_ids: tuple[int, ...]
    can_resample: bool  # whether already known positions may be queried again
    can_guide: bool
    unknown_id: int | None  # an id that, when drawn, leaves its position unknown

    def predict(
        self, clean: Clean, queries: Tensor, query_lengths: Tensor | None, guided: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Conditional and, if `guided`, unconditional logits (B, Q, V) at content positions `queries` (B, Q)."""
        ...

    def cost(self, known: int, queries: int) -> int:
        """Token positions that one pass runs through the network."""
        ...


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """No gradients and no dropout inside; every module's train/eval mode is put back, also after an exception."""
    training = [module for module in model.modules() if module.training]
    try:
        if training:
            model.eval()
        with torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True


class PartitionPredictor:
    """A Partition Transformer: runs on known codes and queries only.

    visible_length "reference" reproduces the published samplers, which count the register among the clean tokens and
    so hide the last one from attention; "full" shows the network what it saw in training.
    """

    can_resample = False
    unknown_id = None

    def __init__(
        self,
        model: PartitionTransformer,
        condition: Tensor,
        null_condition: Tensor | None = None,
        visible_length: VisibleLength = "full",
    ):
        """condition, null_condition: (B, C) from `model.condition`; without the second no guidance is possible."""
        if visible_length not in ("full", "reference"):
            raise ValueError(f"visible_length must be 'full' or 'reference', got {visible_length!r}")
        self.model, self.visible_length = model, visible_length
        self.length, self.special_ids = model.config.length, model.config.special_ids
        self.can_guide = null_condition is not None
        with evaluating(model):
            conditions = condition if null_condition is None else torch.cat((condition, null_condition))
            self._both = model.prepare(conditions)
        self._conditional = _first_rows(self._both, len(condition))

    def predict(
        self, clean: Clean, queries: Tensor, query_lengths: Tensor | None, guided: bool
    ) -> tuple[Tensor, Tensor | None]:
        config, batch = self.model.config, len(queries)
        known = clean.codes.gather(1, clean.arrival).clamp_min(0)  # padding columns hold any valid id
        tokens = torch.cat((known.new_full((batch, 1), config.bos_id), known), dim=1)  # (B, 1 + K)
        positions = torch.cat((known.new_zeros(batch, 1), clean.arrival + 1), dim=1)
        lengths = None if clean.lengths is None else clean.lengths + 1
        if self.visible_length == "reference":
            lengths = torch.full((batch,), tokens.shape[1], device=tokens.device) if lengths is None else lengths
            lengths = lengths - config.registers // 2
        content = queries + 1
        prepared = self._conditional
        if guided:
            prepared = self._both
            tokens, positions, content = (torch.cat((t, t)) for t in (tokens, positions, content))
            lengths, query_lengths = (t if t is None else torch.cat((t, t)) for t in (lengths, query_lengths))
        with evaluating(self.model):
            memory = self.model.encode(tokens, positions, prepared, lengths)
            logits = self.model.decode(memory, content, prepared, query_lengths)
        return (logits[:batch], logits[batch:]) if guided else (logits, None)

    def cost(self, known: int, queries: int) -> int:
        config = self.model.config
        return config.registers - config.registers // 2 + 1 + known + queries + config.extra_queries


class MaskedPredictor:
    """A masked transformer, of images or text: runs on all positions at every step, the head only on the queried."""

    can_resample = True

    def __init__(
        self, model: MaskedTransformer | DiffusionTransformer, condition: Tensor, null_condition: Tensor | None = None
    ):
        """condition, null_condition: (B, D) from `model.condition`."""
        self.model, self.length, self.special_ids = model, model.config.length, model.config.special_ids
        self.can_guide, self.unknown_id = null_condition is not None, model.config.mask_id
        self._bos_id: int | None = getattr(model.config, "bos_id", None)  # text has one in front, images have none
        self._extra = getattr(model.config, "registers", 1)  # positions beside the content: registers or BOS
        with evaluating(model):
            self._both = model.prepare(condition if null_condition is None else torch.cat((condition, null_condition)))
        self._conditional = [modulation[: len(condition)] for modulation in self._both]

    def predict(
        self, clean: Clean, queries: Tensor, query_lengths: Tensor | None, guided: bool
    ) -> tuple[Tensor, Tensor | None]:
        batch = len(queries)
        codes = torch.where(clean.codes < 0, self.model.config.mask_id, clean.codes)
        if self._bos_id is not None:
            codes, queries = torch.cat((codes.new_full((batch, 1), self._bos_id), codes), dim=1), queries + 1
        prepared = self._conditional
        if guided:
            prepared, codes, queries = self._both, torch.cat((codes, codes)), torch.cat((queries, queries))
        with evaluating(self.model):
            logits = self.model.predict(codes, prepared, queries)
        return (logits[:batch], logits[batch:]) if guided else (logits, None)

    def cost(self, known: int, queries: int) -> int:
        return self.length + self._extra


def _first_rows(prepared: Prepared, rows: int) -> Prepared:
    def cut(value: object) -> object:
        return tuple(cut(v) for v in value) if isinstance(value, tuple) else value[:rows]

    parts = {f.name: getattr(prepared, f.name) for f in fields(prepared)}
    return Prepared(**{name: part if name == "queries" else cut(part) for name, part in parts.items()})
