"""Comparisons and sweeps, called without a browser."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from fake_pipeline import FakePipeline
from PIL import Image

from app import compare, sweep
from app.compare_tab import first_mode, run, save
from app.limits import Limits
from app.models import Models
from app.settings import Settings

LIMITS = Limits()
FOX = Settings("fake", "fox", "Ink", steps=6, seed=4, guidance_scale=1.0)


@pytest.fixture
def twins(pipeline):
    return Models({"fake": pipeline, "fake-maskgit": FakePipeline(0.0, "fake-maskgit", twin_of=pipeline)})


@pytest.fixture
def models(pipeline):
    return Models({"fake": pipeline})


def outcome(models, mode, settings=FOX, lists=("2, 4", "0, 1"), randomise=False):
    return list(run(models, LIMITS, mode, settings, lists, randomise))


def test_every_round_adds_one_step_to_every_side(twins):
    values = [value for value, _, _ in outcome(twins, compare.TWIN)]
    assert [[len(side["steps"]) for side in value["sides"]] for value in values] == [[k, k] for k in range(7)]
    assert [side["label"] for side in values[-1]["sides"]] == ["PGM", "MaskGIT"]
    assert values[-1]["done"] and not values[-2]["done"]
    assert json.loads(json.dumps(values[-1])) == values[-1]


def test_both_sides_have_the_same_request_but_for_what_is_compared(twins, models):
    first, second = compare.sides(twins, compare.TWIN, FOX)
    assert (first.settings.model, second.settings.model) == ("fake", "fake-maskgit")
    assert replace(second.settings, model="fake") == first.settings == FOX
    orders = compare.sides(models, compare.ORDERS, FOX)
    assert [side.settings.sampler for side in orders] == ["halton", "confidence", "random"]
    assert {replace(side.settings, sampler="halton") for side in orders} == {FOX}


def test_the_partition_model_stays_first_when_its_twin_is_the_chosen_model(twins):
    sides = compare.sides(twins, compare.TWIN, replace(FOX, model="fake-maskgit"))
    assert [side.label for side in sides] == ["PGM", "MaskGIT"]


def test_the_verdict_follows_from_the_codes_computed(twins):
    value = outcome(twins, compare.TWIN)[-1][0]
    cheap, dear = (side["steps"][-1]["computed"] for side in value["sides"])
    assert f"MaskGIT computed {dear / cheap:.1f} times as many codes as PGM" in value["verdict"]


def test_each_clock_runs_during_its_own_steps_only(pipeline):
    slow = FakePipeline(0.1, "fake-maskgit", twin_of=pipeline)
    value = outcome(Models({"fake": pipeline, "fake-maskgit": slow}), compare.TWIN)[-1][0]
    quick, waited = (side["steps"][-1]["seconds"] for side in value["sides"])
    assert quick < 6 * 0.1 <= waited


def test_without_a_twin_the_reason_is_given_and_orders_are_compared_instead(models):
    assert first_mode(models, "fake") == compare.ORDERS
    [(value, _, _)] = outcome(models, compare.TWIN)
    assert value["error"] == compare.no_twin(models, "fake")
    assert "MaskGIT" in value["error"] and value["error"].endswith(".")


def test_a_model_that_is_not_its_twins_own_twin_is_said_not_to_be_its_equal(pipeline):
    def sized(name, parameters, twin_of=None):
        other = FakePipeline(0.0, name, twin_of=twin_of)
        other.info = replace(other.info, parameters=parameters, title=name.title())
        return other

    small = sized("small", 5)
    models = Models({one.info.name: one for one in (sized("large", 10), small, sized("masked", 6, small))})
    assert compare.about_twins(models, "small") == compare.about_twins(models, "masked") == ""
    assert compare.about_twins(models, "large") == (
        "Masked was made to be compared with Small: choose that for a race of equals, not Large."
    )
    assert compare.about_twins(Models({"small": small}), "small") == compare.no_twin(Models({"small": small}), "small")


def test_models_with_different_codebooks_are_not_compared(pipeline):
    other = FakePipeline(0.0, "fake-maskgit", twin_of=FakePipeline(0.0))
    pipeline.pictures("fox", steps=1)  # now one of them has codes of its own
    [(value, _, _)] = outcome(Models({"fake": pipeline, "fake-maskgit": other}), compare.TWIN)
    assert "do not share a codebook" in value["error"]


def test_closing_a_comparison_ends_the_work_of_every_side(twins, pipeline):
    rows = run(twins, LIMITS, compare.TWIN, FOX, ("", ""), False)
    for _ in range(3):
        next(rows)
    rows.close()
    assert pipeline.running == 0 and twins.pipeline("fake-maskgit").running == 0


def test_a_sweep_has_the_picture_of_each_pair_of_settings(models, pipeline):
    rows = outcome(models, "sweep", FOX, ("4, 2 4", "1; 0"))
    value = rows[-1][0]
    assert (value["steps"], value["guidance"]) == ([2, 4], [0.0, 1.0])
    assert [len(row[0]["cells"]) for row in rows] == [0, 1, 2, 3, 4] and value["done"]
    cell = value["cells"][2]
    assert (cell["row"], cell["column"]) == (1, 0)
    sheet = np.asarray(sweep.sheet(value))
    expected = np.asarray(pipeline.pictures("fox", style="Ink", steps=4, guidance_scale=0.0, seed=4)[0])
    left = 104  # room for the labels of rows
    rows = [
        y for y in range(len(sheet) - 128) if np.array_equal(sheet[y : y + 128 : 2, left : left + 128 : 2], expected)
    ]
    assert len(rows) >= 1


@pytest.mark.parametrize(
    ("steps", "guidance", "words"),
    [
        ("", "1", "Steps must be from 1 to 6 numbers"),
        ("4", "1,2,3,4,5,6,7", "Guidance must be from 1 to 6 numbers"),
        ("1,2,3,4,5,6", "1,2,3,4,5", "at most 24"),
        ("0", "1", "Steps must be a whole number"),
        ("4", "banana", "Guidance must be a number"),
        ("4", "-1", "Guidance must be a number"),
        ("2.5", "1", "Steps must be a whole number"),
    ],
)
def test_a_bad_list_is_refused_in_one_sentence(models, pipeline, steps, guidance, words):
    [(value, _, _)] = outcome(models, "sweep", FOX, (steps, guidance))
    assert words in value["error"] and value["error"].count(". ") == 0
    assert pipeline.started == 0


def test_files_of_a_comparison_hold_its_numbers(twins):
    value = outcome(twins, compare.TWIN)[-1][0]
    name, media, content = save(value, "csv", 0)
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert (name, media, len(rows)) == ("fox-ink-seed4-comparison.csv", "text/csv", 12)
    assert rows[-1]["side"] == "MaskGIT"
    assert int(rows[-1]["codes_computed"]) == value["sides"][1]["steps"][-1]["computed"]
    name, _, content = save(value, "png", 5)
    assert name == "fox-ink-seed4-comparison.png" and Image.open(io.BytesIO(content)).width > 2 * 192


def test_files_of_a_sweep_hold_its_settings_and_seconds(models):
    value = outcome(models, "sweep")[-1][0]
    _, _, content = save(value, "csv", 0)
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    pairs = [(int(row["steps"]), float(row["guidance_scale"])) for row in rows]
    assert pairs == [(2, 0), (2, 1), (4, 0), (4, 1)]
    assert all(float(row["seconds"]) >= 0 and row["seed"] == "4" for row in rows)


@pytest.mark.parametrize(("kind", "step"), [("exe", 0), ("png", 99), ("png", -1)])
def test_what_is_not_in_a_comparison_is_refused(twins, kind, step):
    with pytest.raises(ValueError):
        save(outcome(twins, compare.TWIN)[-1][0], kind, step)
