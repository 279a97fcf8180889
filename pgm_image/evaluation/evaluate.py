"""One evaluation: prepare the real side once, then measure any number of sample sets against it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from pgm_image.evaluation.distances import Distances, distances
from pgm_image.evaluation.features import (
    Extractor,
    cached_features,
    extract,
    lite0_extractor,
    mobilenet_extractor,
)
from pgm_image.evaluation.image_set import (
    ImageSet,
    balanced_selection,
    load_image_set,
    match_labels,
    one_tone_each,
)
from pgm_image.evaluation.nearest import NearestReport, closest_pairs, compare_nearest, nearest, pixel_rows
from pgm_image.evaluation.probe import (
    Accuracy,
    LinearProbe,
    ProbeReport,
    accuracy,
    class_balanced_weights,
    fit_linear_probe,
)

Say = Callable[[str], None]


@dataclass(frozen=True)
class RealSide:
    """Real images, their features, and the probes fitted on them; n = images of the reference."""

    train: ImageSet  # every training image
    heldout: ImageSet  # one tone of each held-out drawing
    reference: ImageSet  # n training drawings; samples are drawn with exactly these labels, in this order
    lite0: Extractor
    mobilenet: Extractor
    reference_lite0: np.ndarray  # (n, 1280) float32
    train_mobilenet: np.ndarray  # (train, 1280) float32
    heldout_mobilenet: np.ndarray  # (heldout, 1280) float32
    class_probe: LinearProbe
    style_probe: LinearProbe
    fitted_on: int
    folder: str | Path  # where features of real images are cached
    device: torch.device | str


@dataclass(frozen=True)
class Measured:
    """The findings without their protocol; `pairs` are the closest (generated, training, distance)."""

    distances: Distances
    ceiling: Distances
    probe: ProbeReport
    nearest: tuple[NearestReport, ...]
    pairs: list[tuple[int, int, float]]
    seconds: dict[str, float]


def choose_reference(folder: str | Path, n: int, seed: int = 0) -> tuple[ImageSet, ImageSet]:
    """The training split of image shards, and the reference: n of its drawings, classes balanced."""
    train = load_image_set(folder, "train")
    return train, train.take(balanced_selection(train, n, seed))


def prepare_real_side(
    folder: str | Path,
    train: ImageSet,
    reference: ImageSet,
    seed: int = 0,
    device: torch.device | str = "cpu",
    say: Say = lambda text: None,
) -> RealSide:
    """Compute what every sample set is compared with; `train` and `reference` as from `choose_reference`.

    Features of real images are cached beside the data: later evaluations start in seconds.
    """
    heldout = load_image_set(folder, "heldout")
    fitted, drawings = one_tone_each(train, seed), one_tone_each(heldout, seed)
    lite0, mobilenet_v2 = lite0_extractor(device), mobilenet_extractor(device)
    say(f"features of {len(train)} training images (cached for the next time)")
    train_features = cached_features(folder, train.images, mobilenet_v2, device)
    heldout_features = cached_features(folder, heldout.images[drawings], mobilenet_v2, device)
    say(f"features of {len(reference)} reference images")
    reference_features = cached_features(folder, reference.images, lite0, device)
    say("linear probes")
    return RealSide(
        train=train,
        heldout=heldout.take(drawings),
        reference=reference,
        lite0=lite0,
        mobilenet=mobilenet_v2,
        reference_lite0=reference_features,
        train_mobilenet=train_features,
        heldout_mobilenet=heldout_features,
        class_probe=fit_linear_probe(train_features[fitted], train.class_id[fitted], len(train.classes)),
        style_probe=fit_linear_probe(train_features[fitted], train.style_id[fitted], len(train.styles)),
        fitted_on=len(fitted),
        folder=folder,
        device=device,
    )


def check_samples(images: np.ndarray, real: RealSide) -> None:
    """ValueError when samples and reference differ in size: resizing one of them would move every number."""
    if images.shape[1:] != real.reference.images.shape[1:]:
        size, expected = images.shape[1], real.reference.images.shape[1]
        raise ValueError(f"samples are {size} px and the data is {expected} px; evaluate on data of the same size")


def real_ceiling(real: RealSide, fid: bool = True) -> Distances:
    """Distance of held-out drawings to training drawings of the same labels: what a perfect model reaches."""
    left, right = match_labels(real.heldout, real.train)
    return distances(
        cached_features(real.folder, real.heldout.images[left], real.lite0, real.device),
        cached_features(real.folder, real.train.images[right], real.lite0, real.device),
        fid=fid,
        device=real.device,
    )


def recognised(features: np.ndarray, real: RealSide) -> tuple[Accuracy, Accuracy]:
    """Class and style accuracy of MobileNetV2 features (n, 1280) of samples with the reference's labels."""
    classes = accuracy(real.class_probe.logits(features), real.reference.class_id[: len(features)])
    styles = accuracy(real.style_probe.logits(features), real.reference.style_id[: len(features)])
    return classes, styles


def measure(
    images: np.ndarray, real: RealSide, labelled: bool = True, fid: bool = True, say: Say = lambda text: None
) -> Measured:
    """All metrics of samples (n, S, S, 3) uint8; `labelled` if they have the reference's labels."""
    check_samples(images, real)
    clock = Clock()
    say(f"features of {len(images)} samples")
    lite0 = extract(images, real.lite0, device=real.device)
    recognition = extract(images, real.mobilenet, device=real.device)
    clock.lap("features")
    say("KID and FID")
    found = distances(lite0, real.reference_lite0, fid=fid, device=real.device)
    clock.lap("distances")
    say("KID and FID of real held-out images")
    ceiling = real_ceiling(real, fid)
    clock.lap("ceiling")
    generated = recognised(recognition, real) if labelled else (None, None)
    probe = ProbeReport(
        class_generated=generated[0],
        class_heldout=accuracy(real.class_probe.logits(real.heldout_mobilenet), real.heldout.class_id),
        style_generated=generated[1],
        style_heldout=accuracy(real.style_probe.logits(real.heldout_mobilenet), real.heldout.style_id),
        fitted_on=real.fitted_on,
    )
    say(f"nearest of {len(real.train)} training images")
    reports, pairs = nearest_in_both_spaces(images, recognition, real)
    clock.lap("nearest")
    return Measured(found, ceiling, probe, reports, pairs, clock.seconds)


def nearest_in_both_spaces(
    images: np.ndarray, features: np.ndarray, real: RealSide
) -> tuple[tuple[NearestReport, NearestReport], list[tuple[int, int, float]]]:
    """Reports in pixel and in feature space, and the closest pairs by pixels."""
    weights = class_balanced_weights(real.heldout.class_id, len(real.heldout.classes))
    train_pixels = pixel_rows(real.train.images)
    spaces = (
        (
            "pixels: RMSE of 255 at 32 px RGB",
            pixel_rows(images),
            pixel_rows(real.heldout.images),
            train_pixels,
        ),
        ("features: Euclidean, MobileNetV2 at 96 px", features, real.heldout_mobilenet, real.train_mobilenet),
    )
    reports, pairs = [], []
    for space, samples, heldout, train in spaces:
        sample_distances, neighbours = nearest(samples, train)
        heldout_distances, _ = nearest(heldout, train)
        reports.append(compare_nearest(space, sample_distances, heldout_distances, weights, len(train)))
        pairs.append(closest_pairs(sample_distances, neighbours))
    return (reports[0], reports[1]), pairs[0]


class Clock:
    """Seconds between laps, by name."""

    def __init__(self):
        self.seconds: dict[str, float] = {}
        self.last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self.last
        self.last = now
