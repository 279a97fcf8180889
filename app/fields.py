"""Values as a web form or a program sends them (16.0, "5", blank), made exact; ValueError names the field in words."""

import math
from collections.abc import Callable, Sequence
from typing import Any


def whole(name: str, value: Any, low: int, high: int) -> int:
    """A whole number from `low` to `high`."""
    found = _read(value, lambda text: int(text) if str(text).strip().lstrip("+-").isdigit() else float(text))
    if found is None or found != math.floor(found) or not low <= found <= high:
        allowed = f"from {low:,} to {high:,}" if high < 2**32 else f"from {low} up"
        raise ValueError(f"{name} must be a whole number {allowed}, not {_shown(value)}.")
    return int(found)


def number(name: str, value: Any, low: float, high: float) -> float:
    """A finite number from `low` to `high`."""
    found = _read(value, float)
    if found is None or not low <= found <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, not {_shown(value)}.")
    return float(found)


def switch(name: str, value: Any) -> bool:
    """True or false, also as a word; blank is false."""
    known = {"true": True, "1": True, "false": False, "0": False, "": False, "none": False}
    found = known.get(str(value).strip().lower())
    if found is None:
        raise ValueError(f"{name} must be true or false, not {_shown(value)}.")
    return found


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """One of the words in `allowed`."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {_shown(value)}.")
    return value


def _read(value: Any, convert: Callable[[Any], float]) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        found = convert(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _shown(value: Any) -> str:
    return "empty" if value in (None, "") else str(value)[:40]
