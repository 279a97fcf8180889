"""Measured points as an SVG picture: panels side by side, one line per series, one legend beside them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

PANEL, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 520, 320, 64, 44, 16, 16  # pixels; the margins are within a panel
COLOURS = ("#4c46d6", "#c2410c", "#047857", "#be185d", "#0369a1", "#854d0e", "#6b21a8", "#475569")
LEVEL_COLOUR, GRID_COLOUR = "#444", "#ddd"
LINE, CHARACTER, SAMPLE = 18, 7, 22  # pixels of the legend: a line's height, a character's width, the line drawn first


@dataclass(frozen=True)
class Panel:
    """One pair of axes. Points that are not finite are left out."""

    series: Mapping[str, Sequence[tuple[float, float]]]  # name -> points, joined in order of x; empty ones are skipped
    x_label: str
    y_label: str
    levels: Mapping[str, float] = field(default_factory=dict)  # name -> y of a dashed line across
    doubling: bool = False  # x on a logarithmic axis that is marked at the points
    dots: bool = True

    def lines(self) -> dict[str, list[tuple[float, float]]]:
        """The series that have finite points, each in order of x."""
        finite = {name: sorted(p for p in points if all(map(math.isfinite, p))) for name, points in self.series.items()}
        return {name: points for name, points in finite.items() if points}


def draw(panels: Sequence[Panel]) -> str:
    """SVG of one panel or several. Raises ValueError when a panel has no point, or one at x <= 0 of a doubling axis."""
    for panel in panels:
        if not panel.lines():
            raise ValueError(f"there is nothing to draw: no value of {panel.y_label} is known")
        if panel.doubling and min(x for points in panel.lines().values() for x, _ in points) <= 0:
            raise ValueError(f"{panel.x_label} must be positive on an axis that doubles")
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines()))
    colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
    levels = list(dict.fromkeys(name for panel in panels for name in panel.levels))
    legend = SAMPLE + 12 + CHARACTER * max(map(len, names + levels))
    width = PANEL * len(panels) + legend
    title = "; ".join(f"{panel.y_label} against {panel.x_label}" for panel in panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
    ]
    for index, panel in enumerate(panels):
        parts += [f'<g transform="translate({PANEL * index},0)">', *_panel(panel, colours), "</g>"]
    for row, name in enumerate(names + levels):
        down = TOP + 12 + LINE * row
        style = _stroke(colours[name]) if name in colours else _dashed()
        start = PANEL * len(panels)
        parts.append(f'<line x1="{start}" x2="{start + SAMPLE}" y1="{down - 4}" y2="{down - 4}" {style}/>')
        parts.append(f'<text x="{start + SAMPLE + 6}" y="{down}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def round_values(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers within low..high, low < high."""
    raw = (high - low) / count
    power = 10 ** math.floor(math.log10(raw))
    spacing = next(power * m for m in (1, 2, 5, 10) if power * m >= raw)
    return [i * spacing for i in range(math.ceil(low / spacing), math.floor(high / spacing) + 1)]


def _panel(panel: Panel, colours: Mapping[str, str]) -> list[str]:
    lines = panel.lines()
    xs = [x for points in lines.values() for x, _ in points]
    ys = [y for points in lines.values() for _, y in points] + list(panel.levels.values())
    across, x_bounds = _axis([math.log2(x) for x in xs] if panel.doubling else xs, LEFT, PANEL - RIGHT)
    down, y_bounds = _axis(ys, HEIGHT - BOTTOM, TOP)

    def place(x: float) -> float:
        return across(math.log2(x) if panel.doubling else x)

    parts = []
    for value in round_values(*y_bounds):
        at = f"{down(value):.1f}"
        parts.append(f'<line x1="{LEFT}" x2="{PANEL - RIGHT}" y1="{at}" y2="{at}" stroke="{GRID_COLOUR}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{down(value) + 4:.1f}" text-anchor="end">{_number(value)}</text>')
    for value in sorted(set(xs)) if panel.doubling else round_values(*x_bounds):
        label = _number(value)
        parts.append(f'<text x="{place(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{label}</text>')
    for level in panel.levels.values():
        at = f"{down(level):.1f}"
        parts.append(f'<line x1="{LEFT}" x2="{PANEL - RIGHT}" y1="{at}" y2="{at}" {_dashed()}/>')
    for name, points in lines.items():
        placed = [(place(x), down(y)) for x, y in points]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{joined}" fill="none" {_stroke(colours[name])}/>')
        if panel.dots:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colours[name]}"/>' for x, y in placed]
    middle_x, middle_y = (LEFT + PANEL - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<text x="{middle_x}" y="{HEIGHT - 8}" text-anchor="middle">{escape(panel.x_label)}</text>')
    turned = f'transform="translate(14,{middle_y}) rotate(-90)" text-anchor="middle"'
    return [*parts, f"<text {turned}>{escape(panel.y_label)}</text>"]


def _axis(values: list[float], start: float, stop: float) -> tuple[Callable[[float], float], tuple[float, float]]:
    """(value -> pixel, (low, high)) of an axis from pixel start to stop, with a margin around the values."""
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    low, high = low - margin, high + margin
    return lambda value: start + (stop - start) * (value - low) / (high - low), (low, high)


def _number(value: float) -> str:
    return f"{value:,.10g}"


def _stroke(colour: str) -> str:
    return f'stroke="{colour}" stroke-width="1.5"'


def _dashed() -> str:
    return f'stroke="{LEVEL_COLOUR}" stroke-width="1" stroke-dasharray="5 4"'
