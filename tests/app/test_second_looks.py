"""Refinement on the page, over tiny real models: settings, reveals, files and endpoints; without a browser."""

import io
from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import pytest
import torch
from gradio_client import Client, handle_file
from PIL import Image
from tiny_pipeline import tiny_pipeline, tiny_text_pipeline

from app.compare import ORDERS
from app.compare_tab import run as run_compared
from app.downloads import PAPER, frames, save
from app.edit_form import task_of
from app.edit_reveal import save_edit
from app.edit_tab import run as run_edit
from app.history import past_files
from app.image_form import (
    bring,
    brought,
    defaults,
    form_values,
    preset_values,
    restore,
    reuse,
    settings_of,
    usual,
    usual_steps,
)
from app.image_tab import run
from app.limits import Limits
from app.models import Models
from app.page import build, launch_settings
from app.reveal import picture_at, reveal
from app.settings import Settings, checked
from app.text_files import report
from app.text_form import COMPARE, FIELDS
from app.text_form import preset_values as text_preset_values
from app.text_form import reuse as reuse_text
from app.text_models import TextModels
from app.text_settings import defaults as text_defaults
from app.text_settings import usual as usual_text
from app.text_tab import run as run_text
from pgm_image.metadata import read_settings

LIMITS = Limits()
CARD = {
    "recommended": {"steps": 4, "guidance_scale": 1.0, "refine_rounds": 2},
    "presets": {"Draft": {"steps": 2, "refine_rounds": 0}, "Balanced": {"steps": 4}},
}
BIRDS = Settings("emoji64", "bird", "ink", num_images=2, steps=5, seed=3, guidance_scale=1.0, refine_rounds=3)
TAKEN = (6, 4, 2)  # 40 % of 16 codes, then linearly fewer
TOTAL = 5 + 4 + 4 + 2  # a round takes 4 steps, but never more than codes
TEXT_CARD = {
    "recommended": {"steps": 6, "sampler": "uniform", "refine_rounds": 2},
    "presets": {"Draft": {"steps": 3, "refine_rounds": 0}, "Balanced": {"steps": 6}},
}


@pytest.fixture(scope="module")
def pipeline():
    return tiny_pipeline(**CARD)


@pytest.fixture
def models(pipeline):
    return Models({"emoji64": pipeline})


@pytest.fixture(scope="module")
def value(pipeline):
    *_, last = reveal(pipeline, BIRDS)
    return last


@pytest.fixture(scope="module")
def texts():
    made = [tiny_text_pipeline(kind, **TEXT_CARD) for kind in ("pgm", "mdlm")]
    return TextModels({one.info.name: one for one in made})


@pytest.fixture(scope="module")
def client(pipeline, texts):
    page = build({"emoji64": pipeline}, LIMITS, text_pipelines={name: texts.pipeline(name) for name in texts.names()})
    try:
        address = page.launch(
            **launch_settings(page), prevent_thread_lock=True, quiet=True, inbrowser=False, ssr_mode=False
        )[1]
        yield Client(address, verbose=False, download_files=True)
    finally:
        page.close(verbose=False)


def replayed(value):
    """Per step the codes (B, L) that the records of a reveal add up to."""
    codes = torch.full((value["count"], value["grid"][0] * value["grid"][1]), -1)
    for picture, cells in enumerate(value.get("given", {"cells": ()})["cells"]):
        codes[picture, cells] = torch.tensor(value["given"]["codes"][picture])
    for record in value["steps"]:
        for picture in range(value["count"]):
            codes[picture, record["taken_back"][picture]] = -1
            codes[picture, record["filled"][picture]] = torch.tensor(record["codes"][picture])
        yield codes.clone()


def in_form(fields):
    """Settings that the values of the form stand for."""
    return checked(settings_of(*fields)[0], LIMITS)


