"""What cells may not hold, as a layer around any predictor: the sampling loop stays unaware of it."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from pgm.predictors import Clean, Predictor
from pgm_text.tokenizer import Tokenizer


@lru_cache(maxsize=8)
def forbidden_tokens(tokenizer: Tokenizer, vocab_size: int) -> Tensor:
    """(3, V) bool, True = forbidden, a row for each of `prompt.FREE`, `prompt.WITHIN` and `prompt.SPACED`.

    BOS is never generated unless it also ends texts; the mask is the predictor's own matter.
    """
    table = torch.zeros(3, vocab_size, dtype=torch.bool)
    if tokenizer.bos_id != tokenizer.eos_id:
        table[:, tokenizer.bos_id] = True
    table[1:, tokenizer.eos_id] = True
    known = min(vocab_size, tokenizer.vocab_size)
    spaced = torch.tensor([piece.startswith(" ") for piece in tokenizer.pieces(range(known))])
    table[2, :known] |= ~spaced
    table[2, known:] = True
    return table


class ConstrainedPredictor:
    """A predictor whose logits are minus infinity where the constraint of a position forbids a token."""

    def __init__(self, predictor: Predictor, constraints: Tensor, table: Tensor):
        """constraints: (L,) int64 rows of `table` (n, V) bool, True = forbidden; the same for every text."""
        self.predictor, self.constraints, self.table = predictor, constraints, table
        self.length, self.special_ids = predictor.length, predictor.special_ids
        self.can_resample, self.can_guide = predictor.can_resample, predictor.can_guide
        self.unknown_id = predictor.unknown_id
        self.cost = predictor.cost

    def predict(
        self, clean: Clean, queries: Tensor, query_lengths: Tensor | None, guided: bool
    ) -> tuple[Tensor, Tensor | None]:
        conditional, unconditional = self.predictor.predict(clean, queries, query_lengths, guided)
        forbidden = self.table[self.constraints[queries]]  # (B, Q, V)
        # The unconditional part keeps its finite values, or guidance would subtract infinities.
        return conditional.float().masked_fill(forbidden, -torch.inf), unconditional
