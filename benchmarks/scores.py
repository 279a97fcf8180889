"""The evaluator's scores of generated pictures, for benchmarks that set quality beside seconds."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pgm_image.evaluation.distances import distances
from pgm_image.evaluation.evaluate import RealSide, choose_reference, prepare_real_side, recognised
from pgm_image.evaluation.features import extract


@dataclass(frozen=True)
class Scores:
    """What `python -m pgm_image evaluate` finds of the same pictures, without FID."""

    kid: float = 0.0  # x 1000
    kid_std: float = 0.0  # x 1000, over subsets
    class_top1: float = 0.0
    class_top5: float = 0.0
    style_top1: float = 0.0

    def cells(self) -> str:
        """Cells of a table under `HEAD`."""
        return f"{self.kid:>7.1f} {self.class_top1:>6.1%} {self.class_top5:>6.1%} {self.style_top1:>6.1%}"


HEAD = f"{'KID':>7} {'class':>6} {'top-5':>6} {'style':>6}"


def real_side(folder: str | Path, samples: int, seed: int = 0) -> RealSide:
    """What pictures are scored against; `reference` has so many labels. ValueError for data that cannot be read."""
    return prepare_real_side(folder, *choose_reference(folder, samples, seed), seed)


def score(drawn: np.ndarray, real: RealSide) -> Scores:
    """Scores of pictures (n, S, S, 3) uint8 that have the labels of `real.reference`."""
    found = distances(extract(drawn, real.lite0), real.reference_lite0, fid=False)
    classes, styles = recognised(extract(drawn, real.mobilenet), real)
    return Scores(found.kid, found.kid_std, classes.top1, classes.top5, styles.top1)