def test_the_page_starts_with_as_many_rounds_as_the_card_recommends(pipeline, models):
    settings = defaults(pipeline.info)
    assert settings.refine_rounds == 2 and usual(pipeline.info) == "Balanced"
    assert preset_values(pipeline.info, "Draft") == ("halton", 2, 1.0, 0, 1.0)
    assert preset_values(pipeline.info, "Balanced") == ("halton", 4, 1.0, 2, 1.0)
    assert usual_steps(pipeline.info) == 4 + 4 + 3
    page = build({"emoji64": pipeline})
    values = {block.elem_id: block for block in page.blocks.values() if getattr(block, "elem_id", None)}
    for tab in ("image", "edit"):
        control = values[f"{tab}-rounds"]
        assert (control.value, control.minimum, control.maximum, control.step) == (2, 0, LIMITS.max_refine_rounds, 1)
    assert defaults(replace(pipeline.info, recommended={})).refine_rounds == 0
    assert task_of(models, LIMITS, b"x", {"cells": [1]}, {"refine_rounds": None}).settings.refine_rounds == 2


def test_a_run_goes_through_the_form_a_link_a_png_and_the_history_unchanged(models, value):
    one = BIRDS.of_picture(1)
    assert in_form(form_values(BIRDS)) == BIRDS
    assert brought(models, LIMITS, dict(parse_qsl(one.query()))) == one
    assert in_form(restore(models, LIMITS, save(value, "png", 1, TOTAL - 1)[2])) == one
    _, _, content = past_files([{"settings": value["pictures"][1], "picture": value["steps"][-1]["previews"][1]}])
    assert read_settings(io.BytesIO(content))["refine_rounds"] == 3
    assert in_form(bring(models, LIMITS, read_settings(io.BytesIO(content)))) == one
    assert in_form([*reuse(value, "settings", 1)[:-2], one.seed, True]) == one
    assert len(reuse(value, "seed", 1)) == len(reuse(None, "seed", 1)) == len(form_values(one))


def test_rounds_that_are_rarely_changed_come_with_a_picture(models):
    rare = replace(BIRDS, num_images=1, refine_share=0.5, refine_steps=2, refine_score="typicality")
    *_, (made, _, _) = run(models, LIMITS, rare, False)
    assert (
        made["total"] == len(made["steps"]) == 5 + 3 * 2
        and "refine steps 2 · refine score typicality" in made["summary"]
    )
    again = in_form(restore(models, LIMITS, save(made, "png", 0, len(made["steps"]) - 1)[2]))
    assert again == rare and again.rare() == {"refine_share": 0.5, "refine_steps": 2, "refine_score": "typicality"}


def test_what_is_older_than_refinement_had_none(models, value):
    old = {name: held for name, held in value["pictures"][0].items() if not name.startswith("refine")}
    assert brought(models, LIMITS, old).refine_rounds == 0  # a picture in the history, or one dropped on the page
    link = dict(parse_qsl(BIRDS.of_picture(0).query()))
    del link["refine_rounds"]
    assert brought(models, LIMITS, link).refine_rounds == 0
    assert brought(models, LIMITS, {"class_id": "bird"}).refine_rounds == 2  # typed by hand: as the card says


def test_totals_are_right_from_the_start_and_known_codes_fall_and_rise(pipeline):
    values = list(reveal(pipeline, BIRDS))
    assert {(value["total"], value["later"]) for value in values} == {(TOTAL, 10)}
    assert [value["done"] for value in values] == [False] * TOTAL + [True]
    steps = values[-1]["steps"]
    assert [step["round"] for step in steps] == [0] * 5 + [1] * 4 + [2] * 4 + [3] * 2
    known = [step["known"] for step in steps]
    for start, end, taken in zip((5, 9, 13), (9, 13, 15), TAKEN, strict=True):
        assert known[start - 1] == known[end - 1] == 16 and known[start] < 16
        assert known[start:end] == sorted(known[start:end])
        assert [len(cells) for cells in steps[start]["taken_back"]] == [taken, taken]
        assert sum(len(step["filled"][0]) for step in steps[start:end]) == taken
    assert all(step["taken_back"] == [[], []] for index, step in enumerate(steps) if index not in (5, 9, 13))


