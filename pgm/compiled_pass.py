"""One forward pass of a generation, through `torch.compile` where that is asked for and works.

Every step has other numbers of known codes and queries. They are rounded up, so that a whole generation needs few
programs, which a GPU replays as CUDA graphs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from pgm.prepared_layers import Embedded

if TYPE_CHECKING:
    from pgm.partition_transformer import PartitionTransformer, Prepared

Compilation = Literal["off", "auto"]
COLUMNS, QUERIES = 64, 32  # known codes and queries are rounded up to multiples of these

logger = logging.getLogger(__name__)


def generation_pass(
    model: PartitionTransformer,
    embedded: Embedded,
    content: Tensor,
    prepared: Prepared,
    lengths: Tensor | None,
    query_lengths: Tensor | None,
) -> Tensor:
    """Logits (B, Q, V) at positions `content` (B, Q); arguments as those of `encode_embedded` and `decode`."""
    return model.decode(model.encode_embedded(embedded, prepared, lengths), content, prepared, query_lengths)


class CompiledPass:
    """`generation_pass` at rounded sizes. Where it cannot be compiled, it says so in the log once and runs plainly."""

    def __init__(self, device: torch.device):
        mode = "reduce-overhead" if device.type == "cuda" else "default"
        self._compiled = torch.compile(generation_pass, dynamic=True, mode=mode)
        self._works = True

    def __call__(
        self,
        model: PartitionTransformer,
        embedded: Embedded,
        content: Tensor,
        prepared: Prepared,
        lengths: Tensor,
        query_lengths: Tensor,
    ) -> Tensor:
        """As `generation_pass`; lengths (B,) of the clean tokens and the queries that count, the rest is padding."""
        queries = content.shape[1]
        content = F.pad(content, (0, rounded(queries, QUERIES) - queries), value=1)
        arguments = model, embedded, content, prepared, lengths, query_lengths
        if self._works:
            try:
                return self._compiled(*arguments)[:, :queries].clone()  # a CUDA graph's output is overwritten next time
            except Exception as error:
                self._works = False
                first = str(error).strip().partition("\n")[0]
                logger.warning("running without torch.compile, which failed: %s: %s", type(error).__name__, first)
        return generation_pass(*arguments)[:, :queries]


def rounded(count: int, multiple: int) -> int:
    """The smallest multiple that is not below count."""
    return -(-count // multiple) * multiple


def make_pass(compilation: str, device: torch.device) -> CompiledPass | None:
    """The pass for a setting, None for "off". Raises ValueError for anything but "off" and "auto"."""
    if compilation not in get_args(Compilation):
        raise ValueError(f"compile must be one of {', '.join(get_args(Compilation))}, got {compilation!r}")
    return CompiledPass(device) if compilation == "auto" else None
