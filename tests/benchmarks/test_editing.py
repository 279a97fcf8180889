"""Filling held-out pictures: what is open is open, what is given stays, and every setting has its row."""

import numpy as np
import pytest
import torch

from benchmarks.editing import SHAPES, Filling, filled, main, open_cells
from pgm.orders import halton_order
from pgm_image.evaluation.image_set import load_image_set
from pgm_image.pipeline import PGMPipeline
from tests.benchmarks.tiny_pipelines import tiny
from tests.pgm_image.evaluation_data import write_shards


def test_shapes():
    right, outside, middle, *spread = (open_cells(shape, (16, 16)) for shape in SHAPES)
    assert (right.sum(), outside.sum(), middle.sum()) == (128, 192, 64)
    assert [256 - cells.sum() for cells in spread] == [128, 64, 16]
    first = list(halton_order(16, 16)[:16])
    assert not spread[-1].flatten()[first].any()
    assert (middle ^ outside).all() and not right[:, :8].any() and middle[4:12, 4:12].all()


@pytest.mark.parametrize("text", ["", "1:2", "1:2:3:4", "a:1:1"])
def test_settings_that_cannot_be_read_are_named(text):
    with pytest.raises(ValueError, match=r"settings must be like 0.5:0.6:1, got"):
        Filling.parse(text)


def test_given_codes_stay_and_open_ones_follow_the_settings(tmp_path):
    pictures = load_image_set(write_shards(tmp_path), "heldout")
    pipe, cells = tiny("pgm"), open_cells("right", (4, 4))
    seen, steps = [], pipe.steps
    pipe.steps = lambda request, known: (seen.append((request.sampling, known)), steps(request, known))[1]
    drawn = filled(pipe, pictures, cells, Filling(0.25, 0.5, 1.5), chunk=5)
    plain = filled(pipe, pictures, cells, None)
    assert drawn.shape == plain.shape == pictures.images.shape and (drawn != plain).any()
    sampling, known = seen[0]
    assert (sampling.guidance_scale, sampling.temperature, sampling.temperature_anneal) == (0.25, 0.5, 1.5)
    assert torch.equal((known < 0).reshape(-1, 4, 4), torch.from_numpy(cells.copy()).expand(5, 4, 4))
    assert (filled(pipe, pictures, cells, Filling(0.25, 0.5, 1.5), chunk=7) == drawn).all()


@pytest.mark.parametrize("split", ["heldout", "train"])
def test_every_shape_has_a_row_for_the_tokenizer_and_one_for_each_setting(split, tmp_path, monkeypatch, capsys):
    pipe = tiny("pgm")
    monkeypatch.setattr(PGMPipeline, "from_pretrained", lambda name, **_: pipe)
    words = ["--data", str(write_shards(tmp_path)), "--samples", "12", "--split", split, "--shapes", "middle", "right"]
    main([*words, "--settings", "0:1:1", "0.5:0.6:1"])
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:5] == ["open", "guidance", "temperature", "anneal", "RMSE"]
    assert [line.split()[:4] for line in rows] == [
        [shape, *settings]
        for shape in ("middle", "right")
        for settings in (["-", "-", "-"], ["0", "1", "1"], ["0.5", "0.6", "1"])
    ]
    assert all(np.isfinite(float(line.split()[4])) for line in rows)