@pytest.mark.parametrize("sampler", ["halton", "confidence"])
def test_the_records_add_up_to_the_codes_of_every_step(pipeline, sampler):
    settings = replace(BIRDS, sampler=sampler)
    *_, value = reveal(pipeline, settings)
    steps = list(pipeline.steps(pipeline.request(**settings.arguments())))
    for step, codes in zip(steps, replayed(value), strict=True):
        assert torch.equal(codes, step.codes)
    again = torch.tensor([record["round"] for record in value["steps"]]) > 0
    changed = torch.stack(list(replayed(value)))[4] != steps[-1].codes
    assert again.sum() == 10 and changed.any(), "a second look changes something"


def test_the_last_picture_is_what_the_pipeline_generates(pipeline, value):
    expected = pipeline.generate(**BIRDS.arguments())
    for picture in range(2):
        shown = picture_at(value, TOTAL - 1, picture)
        assert np.array_equal(np.asarray(shown), np.asarray(expected[picture]))
    name, _, content = save(value, "png", 0, 4)  # the whole picture before the second looks is a step of its own
    assert name.endswith("-step5.png") and read_settings(io.BytesIO(content))["shown_step"] == 5


def test_a_saved_reveal_empties_the_cells_that_are_taken_back(value):
    shown = [np.asarray(frame.resize((16, 16), Image.NEAREST)) for frame in frames(value, 0)]
    assert len(shown) == TOTAL
    for codes, frame in zip(replayed(value), shown, strict=True):
        paper = (frame == PAPER).all(-1).reshape(4, 4, 4, 4).all((1, 3)).flatten()
        assert np.array_equal(paper, (codes[0] < 0).numpy())
    for kind in ("webp", "gif"):
        assert Image.open(io.BytesIO(save(value, kind, 0, 0)[2])).n_frames == TOTAL


def test_stopping_in_a_round_frees_the_worker_and_keeps_the_whole_picture_before_it(models, pipeline):
    rows = run(models, LIMITS, BIRDS, False)
    for _ in range(1 + 5 + 2):  # no step yet, the first draw, two steps of round 1
        value, session, _ = next(rows)
    rows.close()
    assert session["steps"][-1]["known"] < session["steps"][4]["known"] == 16
    before = replace(BIRDS, refine_rounds=0)
    whole = pipeline.generate(**before.arguments())[0]
    content = save(session, "png", 0, 4)[2]
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(content))), np.asarray(whole))


def test_a_comparison_is_a_plain_race(models):
    *_, (value, _, _) = run_compared(models, LIMITS, ORDERS, replace(BIRDS, num_images=1), ("", ""), False)
    assert value["done"] and {len(side["steps"]) for side in value["sides"]} == {5}
    assert {side["settings"]["refine_rounds"] for side in value["sides"]} == {0}
    *_, (value, _, _) = run_compared(models, LIMITS, "sweep", replace(BIRDS, num_images=1), ("2", "0, 1"), False)
    assert value["settings"]["refine_rounds"] == 0


def file_of(picture):
    buffer = io.BytesIO()
    picture.save(buffer, "png")
    return buffer.getvalue()


@pytest.fixture(scope="module")
def noise():
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (16, 16, 3)).astype(np.uint8))


