"""The report of a protocol: JSON, and a Markdown table with plots of FID against guidance and seconds per picture."""

import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from pgm.line_plot import Panel, draw
from pgm_image.evaluation.fidelity import Metrics


@dataclass(frozen=True)
class FidelityRow:
    """One combination of settings and what it scored."""

    settings: dict[str, Any]  # sampler, steps, guidance_scale, ...; empty for pictures given as files
    n: int
    metrics: Metrics
    seconds_per_image: float | None  # on one process, decoding included

    def label(self) -> str:
        """The settings besides guidance, for the legend of a plot."""
        return f"{self.settings.get('sampler')}, {self.settings.get('steps')} steps"


@dataclass(frozen=True)
class FidelityReport:
    """All that moves a number beside the numbers."""

    protocol: str
    model: str
    labels: str
    reference: str
    preparation: str
    extractor: str
    seed: int
    rows: tuple[FidelityRow, ...]
    warnings: tuple[str, ...]
    hardware: str
    processes: int
    versions: dict[str, str]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    def table(self) -> str:
        """Markdown without plots, which is also readable as plain text."""
        facts = {
            "Protocol": self.protocol,
            "Model": self.model,
            "Labels": self.labels,
            "Reference": self.reference,
            "Preparation": self.preparation,
            "Features": self.extractor,
            "Seeds": f"from {self.seed}, one per picture",
            "Hardware": f"{self.hardware}, {self.processes} processes",
            "Versions": ", ".join(f"{name} {version}" for name, version in self.versions.items()),
        }
        head = ("sampler", "steps", "guidance", "n", "FID", "IS", "KID x1000", "precision", "recall", "s/image")
        lines = [f"- {name}: {value}" for name, value in facts.items()]
        lines += ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(_cells(row)) + " |" for row in self.rows]
        lines += ["", *(f"**Warning:** {warning}." for warning in self.warnings)]
        return "\n".join(lines).rstrip() + "\n"

    def write(self, path: Path) -> None:
        """The JSON at `path`; the Markdown and its plots beside it."""
        path.write_text(self.to_json() + "\n", encoding="utf-8")
        text = f"# {self.model} by the protocol {self.protocol}\n\n{self.table()}"
        generated = [row for row in self.rows if row.settings]
        by_guidance: dict[str, list[tuple[float, float]]] = {}
        by_seconds: dict[str, list[tuple[float, float]]] = {}
        for row in generated:
            by_guidance.setdefault(row.label(), []).append((row.settings["guidance_scale"], row.metrics.fid))
            name = f"guidance {row.settings['guidance_scale']:g}"
            by_seconds.setdefault(name, []).append((row.seconds_per_image, row.metrics.fid))
        plots = {"guidance": (by_guidance, "guidance scale"), "seconds": (by_seconds, "seconds per picture")}
        for name, (series, axis) in plots.items():
            if series:
                picture = path.with_name(f"{path.stem}-{name}.svg")
                picture.write_text(draw([Panel(series, axis, "FID")]), encoding="utf-8")
                text += f"\n![FID against {axis}]({picture.name})\n"
        path.with_suffix(".md").write_text(text, encoding="utf-8")


def hardware_name(device: torch.device) -> str:
    """The processor or GPU by name."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPU cores"


def _cells(row: FidelityRow) -> list[str]:
    def number(value: float | None, digits: int) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    settings, found = row.settings, row.metrics
    named = [str(settings.get(name, "-")) for name in ("sampler", "steps", "guidance_scale")]
    kid = "-" if found.kid is None else f"{found.kid:.2f} +- {found.kid_std:.2f}"
    score = f"{found.inception_score:.1f} +- {found.inception_score_std:.1f}"
    rest = [number(found.precision, 3), number(found.recall, 3), number(row.seconds_per_image, 3)]
    return [*named, str(row.n), number(found.fid, 2), score, kid, *rest]
