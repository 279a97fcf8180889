"""The plot: points lie where their values say, round axes, one legend, and nothing where there is nothing."""

import math
import re
from xml.etree import ElementTree

import pytest

from pgm.line_plot import Panel, draw, round_values

SVG = "{http://www.w3.org/2000/svg}"


def lines_of(svg: str) -> list[list[tuple[float, float]]]:
    found = [line.get("points").split() for line in ElementTree.fromstring(svg).iter(f"{SVG}polyline")]
    return [[tuple(map(float, point.split(","))) for point in line] for line in found]


def texts_of(svg: str) -> list[str]:
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_plot_holds_its_points_in_order_and_lower_values_lower():
    svg = draw([Panel({"a": [(2, 1.0), (0, 3.0)], "b": [(1, 2.0)]}, "guidance", "FID")])
    assert svg.count("<circle") == 3 and svg.count("<polyline") == 2
    (first, second), _ = lines_of(svg)
    assert second[0] > first[0] and second[1] > first[1]  # SVG counts downwards
    assert {"a", "b", "guidance", "FID", "0", "0.5", "2"} <= set(texts_of(svg))


def test_axes_are_marked_at_round_values():
    assert round_values(0.0, 1.0) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert round_values(3.0, 47.0) == [10, 20, 30, 40]
    assert "1,000,000" in texts_of(draw([Panel({"loss": [(0, 1.0), (1_000_000, 0.5)]}, "steps", "nats")]))


def test_an_axis_that_doubles_is_even_in_doublings_and_marked_at_the_points():
    svg = draw([Panel({"pgm": [(4, 1.0), (8, 2.0), (32, 3.0)]}, "steps", "perplexity", doubling=True)])
    ((x4, _), (x8, _), (x32, _)) = lines_of(svg)[0]
    assert x32 - x8 == pytest.approx(2 * (x8 - x4), abs=0.2)
    assert {"4", "8", "32"} <= set(texts_of(svg))
    with pytest.raises(ValueError, match="steps must be positive"):
        draw([Panel({"pgm": [(0, 1.0)]}, "steps", "perplexity", doubling=True)])


def test_panels_stand_side_by_side_with_one_colour_per_name_and_one_legend():
    panels = [
        Panel({"pgm": [(1, 5.0), (2, 4.0)], "mdlm": [(1, 6.0)]}, "steps", "perplexity", levels={"real": 3.0}),
        Panel({"mdlm": [(1, 1.0), (2, 2.0)]}, "steps", "entropy", levels={"real": 2.5}, dots=False),
    ]
    svg = draw(panels)
    assert [texts_of(svg).count(name) for name in ("pgm", "mdlm", "real")] == [1, 1, 1]
    assert svg.count("<circle") == 3 and svg.count("stroke-dasharray") == 3  # a level in each panel and the legend
    strokes = [line.get("stroke") for line in ElementTree.fromstring(svg).iter(f"{SVG}polyline")]
    assert strokes[1] == strokes[2] != strokes[0]
    offsets = [int(x) for x in re.findall(r"translate\((\d+),0\)", svg)]
    assert offsets[0] == 0 < offsets[1]


def test_everything_lies_inside_the_picture():
    svg = draw([Panel({"a rather long name & more": [(1, 1e6), (512, -3.0)]}, "<steps>", "y", levels={"real": 2e6})])
    root = ElementTree.fromstring(svg)
    width, height = map(float, root.get("viewBox").split()[2:])
    places = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter(f"{SVG}circle")]
    places += [(float(line.get("x2")), float(line.get("y2"))) for line in root.iter(f"{SVG}line")]
    assert all(0 <= x <= width and 0 <= y <= height for x, y in places)
    assert "a rather long name & more" in texts_of(svg) and "<steps>" in texts_of(svg)


def test_values_that_are_not_finite_are_left_out_and_nothing_is_an_error():
    svg = draw([Panel({"a": [(1, math.nan), (2, 1.0)], "gone": [(1, math.inf)], "none": []}, "x", "y")])
    assert svg.count("<circle") == 1 and not {"gone", "none"} & set(texts_of(svg))
    with pytest.raises(ValueError, match="nothing to draw: no value of FID is known"):
        draw([Panel({"a": [(1, math.nan)]}, "x", "FID")])
