"""FID, IS, KID, precision and recall as published: Inception features and metrics by torch-fidelity."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import torch
from PIL import Image
from torch_fidelity.feature_extractor_base import FeatureExtractorBase
from torch_fidelity.feature_extractor_inceptionv3 import URL_INCEPTION_V3
from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric
from torch_fidelity.metric_isc import isc_features_to_metric
from torch_fidelity.metric_kid import kid_features_to_metric
from torch_fidelity.metric_prc import prc_features_to_metric
from torch_fidelity.registry import FEATURE_EXTRACTORS_REGISTRY
from torch_fidelity.utils import create_feature_extractor

from pgm_image.evaluation import lite0_fidelity
from pgm_image.evaluation.distances import kid_subset_size

INCEPTION = "inception-v3-compat"  # the network of the original FID
INCEPTION_SIZE = 299
METRICS = ("isc", "fid", "kid", "prc")
KID_SUBSETS = 100
SAMPLES_PER_FEATURE = 5  # below that a covariance is so noisy that FID mostly measures the number of samples


@dataclass(frozen=True)
class Metrics:
    """What one set of samples scores; None where the reference does not allow the metric."""

    fid: float
    inception_score: float
    inception_score_std: float
    kid: float | None  # x 1000
    kid_std: float | None  # x 1000, over subsets
    precision: float | None
    recall: float | None


@dataclass(frozen=True)
class ReferenceFeatures:
    """The real side: moments for FID, and features where there are pictures."""

    mean: np.ndarray  # (D,) float64
    covariance: np.ndarray  # (D, D) float64
    features: dict[str, np.ndarray] | None  # layer -> (n, D)
    count: int | None  # pictures, where known


class FidelityFeatures:
    """An extractor registered with torch-fidelity, Inception unless said otherwise, and the layers metrics read."""

    def __init__(self, name: str = INCEPTION, weights: str | Path | None = None, device: torch.device | str = "cpu"):
        """weights: a local file for the extractor. Raises ValueError in one sentence when it cannot be had or read."""
        lite0_fidelity.register()
        if name not in FEATURE_EXTRACTORS_REGISTRY:
            raise ValueError(f"extractor must be one of {', '.join(sorted(FEATURE_EXTRACTORS_REGISTRY))}, got {name!r}")
        kind: type[FeatureExtractorBase] = FEATURE_EXTRACTORS_REGISTRY[name]
        self.name, self.device = name, torch.device(device)
        self.layers = {metric: kind.get_default_feature_layer_for_metric(metric) for metric in METRICS}
        self.wanted = sorted(set(self.layers.values()))
        options: dict[str, Any] = {"cuda": False, "verbose": False}
        if weights is not None:
            check_weights(weights)
            options["feature_extractor_weights_path"] = str(weights)
        try:
            self.network = create_feature_extractor(name, self.wanted, **options).to(self.device)
        except (URLError, OSError) as error:
            file = URL_INCEPTION_V3.rsplit("/", 1)[1]
            raise ValueError(
                f"the weights of {name} cannot be downloaded ({error}); get {file} from {URL_INCEPTION_V3} by hand and "
                "give --inception-weights FILE"
            ) from error

    @torch.inference_mode()
    def __call__(self, images: np.ndarray, clean_resize: bool, batch_size: int = 64) -> dict[str, np.ndarray]:
        """images: (n, S, S, 3) uint8 -> features of each layer, (n, D) float32."""
        rows: dict[str, list[np.ndarray]] = {layer: [] for layer in self.wanted}
        for start in range(0, len(images), batch_size):
            batch = images[start : start + batch_size]
            if clean_resize:
                batch = resize_cleanly(batch)
            found = self.network(torch.from_numpy(batch).permute(0, 3, 1, 2).to(self.device))
            for layer, values in self.network.convert_features_tuple_to_dict(found).items():
                rows[layer].append(values.float().cpu().numpy())
        return {layer: np.concatenate(parts) for layer, parts in rows.items()}


def check_weights(path: str | Path) -> None:
    """ValueError unless the file is there and holds tensors alone; torch-fidelity itself would unpickle anything."""
    if not Path(path).is_file():
        raise ValueError(f"inception_weights: {str(path)!r} is not a file")
    try:
        torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"inception_weights: {str(path)!r} is not a file of plain tensors: {reason}") from error


def resize_cleanly(images: np.ndarray, size: int = INCEPTION_SIZE) -> np.ndarray:
    """(n, S, S, 3) uint8 -> (n, size, size, 3) uint8 by Pillow's bicubic on float channels, then cut to integers.

    As clean-fid (arXiv 2104.11222) resizes; integers as in the evaluation of arXiv 2505.18883.
    """
    resized = np.empty((len(images), size, size, 3), np.uint8)
    for index, image in enumerate(images):
        for channel in range(3):
            plane = Image.fromarray(image[:, :, channel].astype(np.float32))
            values = np.asarray(plane.resize((size, size), Image.BICUBIC))
            resized[index, :, :, channel] = values.clip(0, 255).astype(np.uint8)
    return resized


def moments(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (D,) and covariance (D, D), float64, of features (n, D)."""
    found = fid_features_to_statistics(torch.from_numpy(features.astype(np.float64)))
    return found["mu"], found["sigma"]


def measure(
    features: dict[str, np.ndarray],
    reference: ReferenceFeatures,
    layers: dict[str, str],
    device: torch.device | str = "cpu",
) -> Metrics:
    """All metrics of sample features (layer -> (n, D)); `layers` says which one a metric reads."""
    mean, covariance = moments(features[layers["fid"]])
    fid = fid_statistics_to_metric(
        {"mu": mean, "sigma": covariance}, {"mu": reference.mean, "sigma": reference.covariance}, verbose=False
    )
    logits = torch.from_numpy(features[layers["isc"]])
    score = isc_features_to_metric(logits, splits=min(10, len(logits)))
    kid, prc = None, None
    if reference.features is not None:
        pair = [torch.from_numpy(side[layers["kid"]]) for side in (features, reference.features)]
        size = kid_subset_size(*map(len, pair))
        kid = kid_features_to_metric(*pair, kid_subsets=KID_SUBSETS, kid_subset_size=size, verbose=False)
        pair = [torch.from_numpy(side[layers["prc"]]).to(device) for side in (features, reference.features)]
        prc = prc_features_to_metric(*pair, save_cpu_ram=True, verbose=False)
    return Metrics(
        fid=fid["frechet_inception_distance"],
        inception_score=score["inception_score_mean"],
        inception_score_std=score["inception_score_std"],
        kid=1000 * kid["kernel_inception_distance_mean"] if kid else None,
        kid_std=1000 * kid["kernel_inception_distance_std"] if kid else None,
        precision=prc["precision"] if prc else None,
        recall=prc["recall"] if prc else None,
    )


def too_few(n: int, width: int) -> str | None:
    """A warning when n samples do not determine the moments of `width` features."""
    needed = SAMPLES_PER_FEATURE * width
    if n >= needed:
        return None
    return (
        f"n = {n} samples are too few for a stable FID of {width} features (at least {needed}): it comes out too high "
        "and compares only with FIDs of the same n"
    )
