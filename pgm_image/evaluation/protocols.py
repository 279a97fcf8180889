"""Protocols by which published ImageNet models are judged: how many samples, of which classes, against what.

They differ in what moves FID by whole points: the real pictures, how pictures become Inception's 299 pixels, classes.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class FidelityProtocol:
    """One way to measure; `samples` other than its own are allowed and said in the report."""

    name: str
    samples: int
    labels: str  # "balanced": all classes equally often, shuffled; "uniform": each drawn independently
    clean_resize: bool  # Pillow's bicubic to 299 before the network (clean-fid), instead of the network's own bilinear
    reference: str  # what --reference should hold
    split: str  # of image shards given as reference


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        FidelityProtocol(
            name="pgm-paper",
            samples=50_000,
            labels="balanced",  # the labels of the validation pictures: 50 of each class in shuffled order
            clean_resize=True,
            reference="the 50,000 validation pictures, short side resized to the model's size, central crop",
            split="heldout",
        ),
        FidelityProtocol(
            name="adm",
            samples=50_000,
            labels="uniform",
            clean_resize=False,
            reference="statistics of the training pictures (npz with mu, sigma and, for KID and recall, arr_0)",
            split="train",
        ),
    )
}


def draw_labels(kind: str, classes: int, n: int, seed: int) -> np.ndarray:
    """Class ids (n,) int64; "balanced" counts differ by at most one."""
    rng = np.random.default_rng(seed)
    if kind == "uniform":
        return rng.integers(classes, size=n)
    return rng.permutation(np.arange(n) % classes)


def describe_counts(labels: np.ndarray, classes: int) -> str:
    """How labels (n,) are split, e.g. "1000 classes x 50 images"."""
    counts = np.bincount(labels, minlength=classes)
    low, high = counts.min(), counts.max()
    return f"{classes} classes x {low if low == high else f'{low}-{high}'} images"
