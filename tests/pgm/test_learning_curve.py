"""A learning curve shows what was logged."""

import pytest

from pgm.learning_curve import draw_learning_curve, read_metric


def test_a_learning_curve_is_read_in_order_of_steps_and_drawn_as_far_as_it_is_known(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 20, "loss": 1.0}\n{"step": 10, "loss": 3.0}\n{"step": 10, "lr": 1.0}\n')
    assert read_metric(path, "loss") == [(10, 3.0), (20, 1.0)]
    svg = draw_learning_curve(path, "code")
    assert svg.count("<polyline") == 1 and "training" in svg and "held out" not in svg and "<circle" not in svg
    path.write_text('{"step": 20, "lr": 1.0}\n')
    with pytest.raises(ValueError, match="nothing to draw"):
        draw_learning_curve(path, "code")
