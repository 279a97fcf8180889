"""Recipes: the published ones as published, files, and batches that do not depend on who computes them."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from pgm.models import build
from pgm.orders import halton_order
from pgm.recipes import write_recipe
from pgm.weights import config_dict
from pgm_image.__main__ import main
from pgm_image.code_batches import CodeBatches, LabelDropout, MappedCodes, ShuffledRows, uniforms_at
from pgm_image.public_models import PUBLIC_MODELS
from pgm_image.recipes import RECIPES, find_recipe
from tokenizer.shards import read_codes, read_manifest

IMAGENET = {
    "imagenet256-pgm-12-12": "imagenet256-pgm-12-12",
    "imagenet256-pgm-14-10": "imagenet256-pgm-14-10",
    "imagenet256-maskgit-large": "imagenet256-maskgit",
}
IMAGES = 1_281_167  # training pictures of ImageNet-1k


@pytest.mark.parametrize(("recipe", "model"), IMAGENET.items())
def test_published_recipes_build_the_published_models(recipe, model):
    config = find_recipe(recipe).model_config((32, 32), 16384, 1000, 0)
    assert config == PUBLIC_MODELS[model].config
    with torch.device("meta"):
        assert sum(p.numel() for p in build(config_dict(config)).parameters()) == PUBLIC_MODELS[model].parameters


@pytest.mark.parametrize("name", IMAGENET)
def test_published_recipes_train_as_published(name):
    recipe = find_recipe(name)
    training = recipe.training
    assert (training.lr, training.betas, training.weight_decay, training.clip) == (1e-4, (0.9, 0.999), 0.03, 1.0)
    assert (training.warmup_steps, training.steps, training.decay_share, training.lr_floor) == (2500, 10**6, 0.1, 0.01)
    assert (training.precision, training.ema_decay, training.global_batch) == ("auto", 0.0, 256)
    assert recipe.sizes["dropout"] == 0.1 and recipe.labels == LabelDropout(0.1, 0.0, 0.0)
    assert (recipe.mask_schedule, recipe.draw) == ("arccos", "shuffled")
    assert recipe.last_step(IMAGES, 256) == 500_456  # 100 epochs
    for processes in (1, 8, 64):
        divided = training.divided(processes)
        assert divided.batch_size * divided.accumulation * processes == 256 and divided.batch_size <= 32


def test_every_row_comes_once_an_epoch_also_where_batches_are_uneven():
    rows = ShuffledRows(10, seed=3)
    stream = np.concatenate([rows.take(start, 4) for start in range(0, 40, 4)])
    for epoch in range(4):
        assert sorted(stream[10 * epoch : 10 * epoch + 10]) == list(range(10))
    assert list(stream[:10]) != list(stream[10:20])
    assert np.array_equal(ShuffledRows(10, seed=3).take(17, 9), stream[17:26])
    assert not np.array_equal(ShuffledRows(10, seed=4).take(0, 10), stream[:10])


def test_uniforms_are_read_from_anywhere():
    table = uniforms_at(5, 0, 8, 6)
    assert np.array_equal(uniforms_at(5, 3, 4, 6), table[3:7])
    assert len(np.unique(table)) == table.size and table.min() >= 0 and table.max() < 1
    wide = uniforms_at(0, 0, 1000, 100)
    assert wide.mean() == pytest.approx(0.5, abs=0.01) and wide.var() == pytest.approx(1 / 12, rel=0.02)


def test_rows_of_all_shards_are_one_array():
    whole = np.arange(40, dtype=np.uint16).reshape(10, 4)
    mapped = MappedCodes([whole[:3], whole[3:4], whole[4:]])
    index = np.array([9, 0, 3, 2, 4, 3])
    assert len(mapped) == 10 and np.array_equal(mapped.rows(index), whole[index])


def test_a_step_sees_the_same_rows_in_whatever_way_it_is_divided(code_folder):
    def step(number: int, processes: int, passes: int) -> dict[str, torch.Tensor]:
        size = 12 // (processes * passes)
        made = CodeBatches(code_folder, size, seed=1, draw="shuffled", processes=processes, staged_share=0.5)
        parts = [made(number * passes + part, process) for part in range(passes) for process in range(processes)]
        return {key: torch.cat([part[key] for part in parts]) for key in parts[0]}

    for number in (0, 5):
        expected = step(number, 1, 1)
        for processes, passes in ((2, 1), (1, 3), (2, 2)):
            found = step(number, processes, passes)
            assert all(torch.equal(found[key], expected[key]) for key in expected)
    assert not torch.equal(step(0, 1, 1)["hidden"], step(1, 1, 1)["hidden"])


def test_shuffled_batches_drop_labels_and_hide_codes_at_their_shares(code_folder):
    batches = CodeBatches(code_folder, 4000, draw="shuffled", dropout=LabelDropout(0.1, 0.0, 0.0))
    batch = batches(0)
    assert (batch["classes"] < 0).float().mean().item() == pytest.approx(0.1, abs=0.02)
    assert batch["hidden"].float().mean().item() == pytest.approx(2 / np.pi, abs=0.02)


@pytest.mark.parametrize("draw", ["balanced", "shuffled"])
def test_a_share_of_the_rows_is_staged_along_the_halton_order(draw, code_folder):
    plain, mixed, all_of_them = (
        CodeBatches(code_folder, 1000, draw=draw, staged_share=share)(3) for share in (0.0, 0.4, 1.0)
    )
    assert "stages" not in plain
    assert all(torch.equal(plain[key], mixed[key]) for key in plain) or draw == "shuffled"
    assert (mixed["stages"] > 0).all(1).float().mean().item() == pytest.approx(0.4, abs=0.06)
    assert ((mixed["stages"] > 0).all(1) == (mixed["stages"] > 0).any(1)).all()
    order = torch.tensor(halton_order(*read_manifest(code_folder)["grid"]))
    assert (all_of_them["stages"][:, order].diff(dim=1) >= 0).all() and (all_of_them["stages"] > 0).all()


@pytest.mark.parametrize("draw", ["balanced", "shuffled"])
def test_passes_of_beginnings_take_turns_with_whole_rows(draw, code_folder):
    grid = read_manifest(code_folder)["grid"]
    length, order = grid[0] * grid[1], torch.tensor(halton_order(*grid))
    half, quarter = length // 2, length // 4
    plain, begun = (
        CodeBatches(code_folder, 8, draw=draw, beginnings=beginnings) for beginnings in ((), (quarter, half))
    )
    assert draw == "shuffled" or all(torch.equal(plain(3)[name], begun(3)[name]) for name in plain(3))
    assert [batch["codes"].shape for batch in map(begun, range(3, 6))] == [(8, length), (32, quarter), (16, half)]
    assert all(
        batch["codes"].shape == batch[name].shape for batch in (begun(1), begun(2)) for name in ("hidden", "stages")
    )
    assert "positions" not in begun(0) and torch.equal(begun(4)["positions"], order[:quarter])
    assert (begun(4)["stages"] > 0).all() and (begun(4)["stages"].diff(dim=1) >= 0).all()
    assert not torch.equal(begun(1)["codes"], begun(4)["codes"])
    with pytest.raises(
        ValueError, match=rf"beginnings must be from 1 to {length - 1} of {length} codes, got \({length},\)"
    ):
        CodeBatches(code_folder, 8, draw=draw, beginnings=(length,))


@pytest.mark.parametrize("processes", [1, 2])
def test_an_epoch_of_whole_rows_and_beginnings_meets_every_row_once(processes, code_folder):
    grid = read_manifest(code_folder)["grid"]
    first = torch.tensor(halton_order(*grid))[: grid[0] * grid[1] // 2]
    batches = CodeBatches(code_folder, 1, draw="shuffled", processes=processes, beginnings=(len(first),))
    assert batches.rows_per_pass == 1.5
    met, index = torch.empty(0, len(first), dtype=torch.int64), 0
    while len(met) < len(batches.codes):
        for process in range(processes):
            codes = batches(index, process)["codes"]
            met = torch.cat((met, codes if index % 2 else codes[:, first]))
        index += 1
    rows = torch.from_numpy(np.concatenate([codes for codes, _ in read_codes(code_folder, "train")]).astype(np.int64))
    assert sorted(met[: len(rows)].tolist()) == sorted(rows[:, first].tolist())


@pytest.mark.parametrize("name", ["tiny", "imagenet256-maskgit-large"])
def test_a_recipe_survives_its_json(name, tmp_path):
    begun = replace(RECIPES["tiny"], staged_share=0.3, beginnings=(4, 8))
    for recipe in (RECIPES[name], begun):
        write_recipe(tmp_path, name, recipe)
        assert find_recipe(str(tmp_path / "recipe.json")) == recipe


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"architecture": "pgm"}, "must hold an object with architecture and sizes"),
        ({"architecture": "gan", "sizes": {}}, "architecture must be one of pgm, maskgit, got 'gan'"),
        ({"architecture": "pgm", "sizes": {}, "labels": {"rate": 1}}, "labels has no setting 'rate'"),
        ({"architecture": "pgm", "sizes": {}, "draw": "any"}, "draw must be one of balanced, shuffled"),
        ({"architecture": "pgm", "sizes": {}, "staged_share": 1.5}, r"staged_share must be in \[0, 1\], got 1.5"),
        ({"architecture": "maskgit", "sizes": {}, "staged_share": 0.5}, "staged_share must be 0 for maskgit, got 0.5"),
        (
            {"architecture": "maskgit", "sizes": {}, "beginnings": [64]},
            r"beginnings must be \(\) for maskgit, got \(64,\)",
        ),
    ],
)
def test_a_recipe_file_that_cannot_be_is_one_sentence(values, says, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match=says):
        find_recipe(str(path))


def test_a_run_writes_its_recipe_and_another_run_can_start_from_it(code_folder, tmp_path, capsys):
    common = ["train", "--data", str(code_folder), "--log-every", "1"]
    first = [*common, "--recipe", "tiny", "--draw", "shuffled", "--global-batch", "6", "--steps", "3"]
    assert main([*first, "--out", str(tmp_path / "first")]) == 0
    assert "6 a step (1 processes x 3 x 2 passes), fp32, from step 0 to 3" in capsys.readouterr().out
    assert main([*common, "--config", str(tmp_path / "first" / "recipe.json"), "--out", str(tmp_path / "again")]) == 0
    losses = [
        [json.loads(line).get("loss") for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("first", "again")
    ]
    assert losses[0] == losses[1] and len(losses[0]) == 4


def test_epochs_end_a_run_before_its_schedule_does(code_folder, tmp_path):
    write_recipe(tmp_path, "tiny", replace(RECIPES["tiny"], epochs=1, draw="shuffled"))
    path = str(tmp_path / "recipe.json")
    assert main(["train", "--data", str(code_folder), "--config", path, "--out", str(tmp_path / "run")]) == 0
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["step"] == 6  # 24 rows in batches of 4


def test_data_without_a_held_out_split_is_trained_on(code_folder, tmp_path):
    manifest = json.loads((code_folder / "manifest.json").read_text())
    del manifest["splits"]["heldout"]
    (code_folder / "manifest.json").write_text(json.dumps({**manifest, "styles": []}))
    words = ["train", "--data", str(code_folder), "--recipe", "tiny", "--steps", "2", "--out", str(tmp_path / "run")]
    assert main(words) == 0
    assert (tmp_path / "run" / "export" / "config.json").is_file()
