"""In which order positions become known when the order is fixed beforehand: Halton, raster or random.

The Halton order (Halton-MaskGIT, arXiv 2503.17076) spreads each step's codes evenly over the picture.
"""

from functools import lru_cache
from typing import Literal, get_args

import torch
from torch import Tensor

Order = Literal["halton", "confidence", "random", "raster"]


def order_names() -> tuple[str, ...]:
    """All orders by name; "confidence" is the one that is found while sampling."""
    return get_args(Order)


def radical_inverse(index: int, base: int) -> tuple[int, int]:
    """The digits of `index` in `base` mirrored behind the point, as an exact fraction (numerator, denominator)."""
    numerator, denominator = 0, 1
    while index:
        index, digit = divmod(index, base)
        numerator, denominator = numerator * base + digit, denominator * base
    return numerator, denominator


@lru_cache(maxsize=64)
def halton_order(height: int, width: int) -> tuple[int, ...]:
    """Row-major positions of a grid in Halton order: base 2 for rows, base 3 for columns, from index 1 on.

    A cell's first visit counts. Points are drawn until every cell has been visited, so it is a permutation of
    range(height * width) for any grid.
    """
    seen: dict[int, None] = {}
    index = 1
    while len(seen) < height * width:
        row, rows = radical_inverse(index, 2)
        column, columns = radical_inverse(index, 3)
        seen.setdefault(row * height // rows * width + column * width // columns)
        index += 1
    return tuple(seen)


def fixed_order(order: str, grid: tuple[int, int], order_noise: Tensor, roll: Tensor | None = None) -> Tensor:
    """Visiting order of every image, (B, L) int64.

    order: "halton", "raster" or "random"; order_noise: (B, L) uniforms, whose ranks are the random order;
    roll: (B,) uniforms in [0, 1) that shift each row's Halton or raster order cyclically, or None for no shift.
    Raises ValueError for another order.
    """
    height, width = grid
    if order == "random":
        return order_noise.argsort(dim=1, stable=True)
    if order == "halton":
        base = torch.tensor(halton_order(height, width))
    elif order == "raster":
        base = torch.arange(height * width)
    else:
        raise ValueError(f"order must be one of {', '.join(order_names())}, got {order!r}")
    rows = base.expand(len(order_noise), -1)
    if roll is None:
        return rows.clone()
    shift = (roll * base.numel()).long()  # (B,)
    index = (torch.arange(base.numel()) - shift[:, None]) % base.numel()
    return rows.gather(1, index)
