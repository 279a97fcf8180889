"""`draw-codes`: grids of a model with the labels that training draws, which a tokenizer's decoder trains on."""

import json

import numpy as np
import pytest

from pgm_image import draw_codes
from pgm_image.__main__ import main
from tokenizer.shards import read_codes, read_grids, read_manifest


@pytest.fixture
def data(code_folder, pipeline):
    """Code shards that name their labels as the model does, its two styles in another order."""
    manifest = json.loads((code_folder / "manifest.json").read_text())
    names = {"classes": pipeline.classes, "styles": [*reversed(pipeline.styles), pipeline.styles[0]]}
    (code_folder / "manifest.json").write_text(json.dumps(manifest | names))
    return code_folder


def draw(model, data, out, *options):
    return main(["draw-codes", "--model", str(model), "--data", str(data), "--out", str(out), *options])


def test_the_grids_are_those_of_the_model_for_the_labels_beside_them(model_folder, pipeline, data, tmp_path):
    assert draw(model_folder, data, tmp_path / "drawn", "--count", "7", "--seed", "5", "--batch-size", "3") == 0
    grids, ((_, labels),) = read_grids(tmp_path / "drawn", "drawn"), read_codes(tmp_path / "drawn", "drawn")
    styles = read_manifest(data)["styles"]
    for index, (class_id, style_id) in enumerate(labels[:, :2].tolist()):
        codes = pipeline.generate(class_id, style=styles[style_id], seed=5 + index, output_type="codes")
        assert np.array_equal(codes[0].numpy(), grids[index])
    assert len(grids) == 7 and len(set(labels[:, 0].tolist())) > 1
    assert read_manifest(tmp_path / "drawn")["tokenizer"]["codes_hash"] == pipeline.tokenizer.codes_hash()


def test_an_interrupted_run_goes_on_where_it_stopped(model_folder, data, tmp_path, monkeypatch):
    monkeypatch.setattr(draw_codes, "SHARD", 3)
    whole, part = tmp_path / "whole", tmp_path / "part"
    assert draw(model_folder, data, whole, "--count", "8") == draw(model_folder, data, part, "--count", "8") == 0
    (part / "drawn-0000003-0000006.labels.npy").unlink()
    kept = (part / "drawn-0000000-0000003.codes.npy").stat().st_mtime_ns
    assert draw(model_folder, data, part, "--count", "8") == 0
    assert np.array_equal(read_grids(whole, "drawn"), read_grids(part, "drawn"))
    assert (part / "drawn-0000000-0000003.codes.npy").stat().st_mtime_ns == kept


def test_bad_arguments_are_one_sentence(model_folder, data, tmp_path, capsys):
    assert draw(model_folder, data, tmp_path / "a", "--count", "0") == 2
    assert "count must be an integer >= 1, got 0" in capsys.readouterr().err
    assert draw(model_folder, data, tmp_path / "a", "--count", "2") == 0
    assert draw(model_folder, data, tmp_path / "a", "--count", "2", "--seed", "1") == 2
    assert "another tokenizer or seed" in capsys.readouterr().err
    manifest = json.loads((data / "manifest.json").read_text())
    (data / "manifest.json").write_text(json.dumps(manifest | {"classes": ["bird", "cat or monkey face", "dodo"]}))
    assert draw(model_folder, data, tmp_path / "b", "--count", "2") == 2
    assert "no class named 'dodo'" in capsys.readouterr().err
