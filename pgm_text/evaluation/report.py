"""The report of `evaluate` as text: one table of bounds, one of samples, one of the known language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Columns of equal width, numbers with three significant places."""
    cells = [[_cell(value) for value in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["  ".join(value.rjust(width) for value, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def readable(report: dict[str, Any]) -> str:
    """All tables of a report."""
    parts = []
    bounds = [
        (name, *(found["bound"][key] for key in ("nats_per_text", "standard_error", "nats_per_token", "perplexity")))
        for name, found in report["models"].items()
        if "bound" in found
    ]
    if bounds:
        protocol = report["protocol"]
        parts.append(
            f"Upper bounds on {protocol['rows']} held-out texts, {protocol['draws']} draws each (NELBO)\n"
            + table(("model", "nats/text", "+-", "nats/token", "perplexity"), bounds)
        )
    for name, found in report["models"].items():
        if "terms_per_token" in found:
            terms = {**found["terms_per_token"], **{f"given {k}": v for k, v in found["given"].items()}}
            parts.append(f"{name}, nats/token\n" + table(tuple(terms), [tuple(terms.values())]))
    columns = (
        "generative_perplexity", "entropy", "distinct_1", "distinct_2", "distinct_3", "longest_shared_run",
        "whole_copies", "tokens_per_second", "positions_computed_per_text",
    )  # fmt: skip
    rows = []
    if "held_out" in report:
        rows.append(("held-out texts", "", *(report["held_out"].get(column, "") for column in columns)))
    for name, found in report["models"].items():
        for steps, figures in found.get("steps", {}).items():
            rows.append((name, steps, *(figures.get(column, "") for column in columns)))
    if rows:
        header = ("model", "steps", "gen. ppl", "entropy", "dist-1", "dist-2", "dist-3", "shared run", "copies",
                  "tokens/s", "positions")  # fmt: skip
        scorer = report["protocol"].get("scorer") or "none"
        parts.append(f"Samples; scorer of generative perplexity: {scorer}\n" + table(header, rows))
    if "known_truth" in report:
        parts.append(_known_truth(report["known_truth"]))
    return "\n\n".join(parts)


def _known_truth(found: dict[str, Any]) -> str:
    truth, models = found["total_correlation_truth"], found["total_correlation_models"]
    first = table(
        ("", "without z", "given z'", "given z"),
        [
            ("truth", truth["without z"], truth["given z'"], truth["given z"]),
            ("models", models["mdlm"], models["rmdm, given z'"], ""),
        ],
    )
    distances = found["total_variation_to_truth_at_steps"]
    steps = list(next(iter(distances.values())))
    second = table(("total variation to truth, steps", *steps), [(n, *d.values()) for n, d in distances.items()])
    return f"Two templates, total correlation of the words in nats\n{first}\n\n{second}"


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
