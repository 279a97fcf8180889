"""What the sampling loop asks of a network: logits at some positions, given the codes known so far.

One adapter per architecture, so that partition and masked transformers run through the same loop.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from pgm.compiled_pass import COLUMNS, generation_pass, rounded
from pgm.diffusion_transformer import DiffusionTransformer
from pgm.encoder_cache import EncoderCache
from pgm.masked_transformer import MaskedTransformer
from pgm.partition_transformer import PartitionTransformer
from pgm.prepared_layers import Embedded
from pgm.row_groups import row_groups

VisibleLength = Literal["full", "reference"]
# On a CPU so many clean tokens go through the network at a time: larger activations leave the cache and cost fresh
# memory at every layer, fewer tokens read the weights too often.
TOKENS = 1024
CACHE = 4 * 2**20  # bytes of the widest activations


@dataclass(frozen=True)
class Clean:
    """The known side of a generation."""

    codes: Tensor  # (B, L) int64, -1 where unknown
    arrival: Tensor  # (B, K) int64 known positions in the order they became known, padded where rows differ
    lengths: Tensor | None  # (B,) how many of the K count, on the CPU; None = all
    since: int = 0  # so many columns are those of the predictor's last call, their codes included
    reuse: bool | None = None  # what the encoder made of those: None = keep nothing, False = compute and keep, True


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
        with torch.inference_mode():
            conditions = condition if null_condition is None else torch.cat((condition, null_condition))
            self._prepared = model.prepare(conditions)
        self._conditions = len(conditions)
        self._front = model.config.registers - model.config.registers // 2 + 1  # registers of group 0 and BOS
        self._embedded: Embedded | None = None  # of the codes seen so far, in the order of their arrival
        self._embedded_rows = 0
        self._cache: EncoderCache | None = None

    def predict(
        self, clean: Clean, queries: Tensor, query_lengths: Tensor | None, guided: bool
    ) -> tuple[Tensor, Tensor | None]:
        batch = len(queries)
        with torch.inference_mode():
            embedded = self._embed(clean, 2 if guided else 1)
            content = torch.cat((queries, queries)) + 1 if guided else queries + 1
            if clean.reuse is not None:
                logits = self._run_cached(clean, query_lengths, embedded, content)
                return (logits[:batch], logits[batch:]) if guided else (logits, None)
            groups = self._groups(clean, queries, query_lengths, 2 if guided else 1)
            parts = [self._run(group, embedded, content) for group in groups]
            if clean.lengths is None and query_lengths is None:  # runs of rows in their order
                logits = parts[0] if len(parts) == 1 else torch.cat(parts)
            else:
                logits = parts[0].new_zeros(len(content), queries.shape[1], parts[0].shape[2])
                for group, part in zip(groups, parts, strict=True):
                    logits[group.rows, : group.queries] = part
        return (logits[:batch], logits[batch:]) if guided else (logits, None)

    def _embed(self, clean: Clean, passes: int) -> Embedded:
        """Clean tokens of all rows, registers and BOS in front, with room behind; only new columns are computed."""
        batch = len(clean.arrival)
        start = clean.since if passes * batch <= self._embedded_rows else 0
        self._embedded_rows = passes * batch
        positions = clean.arrival[:, start:]
        tokens = clean.codes.gather(1, positions).clamp_min(0)  # padding columns hold any valid id
        positions = positions + 1
        if not start:
            tokens = torch.cat((tokens.new_full((batch, 1), self.model.config.bos_id), tokens), dim=1)
            positions = torch.cat((positions.new_zeros(batch, 1), positions), dim=1)
        tokens, positions = tokens.repeat(passes, 1), positions.repeat(passes, 1)
        prepared = self._prepared.rows(slice(len(tokens)))
        new = self.model.embed(tokens, positions, prepared, registers=not start)
        if self._embedded is None:
            self._embedded = new.room(self._conditions, self._front + self.length)
        self._embedded.write(self._front + start if start else 0, new)
        return self._embedded

    def _groups(self, clean: Clean, queries: Tensor, query_lengths: Tensor | None, passes: int) -> list["_Group"]:
        batch, longest = clean.arrival.shape
        known = [longest] * batch if clean.lengths is None else clean.lengths.tolist()
        asked = [queries.shape[1]] * batch if query_lengths is None else query_lengths.tolist()
        known, asked = passes * known, passes * asked
        limit = self._limit(queries.device)
        hidden = self.model.config.registers // 2 if self.visible_length == "reference" else 0
        return [_group(rows, known, asked, hidden, queries.device) for rows in row_groups(known, asked, limit)]

    def _limit(self, device: torch.device) -> int | None:
        """Most tokens that go through the network at a time."""
        if device.type != "cpu":
            return None
        return max(TOKENS, CACHE // (self.model.config.mlp_ratio * self.model.config.width * 4))

    def _run_cached(self, clean: Clean, query_lengths: Tensor | None, embedded: Embedded, content: Tensor) -> Tensor:
        """Logits (rows, Q, V) from kept encoder outputs, those of new columns computed now; never compiled."""
        if clean.lengths is not None or query_lengths is not None:
            raise ValueError("encoder_refresh must be 1 where the pictures of a batch differ in their known codes")
        if self.visible_length == "reference":
            raise ValueError("encoder_refresh must be 1 with visible_length 'reference'")
        if self._cache is None:
            columns = self._front + self.length
            self._cache = EncoderCache(self.model, self._prepared, self._conditions, columns)
        start, stop = self._front + clean.since if clean.reuse else 0, self._front + clean.arrival.shape[1]
        size, parts = len(content), []
        if limit := self._limit(content.device):
            size = max(1, limit // max(stop - start, content.shape[1]))
        for first in range(0, len(content), size):
            rows = slice(first, min(first + size, len(content)))
            prepared = self._prepared.rows(rows)
            self._cache.encode(rows, embedded, start, stop, prepared)
            parts.append(self._cache.decode(rows, stop, content[rows], prepared))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _run(self, group: "_Group", embedded: Embedded, content: Tensor) -> Tensor:
        """Logits (rows of the group, its queries, V)."""
        prepared, content = self._prepared.rows(group.rows), content[group.rows, : group.queries]
        if self.model.compiled_pass is None:
            clean = embedded.part(group.rows, self._front + group.known)
            return generation_pass(self.model, clean, content, prepared, group.lengths, group.query_lengths)
        rows, device = len(content), content.device
        lengths, counts = group.lengths, group.query_lengths
        lengths = torch.full((rows,), group.known + 1, device=device) if lengths is None else lengths
        counts = torch.full((rows,), group.queries, device=device) if counts is None else counts
        clean = embedded.part(group.rows, self._front + min(rounded(group.known, COLUMNS), self.length))
        return self.model.compiled_pass(self.model, clean, content, prepared, lengths, counts)

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
        if clean.reuse is not None:
            raise ValueError("encoder_refresh must be 1 for masked transformers: they have no encoder of known codes")
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


@dataclass(frozen=True)
class _Group:
    """Rows that go through the network together, cut to the longest of them."""

    rows: slice | Tensor
    known: int
    queries: int
    lengths: Tensor | None  # clean tokens of each row, BOS included; None = all
    query_lengths: Tensor | None


def _group(rows: list[int], known: list[int], asked: list[int], hidden: int, device: torch.device) -> _Group:
    """hidden: so many of the last clean tokens of each row are not attended to."""
    lengths, counts = [known[row] for row in rows], [asked[row] for row in rows]
    ascending = rows == list(range(rows[0], rows[0] + len(rows)))
    return _Group(
        slice(rows[0], rows[0] + len(rows)) if ascending else torch.tensor(rows, device=device),
        max(lengths),
        max(counts),
        torch.tensor(lengths, device=device) + 1 - hidden if hidden or min(lengths) < max(lengths) else None,
        torch.tensor(counts, device=device) if min(counts) < max(counts) else None,
    )
