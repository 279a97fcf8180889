"""From what a caller writes for a class or a style to label indices, with near matches in the error."""

import difflib
import numbers
from collections.abc import Iterable, Sequence
from typing import Any

NULL = -1  # the label of "no class" and "no style"


def resolve_labels(
    value: Any, names: Sequence[str], argument: str, hints: dict[str, Sequence[str]] | None = None
) -> list[int]:
    """Indices for a label given as id, name, or a sequence of those; None alone is the null label.

    value: int, numpy integer, 0-d or 1-d tensor or array, name (case does not matter), or a list, tuple or range of
    those. names: the labels in order. hints: more words per name, used only to suggest. The caller's object is not
    changed. Raises ValueError naming `argument`, the value and the range or the nearest names.
    """
    if value is None:
        return [NULL]
    items = _items(value, argument)
    if not items:
        raise ValueError(f"{argument} must not be empty")
    return [_index(item, names, argument, hints or {}) for item in items]


def _items(value: Any, argument: str) -> list[Any]:
    if hasattr(value, "tolist"):  # numpy arrays and scalars, torch tensors
        value = value.tolist()
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return [value]
    if isinstance(value, dict | set | frozenset):
        raise ValueError(f"{argument} must be an id, a name or a list of those, got a {type(value).__name__}")
    return [item.tolist() if hasattr(item, "tolist") else item for item in value]


def _index(item: Any, names: Sequence[str], argument: str, hints: dict[str, Sequence[str]]) -> int:
    if isinstance(item, str):
        return _by_name(item, names, argument, hints)
    if isinstance(item, bool) or not isinstance(item, numbers.Integral):
        raise ValueError(f"{argument} must be an integer id or a name, got {item!r}")
    if not 0 <= item < len(names):
        raise ValueError(f"{argument} must be in 0..{len(names) - 1}, got {item}")
    return int(item)


def _by_name(name: str, names: Sequence[str], argument: str, hints: dict[str, Sequence[str]]) -> int:
    wanted = " ".join(name.casefold().split())
    folded = [n.casefold() for n in names]
    if wanted in folded:
        return folded.index(wanted)
    near = nearest_names(wanted, names, hints)
    suggestion = f"did you mean {' or '.join(repr(n) for n in near)}?" if near else f"for example {names[0]!r}"
    raise ValueError(f"{argument}: no label named {name!r}; {suggestion}")


def nearest_names(word: str, names: Sequence[str], hints: dict[str, Sequence[str]], limit: int = 3) -> list[str]:
    """Labels that resemble `word`, contain it, or have it among their hints; best first."""
    if not word.strip():
        return []
    hinted = [n for n in names if word in (h.casefold() for h in hints.get(n, ()))]
    contained = [n for n in names if word in n.casefold()]
    folded = {n.casefold(): n for n in names}
    close = [folded[n] for n in difflib.get_close_matches(word, folded, n=limit, cutoff=0.6)]
    return list(dict.fromkeys([*hinted, *contained, *close]))[:limit]
