"""Generated texts measured: perplexity under the scorer, entropy, variety, copying, and how fast they came."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pgm_text.metrics import VerbatimIndex, distinct_n, token_entropy
from pgm_text.pipeline import TextPipeline
from pgm_text.scorer import score, up_to_end


def measure_texts(
    rows: Tensor, eos_id: int, scorer: nn.Module | None = None, index: VerbatimIndex | None = None
) -> dict[str, float]:
    """Figures of texts as rows (n, 1 + L) int64, BOS first, each counted up to its first end token.

    Perplexity needs a scorer, the longest run shared with the training texts an index of them.
    """
    valid = up_to_end(rows, eos_id)
    valid[:, 0] = False
    bodies = [row[keep][:-1].tolist() if row[keep][-1] == eos_id else row[keep].tolist()
              for row, keep in zip(rows, valid, strict=True)]  # fmt: skip
    found: dict[str, float] = {
        "texts": len(rows),
        "tokens_per_text": valid.sum().item() / len(rows),
        "entropy": token_entropy(rows, valid).mean().item(),
    }
    for n in (1, 2, 3):
        long_enough = [body for body in bodies if len(body) >= n]
        found[f"distinct_{n}"] = distinct_n(long_enough, n) if long_enough else math.nan
    if scorer is not None:
        found["generative_perplexity"] = score(scorer, rows, eos_id).perplexity
    if index is not None:
        runs = [index.longest_overlap(body)[0] for body in bodies if body]
        lengths = [len(body) for body in bodies if body]
        found["longest_shared_run"] = sum(runs) / max(len(runs), 1)
        found["whole_copies"] = sum(r == n for r, n in zip(runs, lengths, strict=True)) / max(len(runs), 1)
    return found


def sample_rows(pipeline: TextPipeline, count: int, steps: int, *, batch_size: int = 16, seed: int = 0, **settings):
    """Generate `count` texts: rows (count, 1 + L) with BOS first, and what it cost.

    The first batch is generated once before the clock starts.
    """
    arguments = {"steps": steps, **settings}
    list(pipeline.generate_steps(num_texts=min(batch_size, count), seed=seed, **arguments))
    codes, computed = [], 0
    _wait(pipeline)
    start = time.perf_counter()
    for first in range(0, count, batch_size):
        size = min(batch_size, count - first)
        for step in pipeline.generate_steps(num_texts=size, seed=seed + first, **arguments):
            last = step
        codes.append(last.codes.cpu())
        computed += last.computed * size
    _wait(pipeline)
    seconds = time.perf_counter() - start
    cells = torch.cat(codes)
    rows = torch.cat((torch.full((count, 1), pipeline.tokenizer.bos_id), cells), dim=1)
    cost = {
        "seconds_per_text": seconds / count,
        "tokens_per_second": cells.numel() / seconds,
        "positions_computed_per_text": computed / count,
        "batch_size": batch_size,
    }
    return rows, cost


def few_step_table(
    pipeline: TextPipeline,
    step_counts: Sequence[int],
    count: int,
    scorer: nn.Module | None,
    index: VerbatimIndex | None,
    **settings: Any,
) -> dict[str, dict[str, float]]:
    """Figures of `count` texts at each number of steps, keyed by it."""
    table = {}
    for steps in step_counts:
        rows, cost = sample_rows(pipeline, count, steps, **settings)
        table[str(steps)] = {**measure_texts(rows, pipeline.tokenizer.eos_id, scorer, index), **cost}
    return table


def _wait(pipeline: TextPipeline) -> None:
    if pipeline.device.type == "cuda":
        torch.cuda.synchronize(pipeline.device)
