"""Twins side by side: same labels, seeds and settings; what ran is counted; points are kept; unequal pairs refused."""

import json
from dataclasses import replace
from functools import cache

import pytest
import torch

from benchmarks import twins
from benchmarks.operations import generation_operations
from benchmarks.scores import Scores, real_side, score
from benchmarks.twins import Point, check_twins, main, measure, plot, requests
from pgm_image.evaluation.samples import Settings, draw_samples, pipeline_labels
from pgm_image.pipeline import PGMPipeline
from tests.benchmarks.tiny_pipelines import LENGTH, tiny
from tests.pgm_image.evaluation_data import write_shards

COUNTS = {"halton": [2, 3, 3, 8], "confidence": [1, 3, 4, 8]}  # arccos, 16 codes in 4 steps


def renamed(pipe: PGMPipeline, **changes) -> PGMPipeline:
    """The pipeline with another card."""
    return PGMPipeline(pipe.transformer, pipe.tokenizer, replace(pipe.info, **changes))


@pytest.fixture
def pair():
    pgm, masked = tiny("pgm"), tiny("maskgit")
    saving = {**pgm.info.recommended, "encoder_refresh": 4, "refine_rounds": 2}
    return renamed(pgm, recommended=saving), renamed(masked, recommended={"temperature": 0.1, "top_k": 1})


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("data") / "shapes")


@pytest.fixture(scope="module")
def real_sides():
    """`real_side`, prepared once."""
    return cache(real_side)


@pytest.fixture
def real(real_sides, shards):
    return real_sides(str(shards), 12, 0)


@pytest.fixture
def command(pair, shards, real_sides, tmp_path, monkeypatch):
    """Runs the command on the tiny twins with further words; "pgm" and "maskgit" are their folders."""
    monkeypatch.setattr(twins, "real_side", real_sides)
    for pipe, name in zip(pair, ("pgm", "maskgit"), strict=True):
        pipe.save_pretrained(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    given = ["pgm", "maskgit", "--plot", "twins.svg", "--data", str(shards), "--samples", "12", "--batch-size", "5"]
    return lambda *words: main([*given, *words])


def report(folder):
    return json.loads((folder / "twins.json").read_text())


@pytest.mark.parametrize("order", ["halton", "confidence"])
def test_codes_computed_are_those_that_ran(pair, real, order):
    labels = pipeline_labels(pair[0], real.reference)
    ours, theirs = measure(pair, requests(pair, labels, 0, order, 4), real, batch=5)
    known = [sum(COUNTS[order][:step]) for step in range(4)]
    asked = COUNTS[order] if order == "halton" else [LENGTH - k for k in known]
    # Guidance is constant: two rows at every step. A register and BOS are in front of a partition model's known codes,
    # a register is among a masked model's.
    assert ours.computed == sum(2 * (2 + k + q) for k, q in zip(known, asked, strict=True))
    assert theirs.computed == 2 * 4 * (LENGTH + 1)
    assert (ours.computed < theirs.computed) == (order == "halton")
    for point, pipe in zip((ours, theirs), pair, strict=True):
        sampling = pair[0].request(None, steps=4, sampler=order).sampling
        assert point.operations == generation_operations(pipe.transformer.config, sampling, LENGTH)
        assert 0 < point.seconds < 10 and point.images_per_second < 1 / point.seconds


def test_both_have_the_first_models_settings_and_every_code_is_encoded_anew_and_drawn_once(pair, real):
    labels = pipeline_labels(pair[0], real.reference)
    ours, theirs = requests(pair, labels, 7, "confidence", 3)
    assert pair[0].request(0).sampling.encoder_refresh == 4 and pair[0].request(0).sampling.refine_rounds == 2
    assert (ours.sampling.encoder_refresh, ours.sampling.refine_rounds, ours.sampling.steps) == (1, 0, 3)
    assert (ours.sampling.temperature, ours.sampling.top_k, ours.sampling.guidance_scale) == (0.8, None, 1.5)
    assert ours.seeds == tuple(range(7, 19)) and ours.classes == tuple(labels[0]) and ours.styles == tuple(labels[1])
    assert replace(theirs, sampling=replace(theirs.sampling, confidence_counts="pgm")) == ours
    assert theirs.sampling.confidence_counts == "maskgit"


def test_scores_are_those_that_the_evaluator_gives_each_model_alone(pair, real):
    labels = pipeline_labels(pair[0], real.reference)
    points = measure(pair, requests(pair, labels, 3, "halton", 4), real, batch=5)
    settings = Settings(4, "halton", 1.5, "constant", 0.8, encoder_refresh=1, refine_rounds=0)
    for point, pipe in zip(points, (pair[0], renamed(pair[1], recommended={})), strict=True):
        assert point.scores == score(draw_samples(pipe, *labels, settings, seed=3).images, real)
    assert points[0].scores != points[1].scores
    assert max(point.scores.kid for point in points) > 10 and points[0].scores.kid_std > 0


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("pgm", "pgm", "must be a partition model"),
        ("maskgit", "pgm", "in this order, got 'tiny-maskgit' .'maskgit'. and 'tiny-pgm' .'pgm'."),
        ("pgm", {"classes": ("circle", "square", "star")}, "differ in classes$"),
        ("pgm", {"styles": ()}, "differ in styles$"),
        ("pgm", {"grid": (2, 8), "codebook_size": 8}, "differ in codebook_size, grid$"),
    ],
)
def test_models_that_are_no_twins_are_refused_in_one_sentence(first, second, said):
    other = renamed(tiny("maskgit"), **second) if isinstance(second, dict) else tiny(second)
    with pytest.raises(ValueError, match=said) as caught:
        check_twins(tiny(first), other)
    assert "\n" not in str(caught.value)


