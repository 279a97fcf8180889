"""distinct-n: share of different n-grams among all n-grams of a set of texts (Li et al. 2016, arXiv 1510.03055)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence


def distinct_n(texts: Iterable[Sequence[Hashable]], n: int) -> float:
    """Texts as sequences of tokens (ids or words) -> value in (0, 1]; n-grams never span two texts.

    It falls as more text is counted, so only sets of the same size can be compared. Texts shorter than n are left out;
    ValueError if none is long enough.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n!r}")
    total, different = 0, set()
    for text in texts:
        grams = [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]
        total += len(grams)
        different.update(grams)
    if not total:
        raise ValueError(f"no text has {n} tokens or more")
    return len(different) / total
