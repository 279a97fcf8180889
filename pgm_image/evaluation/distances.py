"""KID (arXiv 1801.01401) and FID (arXiv 1706.08500) between two sets of images, computed by torch-fidelity.

KID is the number to read: its expectation does not depend on the number of samples, while FID between two
halves of the same real images is already tens of points at 2000 samples. Both look through EfficientNet-lite0,
so neither compares with published numbers, which look through Inception.

A KID clearly below 0 says that samples are nearer to the reference than fresh images would be: copies of it.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset
from torch_fidelity import calculate_metrics

from pgm_image.evaluation.lite0_fidelity import LITE0, register

FID_SAMPLES = 2048  # fewer than this and the covariance of 2048 Inception features would not have full rank
KID_SUBSET = 1000
MINIMUM = 4
SCALE_NOTE = "EfficientNet-lite0 features, not comparable with published FID/KID"


@dataclass(frozen=True)
class Distances:
    """KID times 1000 with its spread over subsets, FID where asked, and how far they may be trusted."""

    kid: float  # x 1000, about 0 between two samples of one distribution, may be slightly negative
    kid_std: float  # x 1000, over subsets
    kid_subsets: int
    kid_subset_size: int
    n: int
    n_reference: int
    fid: float | None
    fid_note: str


class Rows(Dataset):
    """Images (n, S, S, 3) uint8 as tensors (3, S, S), or features (n, width) as they are."""

    def __init__(self, rows: np.ndarray):
        self.rows = torch.from_numpy(rows)
        if self.rows.dim() == 4:
            self.rows = self.rows.permute(0, 3, 1, 2)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Tensor:
        return self.rows[index]


def check_rows(name: str, rows: np.ndarray) -> None:
    """ValueError unless `rows` are enough uint8 RGB images or float features."""
    images = rows.dtype == np.uint8 and rows.ndim == 4 and rows.shape[3] == 3
    features = rows.dtype == np.float32 and rows.ndim == 2
    if not (images or features):
        raise ValueError(
            f"{name} must be images (n, S, S, 3) uint8 or features (n, width) float32, got {rows.dtype} {rows.shape}"
        )
    if len(rows) < MINIMUM:
        raise ValueError(f"{name} must hold at least {MINIMUM} images, got {len(rows)}")


def kid_subset_size(n: int, n_reference: int) -> int:
    """The usual 1000, or half of the smaller set, so that subsets differ and their spread means something."""
    return min(KID_SUBSET, min(n, n_reference) // 2)


def distances(
    samples: np.ndarray,
    reference: np.ndarray,
    fid: bool = True,
    subsets: int = 100,
    batch_size: int = 64,
    device: torch.device | str = "cpu",
) -> Distances:
    """KID and FID of two sets, each images (n, S, S, 3) uint8 or EfficientNet-lite0 features (n, 1280)."""
    check_rows("samples", samples)
    check_rows("reference", reference)
    register()
    n, n_reference = len(samples), len(reference)
    subset_size = kid_subset_size(n, n_reference)
    values = calculate_metrics(
        input1=Rows(samples),
        input2=Rows(reference),
        feature_extractor=LITE0,
        kid=True,
        fid=fid,
        kid_subsets=subsets,
        kid_subset_size=subset_size,
        batch_size=batch_size,
        cuda=torch.device(device).type == "cuda",
        cache=False,
        save_cpu_ram=True,  # no worker processes: the rows are in memory already
        verbose=False,
    )
    smallest = min(n, n_reference)
    few = f"n = {smallest} < {FID_SAMPLES}: not comparable; " if smallest < FID_SAMPLES else ""
    return Distances(
        kid=1000 * values["kernel_inception_distance_mean"],
        kid_std=1000 * values["kernel_inception_distance_std"],
        kid_subsets=subsets,
        kid_subset_size=subset_size,
        n=n,
        n_reference=n_reference,
        fid=values["frechet_inception_distance"] if fid else None,
        fid_note=few + SCALE_NOTE,
    )