def test_equal_cards_over_other_codebooks_are_refused(pair):
    check_twins(*pair)
    with torch.no_grad():
        pair[1].tokenizer.quantizer.codebook[3, 0] += 1
    with pytest.raises(ValueError, match="differ in codebook$"):
        check_twins(*pair)


def test_a_second_run_adds_what_is_missing_and_keeps_the_rest(command, tmp_path, capsys, monkeypatch):
    assert command("--steps", "2", "--orders", "halton", "confidence") == 0
    before = report(tmp_path)
    assert [(p["model"], p["order"], p["steps"]) for p in before["points"]] == [
        ("PGM", "halton", 2), ("MaskGIT", "halton", 2), ("PGM", "confidence", 2), ("MaskGIT", "confidence", 2)
    ]  # fmt: skip
    measured = []
    real_measure = twins.measure
    monkeypatch.setattr(twins, "measure", lambda *given: measured.append(given[1][0].sampling) or real_measure(*given))
    capsys.readouterr()
    assert command("--steps", "2", "4", "--orders", "halton") == 0
    assert [(sampling.order, sampling.steps) for sampling in measured] == [("halton", 4)]
    after, said = report(tmp_path), capsys.readouterr().out
    assert after["points"][:4] == before["points"] and len(after["points"]) == 6
    assert said.count("MaskGIT ") == 4 and "encoder_refresh 1 and refine_rounds 0" in said
    protocol = after["protocol"]
    assert protocol["settings"]["temperature"] == 0.8 and protocol["settings"]["encoder_refresh"] == 1
    assert (protocol["labels_seed"], protocol["threads"]) == (0, torch.get_num_threads())
    assert set(protocol["versions"]) >= {"python", "torch", "torch-fidelity"}
    assert [model["name"] for model in protocol["models"].values()] == ["tiny-pgm", "tiny-maskgit"]


def test_points_before_an_end_are_kept(command, tmp_path, monkeypatch):
    real_measure = twins.measure

    def measure_once(*given):
        monkeypatch.setattr(twins, "measure", stop)
        return real_measure(*given)

    def stop(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(twins, "measure", measure_once)
    with pytest.raises(KeyboardInterrupt):
        command("--steps", "2", "3", "--orders", "halton")
    assert [point["steps"] for point in report(tmp_path)["points"]] == [2, 2]
    assert (tmp_path / "twins.svg").read_text().count("<polyline") == 6


@pytest.mark.parametrize("change", ["samples", "weights", "no report"])
def test_points_of_another_run_are_not_mixed_in(command, pair, tmp_path, capsys, change):
    path, words = tmp_path / "twins.json", ["--steps", "2", "--orders", "halton"]
    assert command(*words) == 0
    if change == "samples":
        words += ["--samples", "8"]
    elif change == "weights":
        with torch.no_grad():
            next(pair[1].transformer.parameters()).add_(0.5)
        pair[1].save_pretrained(tmp_path / "maskgit")
    else:
        path.write_text('{"points": []}')
    kept = path.read_text()
    capsys.readouterr()
    assert command(*words) == 2
    expected = {"samples": "differing: samples, reference", "weights": "differing: models", "no report": "not a report"}
    assert expected[change] in capsys.readouterr().err and path.read_text() == kept


def test_bad_words_are_one_sentence_before_anything_is_sampled(command, capsys, monkeypatch):
    monkeypatch.setattr(twins, "measure", lambda *given: pytest.fail("sampled"))
    assert command("--steps", "4", "17") == 2
    assert "steps must be an integer in 1..16, got 17" in capsys.readouterr().err
    assert command("--plot", "nowhere/twins.svg") == 2 and "nowhere" in capsys.readouterr().err
    assert main(["pgm", "pgm", "--plot", "twins.svg"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_plot_has_a_line_for_each_model_and_order():
    points = [
        Point(model, order, steps, 10 * steps, 1, seconds=steps / 8, decoding=0.1, scores=Scores(kid=90.0 - steps))
        for model in ("PGM", "MaskGIT")
        for order in ("halton", "confidence")
        for steps in (8, 16)
    ]
    drawn = plot(points)
    for name in ("PGM halton", "PGM confidence", "MaskGIT halton", "MaskGIT confidence"):
        assert drawn.count(f">{name}</text>") == 1
    assert drawn.count("<polyline") == 3 * 4 and drawn.count("<circle") == 3 * 8
    assert "KID x 1000 against CPU s a picture" in drawn and "class recognised, % against CPU s a picture" in drawn
    assert "codes computed a picture against steps" in drawn
