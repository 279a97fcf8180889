"""Longest verbatim overlap: how long a run of tokens a sample shares with the training corpus, to see copying.

A suffix array (all positions of the corpus sorted by the text that follows) is built once by prefix doubling; each
position of a sample is then placed by bisection, and its longest match is with one of its two neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

_SEPARATOR = -1  # between documents; no sample holds it, so runs never span two documents


class VerbatimIndex:
    """Search index over a corpus of documents (sequences of non-negative token ids); 16 bytes a token.

    Building takes a few sorts of the corpus: seconds for millions of tokens.
    """

    def __init__(self, documents: Iterable[Sequence[int]]) -> None:
        pieces = [np.array([*document, _SEPARATOR], np.int64) for document in documents]
        self.tokens = np.concatenate(pieces) if pieces else np.empty(0, np.int64)
        self.suffixes = suffix_array(self.tokens)

    def longest_overlap(self, sample: Sequence[int]) -> tuple[int, int]:
        """Length of the longest run of tokens in `sample` that the corpus holds, and where it starts in the sample.

        (0, 0) when not even one token is shared.
        """
        sample = np.asarray(sample, np.int64)
        best, best_start = 0, 0
        for start in range(len(sample)):
            if len(sample) - start <= best:
                break
            length = self._longest_prefix(sample[start:])
            if length > best:
                best, best_start = length, start
        return best, best_start

    def _longest_prefix(self, wanted: np.ndarray) -> int:
        """How many leading tokens of `wanted` (n,) occur somewhere in the corpus in this order."""
        low, high, longest = 0, len(self.suffixes), 0
        while low < high:
            middle = (low + high) // 2
            found = self.tokens[self.suffixes[middle] :][: len(wanted)]
            differ = np.flatnonzero(found != wanted[: len(found)])
            shared = int(differ[0]) if len(differ) else len(found)
            longest = max(longest, shared)  # the two final neighbours are both compared on the way
            if shared == len(wanted):
                return shared
            if shared == len(found) or found[shared] < wanted[shared]:
                low = middle + 1
            else:
                high = middle
        return longest


def suffix_array(tokens: np.ndarray) -> np.ndarray:
    """Start positions of all suffixes of tokens (n,) in lexicographic order, int64 (n,)."""
    n = len(tokens)
    if n == 0:
        return np.empty(0, np.int64)
    rank = np.unique(tokens, return_inverse=True)[1].astype(np.int64)
    width = 1
    while True:
        following = np.full(n, -1, np.int64)  # past the end sorts first
        following[: max(n - width, 0)] = rank[width:]
        key = rank * (n + 1) + following + 1
        order = np.argsort(key, kind="stable")
        steps = np.concatenate([[0], np.cumsum(key[order][1:] != key[order][:-1])])
        rank = np.empty(n, np.int64)
        rank[order] = steps
        if steps[-1] == n - 1:
            return order
        width *= 2
