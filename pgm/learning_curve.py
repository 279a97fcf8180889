"""The learning curve of a run, read from its metrics.jsonl and drawn."""

import json
from pathlib import Path

from pgm.line_plot import Panel, draw


def read_metric(metrics: str | Path, name: str) -> list[tuple[int, float]]:
    """(step, value) of every line of metrics.jsonl that has `name`, in order of steps."""
    lines = [json.loads(line) for line in Path(metrics).read_text().splitlines()]
    return sorted((line["step"], line[name]) for line in lines if name in line)


def draw_learning_curve(metrics: str | Path, unit: str) -> str:
    """SVG of training and held-out loss, in nats per `unit`, against steps.

    Raises ValueError when metrics.jsonl holds neither.
    """
    curves = {"training": read_metric(metrics, "loss"), "held out": read_metric(metrics, "held_out_loss")}
    return draw([Panel(curves, "steps", f"cross-entropy, nats per {unit}", dots=False)])
