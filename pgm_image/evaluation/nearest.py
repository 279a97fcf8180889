"""Is the model copying? Distance from each generated image to its nearest training image.

Real images of held-out concepts give the yardstick: a model that invents is about as far from the training set
as they are, one that memorises sits below their first percentile. (Artists reuse a drawing now and then, such as
one flag for two countries, so the very nearest held-out images may be equal to a training image.)
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

PIXEL_SIZE = 32
QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class NearestReport:
    """Nearest-training-image distances in one space; quantiles at 0, 1, 5, 25, 50, 75 and 100 %."""

    space: str
    generated_quantiles: tuple[float, ...]
    heldout_quantiles: tuple[float, ...]
    share_below_1: float  # share of generated images nearer than the held-out first percentile; 0.01 if alike
    share_below_5: float
    n: int
    n_heldout: int
    n_train: int


def pixel_rows(images: np.ndarray) -> np.ndarray:
    """Images (n, S, S, 3) uint8 as rows (n, 3072) float32 at 32 px, whose distance is the RMSE of 255."""
    rows = []
    for start in range(0, len(images), 512):
        x = torch.from_numpy(images[start : start + 512]).permute(0, 3, 1, 2).float()
        x = F.interpolate(x, size=(PIXEL_SIZE, PIXEL_SIZE), mode="area")
        rows.append(x.flatten(1).numpy())
    rows = np.concatenate(rows)
    return rows / np.sqrt(rows.shape[1], dtype=np.float32)


def nearest(queries: np.ndarray, train: np.ndarray, chunk: int = 256) -> tuple[np.ndarray, np.ndarray]:
    """Distance (n,) float32 to and index (n,) int64 of the nearest row of `train` (m, D), for rows (n, D)."""
    keys = torch.from_numpy(train)
    distances, indices = [], []
    for start in range(0, len(queries), chunk):
        squares = squared_distances(torch.from_numpy(queries[start : start + chunk]), keys)
        index = squares.argmin(dim=1)
        # the expanded square loses digits near zero, where copies are: measure the winner again
        exact = (torch.from_numpy(queries[start : start + chunk]) - keys[index]).norm(dim=1)
        distances.append(exact)
        indices.append(index)
    return torch.cat(distances).numpy(), torch.cat(indices).numpy()


def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """(n, D), (m, D) -> (n, m) by |a|^2 + |b|^2 - 2ab."""
    return a.square().sum(dim=1, keepdim=True) + b.square().sum(dim=1) - 2 * a @ b.T


def weighted_quantiles(values: np.ndarray, weights: np.ndarray, at: tuple[float, ...] = QUANTILES) -> tuple[float, ...]:
    """The smallest value with at least a share q of the weight at or below it, for each q."""
    order = np.argsort(values)
    share = np.cumsum(weights[order], dtype=np.float64)
    share /= share[-1]
    index = np.minimum(np.searchsorted(share, np.array(at) - 1e-12), len(values) - 1)
    return tuple(float(value) for value in values[order][index])


def compare_nearest(
    space: str, generated: np.ndarray, heldout: np.ndarray, heldout_weights: np.ndarray, n_train: int
) -> NearestReport:
    """Report from nearest distances (n,) of generated and (k,) of held-out images, weighted (k,)."""
    yardstick = weighted_quantiles(heldout, heldout_weights)
    first, fifth = yardstick[QUANTILES.index(0.01)], yardstick[QUANTILES.index(0.05)]
    return NearestReport(
        space=space,
        generated_quantiles=weighted_quantiles(generated, np.ones(len(generated))),
        heldout_quantiles=yardstick,
        share_below_1=float((generated < first).mean()),
        share_below_5=float((generated < fifth).mean()),
        n=len(generated),
        n_heldout=len(heldout),
        n_train=n_train,
    )


def closest_pairs(distances: np.ndarray, indices: np.ndarray, count: int = 12) -> list[tuple[int, int, float]]:
    """The `count` closest pairs as (generated index, training index, distance), closest first."""
    order = np.argsort(distances, kind="stable")[:count]
    return [(int(index), int(indices[index]), float(distances[index])) for index in order]
