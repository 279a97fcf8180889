"""Checks of public arguments: one ValueError that names the argument, the value and what is allowed.

Numbers may be Python's, numpy's or 0-d tensors; 5.0 counts as 5, as web forms send it.
"""

import math
import numbers
from typing import Any

MAX_SEED = 2**63 - 1


def whole_number(argument: str, value: Any, low: int, high: int | None = None) -> int:
    """`value` as an int (5, 5.0, numpy and 0-d tensor integers); ValueError outside low..high or for anything else."""
    allowed = f"an integer >= {low}" if high is None else f"an integer in {low}..{high}"
    value = plain(value)
    whole = isinstance(value, numbers.Integral) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole or value < low or (high is not None and value > high):
        raise ValueError(f"{argument} must be {allowed}, got {value!r}")
    return int(value)


def real_number(argument: str, value: Any, positive: bool = False) -> float:
    """`value` as a finite float >= 0, with `positive` > 0; ValueError otherwise."""
    value = plain(value)
    number = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not number or value < 0 or (positive and value == 0):
        raise ValueError(f"{argument} must be a finite number {'> 0' if positive else '>= 0'}, got {value!r}")
    return float(value)


def share(argument: str, value: Any) -> float:
    """`value` as a float in (0, 1]; ValueError otherwise."""
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < value <= 1:
        raise ValueError(f"{argument} must be a number in (0, 1], got {value!r}")
    return float(value)


def one_of(argument: str, value: Any, allowed: tuple[str, ...]) -> Any:
    """`value` if it is among `allowed`; ValueError listing them otherwise."""
    if value not in allowed:
        raise ValueError(f"{argument} must be one of {', '.join(allowed)}, got {value!r}")
    return value


def plain(value: Any) -> Any:
    """A 0-d array or tensor as the Python number it holds; anything else unchanged."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
