"""Measured points as a small SVG picture, one line per series."""

import math

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 320, 60, 44, 16, 16
COLOURS = ("#4c46d6", "#c2410c", "#047857", "#be185d", "#0369a1")


def draw_points(series: dict[str, list[tuple[float, float]]], x_label: str, y_label: str) -> str:
    """SVG of series (name -> points), each joined in order of x. Raises ValueError when there is no point."""
    points = [point for line in series.values() for point in line]
    if not points:
        raise ValueError("there is nothing to draw")
    (x_low, x_high), (y_low, y_high) = (_bounds([point[axis] for point in points]) for axis in (0, 1))

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - RIGHT) * (x - x_low) / (x_high - x_low)
        return across, TOP + (HEIGHT - TOP - BOTTOM) * (y_high - y) / (y_high - y_low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for value in round_values(y_low, y_high):
        down = place(x_low, value)[1]
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{down:.1f}" y2="{down:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{down + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in round_values(x_low, x_high):
        across = place(value, y_low)[0]
        parts.append(f'<text x="{across:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{value:g}</text>')
    for index, (name, line) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        placed = [place(*point) for point in sorted(line)]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
        parts.append(
            f'<text x="{WIDTH - RIGHT}" y="{TOP + 14 + 16 * index}" fill="{colour}" text-anchor="end">{name}</text>'
        )
    parts.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{x_label}</text>')
    parts.append(f'<text transform="translate(14,{HEIGHT / 2}) rotate(-90)" text-anchor="middle">{y_label}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def round_values(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers within low..high, low < high."""
    raw = (high - low) / count
    power = 10 ** math.floor(math.log10(raw))
    spacing = next(power * m for m in (1, 2, 5, 10) if power * m >= raw)
    return [i * spacing for i in range(math.ceil(low / spacing), math.floor(high / spacing) + 1)]


def _bounds(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    return low - margin, high + margin