def test_an_edit_looks_again_at_the_painted_cells_alone(models, pipeline, noise):
    painted = [2, 3, 6, 7, 10, 11]
    form = {"class_id": "bird", "steps": 3, "seed": 9, "num_images": 2}
    values = list(run_edit(models, LIMITS, file_of(noise), {"cells": painted}, form))
    totals = {(value["total"], value["later"]) for value, _, _ in values}
    value, session, _ = values[-1]
    assert totals == {(len(value["steps"]), len(value["steps"]) - 3)} and value["done"]
    assert [step["round"] for step in value["steps"]] == [0] * 3 + [1] * 2 + [2]  # 40 % of 6, then half of that
    touched = {cell for step in value["steps"] for name in ("taken_back", "filled") for cell in step[name][0]}
    assert touched == set(painted) and any(step["taken_back"][0] for step in value["steps"])
    *_, last = replayed(value)
    assert (last >= 0).all()
    content = save_edit(pipeline.info, session, LIMITS, "png", 0, len(value["steps"]) - 1)[2]
    kept = np.ones((4, 4), dtype=bool)
    kept.reshape(-1)[painted] = False
    kept = kept.repeat(4, 0).repeat(4, 1)
    assert (np.asarray(Image.open(io.BytesIO(content)))[kept] == np.asarray(noise)[kept]).all()
    assert read_settings(io.BytesIO(content))["refine_rounds"] == 2
    assert len(frames(value, 1)) == len(value["steps"])


def test_programs_ask_for_rounds_or_get_the_cards(client, pipeline):
    ask = {"class_id": "bird", "style": "ink", "steps": 4, "guidance_scale": 1.0, "seed": 5, "api_name": "/generate"}
    expected = {
        rounds: np.asarray(
            pipeline.generate(**replace(BIRDS, num_images=1, steps=4, seed=5, refine_rounds=rounds).arguments())[0]
        )
        for rounds in (0, 2, 3)
    }
    assert (expected[0] != expected[3]).any()
    for asked, rounds in (({}, 2), ({"refine_rounds": 0}, 0), ({"refine_rounds": 3}, 3)):
        [drawn] = client.predict(**ask, **asked)
        assert np.array_equal(np.asarray(Image.open(drawn["image"]).convert("RGB")), expected[rounds])
        assert read_settings(drawn["image"])["refine_rounds"] == rounds
    with pytest.raises(Exception, match="Second looks must be a whole number from 0 to 8, not 99"):
        client.predict(**ask, refine_rounds=99)


def test_programs_see_what_is_taken_back_at_every_step(client):
    job = client.submit(class_id="bird", steps=4, refine_rounds=1, api_name="/generate_steps")
    job.result(timeout=30)
    records = job.outputs()
    assert [one["index"] for one in records] == list(range(8)) and {one["total"] for one in records} == {8}
    assert [one["round"] for one in records] == [0] * 4 + [1] * 4
    assert [len(one["taken_back"][0]) for one in records] == [0] * 4 + [6] + [0] * 3


def test_edits_of_programs_have_rounds_too(client, noise, tmp_path):
    noise.save(tmp_path / "in.png")
    ask = {"image": handle_file(str(tmp_path / "in.png")), "mode": "variation", "strength": 0.8, "api_name": "/edit"}
    rounds = [
        read_settings(client.predict(**ask, **asked)[0]["image"])["refine_rounds"]
        for asked in ({}, {"refine_rounds": 1})
    ]
    assert rounds == [2, 1]


def test_every_endpoint_names_and_explains_the_rounds(client):
    endpoints = client.view_api(return_format="dict")["named_endpoints"]
    for name in ("/generate", "/generate_steps", "/edit", "/text", "/text_steps"):
        [found] = [one for one in endpoints[name]["parameters"] if one["parameter_name"] == "refine_rounds"]
        assert found["parameter_has_default"] and found["python_type"]["type"] == "int"
        assert "second looks" in found["label"]


def written(texts, **form):
    return [value for value, _, _ in run_text(texts, LIMITS, {"prompt": "lantern (noun): ", "seed": 4, **form}, None)]


