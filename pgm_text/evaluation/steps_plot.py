"""The figure of a report of `evaluate`: generative perplexity and token entropy against the number of steps.

Perplexity alone rewards repetition, which the entropy beside it shows; both of held-out texts are drawn across.
"""

from __future__ import annotations

from typing import Any

from pgm.line_plot import Panel, draw

HELD_OUT = "held-out texts"


def draw_steps(report: dict[str, Any]) -> str:
    """SVG with one line per model. Raises ValueError when the report has no generative perplexity."""
    panels = [("generative_perplexity", "generative perplexity"), ("entropy", "token entropy, nats")]
    return draw([_panel(report, key, label) for key, label in panels])


def _panel(report: dict[str, Any], key: str, label: str) -> Panel:
    series = {
        name: [(int(steps), figures[key]) for steps, figures in found.get("steps", {}).items() if key in figures]
        for name, found in report["models"].items()
    }
    held_out = report.get("held_out", {})
    return Panel(series, "steps", label, levels={HELD_OUT: held_out[key]} if key in held_out else {}, doubling=True)
