"""Training from code shards to a model that loads, at toy size."""

import json

import pytest
import torch

from pgm.models import build, load_model
from pgm.weights import config_dict
from pgm_image.__main__ import main
from pgm_image.code_batches import CodeBatches, LabelDropout
from pgm_image.recipes import RECIPES, find_recipe


def test_a_batch_depends_on_its_number_only(code_folder):
    first, again = CodeBatches(code_folder, 8), CodeBatches(code_folder, 8)
    again(3)
    assert all(torch.equal(first(5)[k], again(5)[k]) for k in ("codes", "hidden", "classes", "styles"))
    assert not torch.equal(first(5)["codes"], first(6)["codes"])
    assert not torch.equal(first(5, process=0)["codes"], first(5, process=1)["codes"])


def test_labels_are_dropped_at_their_shares():
    labels = torch.zeros(20_000, dtype=torch.int64)
    classes, styles = LabelDropout(0.1, 0.2, 0.05).apply(labels, labels, torch.Generator().manual_seed(0))
    no_class, no_style = classes < 0, styles < 0
    assert (no_class & no_style).float().mean().item() == pytest.approx(0.1, abs=0.01)
    assert (~no_class & no_style).float().mean().item() == pytest.approx(0.2, abs=0.01)
    assert (no_class & ~no_style).float().mean().item() == pytest.approx(0.05, abs=0.01)


def test_train_export_and_generate(code_folder, pipeline, tmp_path):
    pipeline.tokenizer.save_pretrained(tmp_path / "vq")
    run, model = tmp_path / "run", tmp_path / "model"
    train = [
        "train",
        "--recipe",
        "tiny",
        "--data",
        str(code_folder),
        "--out",
        str(run),
        "--tokenizer",
        str(tmp_path / "vq"),
    ]
    assert main([*train, "--steps", "6"]) == 0
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert any("held_out_loss" in line for line in lines) and list((run / "sheets").glob("*.png"))
    common = ["--tokenizer", str(tmp_path / "vq"), "--data", str(code_folder)]
    assert main(["export", "--run", str(run), *common, "--out", str(model)]) == 0
    assert main(["generate", "b", "--model", str(model), "--out", str(tmp_path / "out")]) == 0
    index = json.loads((model / "model_index.json").read_text())
    assert [0, 2] in index["unseen"]  # style u has no picture at all


def test_runs_of_beginnings_are_averaged_with_what_they_started_from(code_folder, pipeline, tmp_path, capsys):
    pipeline.tokenizer.save_pretrained(tmp_path / "vq")
    first, second, model = tmp_path / "first", tmp_path / "second", tmp_path / "model"
    train = ["train", "--recipe", "tiny", "--data", str(code_folder), "--steps", "4"]
    assert main([*train, "--out", str(first)]) == 0
    begun = ["--staged-share", "0.3", "--beginnings", "4", "8", "--accumulation", "3"]
    assert main([*train, "--out", str(second), "--start-from", str(first / "export"), *begun]) == 0
    assert json.loads((second / "recipe.json").read_text())["beginnings"] == [4, 8]
    assert "28 a step" in capsys.readouterr().out  # 4 whole rows, 16 of a quarter, 8 of a half
    export = ["export", "--tokenizer", str(tmp_path / "vq"), "--data", str(code_folder), "--out", str(model)]
    export += ["--dtype", "float32", "--run", str(first), str(second)]
    assert main([*export, "--shares", "0.4", "0.6"]) == 0
    before, after, averaged = (
        load_model(path).output_layer.linear.weight
        for path in (first / "export", second / "export", model / "transformer")
    )
    torch.testing.assert_close(averaged, 0.4 * before + 0.6 * after)
    assert not torch.equal(before, after)
    assert main([*export, "--shares", "0.4"]) == 2
    assert "shares must be as many as models, got 1 for 2" in capsys.readouterr().err


def test_a_run_can_start_from_a_shallower_model(code_folder, tmp_path):
    small = ["train", "--recipe", "tiny", "--data", str(code_folder), "--steps", "3"]
    assert main([*small, "--out", str(tmp_path / "small")]) == 0
    grown = [*small, "--out", str(tmp_path / "grown"), "--start-from", str(tmp_path / "small" / "export")]
    assert main([*grown, "--sizes", "encoder_layers=2,decoder_layers=3"]) == 0
    assert load_model(tmp_path / "grown" / "export").config.decoder_layers == 3


def test_a_run_from_weights_meets_new_batches_and_goes_on_with_them(code_folder, tmp_path):
    train = ["train", "--recipe", "tiny", "--data", str(code_folder), "--steps", "4", "--log-every", "1"]

    def losses(name, *options):
        assert main([*train, "--out", str(tmp_path / name), *options]) == 0
        lines = [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        return [line["loss"] for line in lines if "loss" in line]

    losses("first")
    weights = ["--start-from", str(tmp_path / "first" / "export"), "--lr", "1e-9"]
    whole = losses("whole", *weights)
    assert len(losses("cut", *weights, "--until", "2")) == 2
    assert losses("cut", *weights) == whole  # resumed
    [seed] = json.loads((tmp_path / "cut" / "start.json").read_text()).values()
    assert seed != 0


def test_bad_sizes_and_recipes_are_named(code_folder, tmp_path, capsys):
    common = ["train", "--data", str(code_folder), "--out", str(tmp_path / "run")]
    assert main([*common, "--recipe", "huge"]) == 2 and "recipe" in capsys.readouterr().err
    assert main([*common, "--recipe", "tiny", "--sizes", "layer=3"]) == 2 and "sizes" in capsys.readouterr().err
    assert main(["train", "--data", str(tmp_path / "nothing"), "--out", str(tmp_path / "run")]) == 2


def test_pgm_and_its_twin_are_of_one_size():
    grid, count = (16, 16), {}
    for name in ("emoji64", "emoji64-maskgit"):
        with torch.device("meta"):
            model = build(config_dict(find_recipe(name).model_config(grid, 1024, 79, 7)))
        count[name] = sum(p.numel() for p in model.parameters())
    assert 0.8 < count["emoji64"] / count["emoji64-maskgit"] < 1.25
    assert set(RECIPES) >= {"emoji64", "emoji64-maskgit", "tiny"}
