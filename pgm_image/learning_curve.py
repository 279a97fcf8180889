"""The learning curve of a run as a small SVG picture, drawn from its metrics.jsonl."""

import json
import math
from pathlib import Path

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 300, 52, 40, 16, 12
COLOURS = ("#4c46d6", "#c2410c", "#047857")


def read_metric(metrics: str | Path, name: str) -> list[tuple[int, float]]:
    """(step, value) of every line of metrics.jsonl that has `name`, in order of steps."""
    lines = [json.loads(line) for line in Path(metrics).read_text().splitlines()]
    return sorted((line["step"], line[name]) for line in lines if name in line)


def draw_curves(curves: dict[str, list[tuple[int, float]]], x_label: str, y_label: str) -> str:
    """SVG of several curves (name -> points) on common axes. Raises ValueError when there is no point."""
    points = [point for curve in curves.values() for point in curve]
    if not points:
        raise ValueError("there is nothing to draw: the metrics hold none of these values")
    x_max = max(x for x, _ in points) or 1
    low, high = min(y for _, y in points), max(y for _, y in points)
    high = high if high > low else low + 1

    def place(x: float, y: float) -> str:
        across = LEFT + (WIDTH - LEFT - RIGHT) * x / x_max
        down = TOP + (HEIGHT - TOP - BOTTOM) * (high - y) / (high - low)
        return f"{across:.1f},{down:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for value in _round_values(low, high):
        _, down = place(0, value).split(",")
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{down}" y2="{down}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{float(down) + 4}" text-anchor="end">{value:g}</text>')
    for value in _round_values(0, x_max):
        across, _ = place(value, low).split(",")
        parts.append(f'<text x="{across}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{value:,.0f}</text>')
    for index, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[index % len(COLOURS)]
        line = " ".join(place(x, y) for x, y in curve)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(
            f'<text x="{WIDTH - RIGHT}" y="{TOP + 14 + 16 * index}" fill="{colour}" text-anchor="end">{name}</text>'
        )
    parts.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{x_label}</text>')
    parts.append(f'<text transform="translate(12,{HEIGHT / 2}) rotate(-90)" text-anchor="middle">{y_label}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _round_values(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers within low..high."""
    raw = (high - low) / count
    power = 10 ** math.floor(math.log10(raw))
    spacing = next(power * m for m in (1, 2, 5, 10) if power * m >= raw)
    first = math.ceil(low / spacing)
    return [i * spacing for i in range(first, math.floor(high / spacing) + 1)]
