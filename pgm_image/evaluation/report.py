"""What an evaluation found, with the protocol it followed: as JSON and as a table to read."""

import json
import platform
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

import numpy as np

from pgm_image.evaluation.distances import Distances
from pgm_image.evaluation.evaluate import RealSide
from pgm_image.evaluation.nearest import QUANTILES, NearestReport
from pgm_image.evaluation.probe import Accuracy, ProbeReport

PACKAGES = ("torch", "torch-fidelity", "numpy", "pillow")


@dataclass(frozen=True)
class Protocol:
    """All that moves a number: what was sampled, how, and what it was compared with."""

    model: str
    settings: dict[str, Any]  # sampler, steps, guidance_scale, ...; empty for a folder of pictures
    samples: int
    seed: int
    labels: str  # how classes and styles were split
    resolution: int
    reference: str
    distance_features: str
    recognition_features: str
    device: str
    versions: dict[str, str]


@dataclass(frozen=True)
class Report:
    """Everything one `evaluate` measured."""

    protocol: Protocol
    distances: Distances
    ceiling: Distances  # real held-out images against training images of the same labels
    probe: ProbeReport
    nearest: tuple[NearestReport, ...]
    seconds: dict[str, float]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    def table(self) -> str:
        """A plain-text summary, about 40 lines."""
        sections = (
            protocol_lines(self.protocol),
            distance_lines(self.distances, self.ceiling),
            probe_lines(self.probe),
            nearest_lines(self.nearest),
            ["Seconds  " + ", ".join(f"{name} {value:.1f}" for name, value in self.seconds.items())],
        )
        return "\n\n".join("\n".join(lines) for lines in sections)


def library_versions() -> dict[str, str]:
    """Installed versions of what the numbers depend on, and Python's."""
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in PACKAGES}


def describe_labels(class_id: np.ndarray, style_id: np.ndarray, classes: int, styles: int) -> str:
    """How the labels (n,) are split, e.g. "79 classes x 25-26 images; 7 styles x 204-303 images"."""
    parts = []
    for labels, count, name in ((class_id, classes, "classes"), (style_id, styles, "styles")):
        counts = np.bincount(labels, minlength=count)
        low, high = counts.min(), counts.max()
        parts.append(f"{count} {name} x {low if low == high else f'{low}-{high}'} images")
    return "; ".join(parts)


def describe_protocol(model: str, settings: dict[str, Any], images: np.ndarray, seed: int, real: RealSide) -> Protocol:
    """The protocol of samples (n, S, S, 3) against `real`; without settings, pictures of unknown labels."""
    reference = real.reference
    split = describe_labels(reference.class_id, reference.style_id, len(reference.classes), len(reference.styles))
    return Protocol(
        model=model,
        settings=settings,
        samples=len(images),
        seed=seed,
        labels="those of the reference, one sample each" if settings else "unknown",
        resolution=images.shape[1],
        reference=f"{len(reference)} images of {reference.name}: {split}",
        distance_features=str(real.lite0),
        recognition_features=str(real.mobilenet),
        device=str(real.device),
        versions=library_versions(),
    )


def protocol_lines(protocol: Protocol) -> list[str]:
    settings = ", ".join(f"{name} {value}" for name, value in protocol.settings.items() if value is not None)
    rows = {
        "Model": protocol.model,
        "Settings": settings or "-",
        "Samples": f"{protocol.samples}, seeds {protocol.seed} to {protocol.seed + protocol.samples - 1}"
        if protocol.settings
        else str(protocol.samples),
        "Labels": protocol.labels,
        "Resolution": f"{protocol.resolution} px",
        "Reference": protocol.reference,
        "Distances by": protocol.distance_features,
        "Recognised by": protocol.recognition_features,
        "Device": protocol.device,
        "Versions": ", ".join(f"{name} {version}" for name, version in protocol.versions.items()),
    }
    return [f"{name:<14} {value}" for name, value in rows.items()]


def distance_lines(distances: Distances, ceiling: Distances) -> list[str]:
    lines = [f"{'':<28} {'KID x1000':>16} {'FID':>8} {'n':>6} {'reference':>10}"]
    for name, row in (("generated", distances), ("real held-out (ceiling)", ceiling)):
        kid = f"{row.kid:.2f} +- {row.kid_std:.2f}"
        fid = "-" if row.fid is None else f"{row.fid:.1f}"
        lines.append(f"{name:<28} {kid:>16} {fid:>8} {row.n:>6} {row.n_reference:>10}")
    lines.append(
        f"KID: {distances.kid_subsets} subsets of {distances.kid_subset_size} "
        f"({ceiling.kid_subset_size} for the ceiling). FID: {distances.fid_note}"
    )
    return lines


def probe_lines(probe: ProbeReport) -> list[str]:
    lines = [f"{'recognised':<28} {'top-1':>7} {'top-5':>7} {'class mean':>11} {'n':>6}"]
    rows: list[tuple[str, Accuracy | None]] = [
        ("class, generated", probe.class_generated),
        ("class, real held-out", probe.class_heldout),
        ("style, generated", probe.style_generated),
        ("style, real held-out", probe.style_heldout),
    ]
    for name, row in rows:
        if row is not None:
            shares = f"{row.top1:>7.1%} {row.top5:>7.1%} {row.top1_class_mean:>11.1%}"
            lines.append(f"{name:<28} {shares} {row.n:>6}")
    lines.append(f"Linear probe fitted on {probe.fitted_on} training images, held-out concepts not among them.")
    return lines


def nearest_lines(reports: tuple[NearestReport, ...]) -> list[str]:
    lines = [f"{'nearest training image':<28} " + " ".join(f"{f'{q:.0%}':>7}" for q in QUANTILES)]
    for report in reports:
        lines.append(report.space)
        for name, values in (
            ("generated", report.generated_quantiles),
            ("held-out", report.heldout_quantiles),
        ):
            lines.append(f"{'  ' + name:<28} " + " ".join(f"{value:>7.2f}" for value in values))
        shares = f"1st percentile: {report.share_below_1:.1%}, than the 5th: {report.share_below_5:.1%}"
        lines.append(f"  generated nearer than the held-out {shares}")
    return lines