def test_texts_are_looked_at_again_as_their_card_recommends(texts):
    info = texts.info("fake-pgm")
    assert (text_defaults(info).refine_rounds, usual_text(info)) == (2, "Balanced")
    assert text_preset_values(info, "Draft")[3] == 0 and text_preset_values(info, "Balanced")[3] == 2
    values = written(texts, num_texts=2)
    sides = [value["sides"][0] for value in values]
    assert {(side["total"], side["later"]) for side in sides} == {(6 + 2 * 4, 8)}
    assert "6 steps · 14 tokens" not in values[-1]["summary"]
    assert "6 steps ·" in values[-1]["summary"] and "2 second looks" in values[-1]["summary"]
    steps = sides[-1]["steps"]
    assert [step["round"] for step in steps] == [0] * 6 + [1] * 4 + [2] * 4 and values[-1]["done"]
    whole = [sides[-1]["cells"]] * 2
    assert steps[5]["known"] == steps[9]["known"] == steps[13]["known"] == whole
    assert all(known < cells for known, cells in zip(steps[6]["known"], whole, strict=True))
    assert "____" in steps[6]["texts"][0] and "____" not in steps[13]["texts"][0]


def test_what_the_browser_puts_together_of_a_second_look_is_the_text(texts):
    pipeline = texts.pipeline("fake-pgm")
    (side,) = written(texts, prompt="____ (noun): a ____ thing", blank_tokens=4, refine_rounds=3)[-1]["sides"]
    given = {cell for cell, _ in side["given"]}
    known, held = set(given), dict(map(tuple, side["given"]))
    settings = {key: side["settings"][key] for key in ("steps", "seed", "blank_tokens", "refine_rounds", "length")}
    steps = list(pipeline.generate_steps("____ (noun): a ____ thing", **settings))
    for record, step in zip(side["steps"], steps, strict=True):
        known = known - set(record["taken_back"][0]) | set(record["filled"][0])
        held |= dict(map(tuple, record["pieces"][0]))
        assert known == set(step.known[0].nonzero().flatten().tolist())
        assert {cell for cell, piece in held.items() if piece} <= known, "a token taken back shows nothing"
        assert not given & set(record["taken_back"][0]) and not given & set(record["filled"][0])
    assert any(record["taken_back"][0] for record in side["steps"])
    assert side["steps"][-1]["texts"] == pipeline.decode(steps[-1].codes)


def test_texts_side_by_side_have_no_second_looks_and_remix_leaves_the_control_alone(texts):
    value = written(texts, mode=COMPARE, refine_rounds=3)[-1]
    assert value["done"] and {(len(side["steps"]), side["later"]) for side in value["sides"]} == {(6, 0)}
    found = dict(zip(FIELDS, reuse_text(value, "settings", 0, 0), strict=True))
    assert isinstance(found["refine_rounds"], dict)
    alone = written(texts, refine_rounds=1)[-1]
    assert dict(zip(FIELDS, reuse_text(alone, "settings", 0, 0), strict=True))["refine_rounds"] == 1


def test_a_json_of_texts_holds_what_was_taken_back(texts):
    (model,) = report(written(texts, refine_rounds=1)[-1])["models"]
    assert [step["second_look"] for step in model["steps"]] == [0] * 6 + [1] * 4
    assert [bool(step["tokens_taken_back"][0]) for step in model["steps"]] == [False] * 6 + [True] + [False] * 3
    assert model["settings"]["refine_rounds"] == 1


def test_programs_write_with_rounds(client, texts):
    pipeline = texts.pipeline("fake-pgm")
    for asked, rounds in (({}, 2), ({"refine_rounds": 0}, 0), ({"refine_rounds": 1}, 1)):
        answer = client.predict(prompt="lantern (noun): ", seed=7, api_name="/text", **asked)
        assert answer["settings"]["refine_rounds"] == rounds
        assert answer["texts"] == pipeline.generate("lantern (noun): ", seed=7, refine_rounds=rounds)
    job = client.submit(prompt="lantern (noun): ", seed=7, refine_rounds=1, api_name="/text_steps")
    assert job.result(timeout=30)["texts"] == pipeline.generate("lantern (noun): ", seed=7, refine_rounds=1)
    assert [one["round"] for one in job.outputs()] == [0] * 6 + [1] * 4
