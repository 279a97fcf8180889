"""The functions behind the image tab, called without a browser."""

import io
from dataclasses import replace

import pytest

from app.downloads import save
from app.image_form import (
    RESTORE_ERROR,
    class_choices,
    defaults,
    form_values,
    preset_values,
    restore,
    reuse,
    settings_of,
)
from app.image_tab import run
from app.limits import Limits
from app.models import Models
from app.page import build
from app.settings import Settings, checked
from pgm_image.metadata import read_settings

LIMITS = Limits()


@pytest.fixture
def models(pipeline):
    return Models({"fake": pipeline})


def outcome(models, settings, randomise=False):
    return list(run(models, LIMITS, settings, randomise))


def test_a_run_yields_the_value_twice_and_the_seed_once(models):
    rows = outcome(models, Settings("fake", "fox", steps=5, seed=9))
    assert [len(viewer["steps"]) for viewer, _, _ in rows] == [0, 1, 2, 3, 4, 5]
    assert all(viewer is session for viewer, session, _ in rows)
    assert rows[0][2] == 9


def test_a_new_seed_is_drawn_when_asked_and_told_to_the_form(models):
    seeds = {outcome(models, Settings("fake", "fox", steps=1, seed=9), True)[0][2] for _ in range(6)}
    assert len(seeds) > 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings("fake", "no such class"), "no such class"),
        (Settings("fake", "fox", seed=-1), "Seed must be"),
        (Settings("fake", "fox", num_images=1000), "How many must be"),
        (Settings("../x", "fox"), "model must be one of fake"),
        (Settings("/etc", "fox"), "model must be one of fake"),
    ],
)
def test_a_bad_value_shows_one_sentence_and_the_next_run_works(models, settings, words):
    rows = outcome(models, settings)
    assert len(rows) == 1
    assert words.lower() in rows[0][0]["error"].lower() and rows[0][0]["error"].endswith((".", "?"))
    assert outcome(models, Settings("fake", "fox", steps=2))[-1][0]["done"]


def test_out_of_memory_is_told_and_the_next_run_works(models, pipeline):
    decode = pipeline.decode

    def once(codes):
        pipeline.decode = decode
        raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")

    pipeline.decode = once
    rows = outcome(models, Settings("fake", "fox", steps=3))
    assert rows[-1][0]["error"] == "The machine ran out of memory; try fewer pictures."
    assert pipeline.running == 0
    assert outcome(models, Settings("fake", "fox", steps=3))[-1][0]["done"]


def test_closing_the_handler_ends_the_work(models, pipeline):
    rows = run(models, LIMITS, Settings("fake", "fox", steps=16), False)
    for _ in range(5):
        next(rows)
    rows.close()
    assert (pipeline.closed, pipeline.running, pipeline.steps_run) == (1, 0, 4)


def test_keeping_the_seed_changes_the_seed_alone(models):
    value = outcome(models, Settings("fake", "fox", num_images=2, steps=3, seed=50))[-1][0]
    *others, seed, randomise = reuse(value, "seed", 1)
    assert (seed, randomise) == (51, False)
    assert all(isinstance(other, dict) and other["__type__"] == "update" and len(other) == 1 for other in others)


def test_remix_brings_back_everything_but_the_seed(models):
    settings = Settings("fake", "fox", "Ink", num_images=2, steps=3, seed=50, sampler="random", top_k=5)
    value = outcome(models, settings)[-1][0]
    *others, seed, randomise = reuse(value, "settings", 1)
    assert others == ["fake", "fox", "Ink", 1, "random", 3, 0.0, 0, 1.0, 5, "arccos", False, {}]
    assert isinstance(seed, dict) and randomise is True


def test_a_saved_png_refills_the_form(models):
    settings = Settings("fake", "fox", "Ink", steps=3, seed=50, sampler="random", guidance_scale=2.5)
    value = outcome(models, settings)[-1][0]
    values = restore(models, LIMITS, save(value, "png", 0, 2)[2])
    assert settings_of(*values) == (settings_of(*form_values(settings))[0], False)
    assert values[-2] == 50


PUBLISHED = {"visible_length": "reference", "temperature_warmup": 1, "resample_known": True, "top_p": 0.9}


def test_settings_without_a_control_come_back_from_a_png_and_make_the_same_run(models):
    settings = Settings("fake", "fox", steps=3, seed=50, guidance_schedule="cosine", **PUBLISHED)
    value = outcome(models, settings)[-1][0]
    content = save(value, "png", 0, 2)[2]
    assert {key: read_settings(io.BytesIO(content))[key] for key in PUBLISHED} == PUBLISHED
    values = restore(models, LIMITS, content)
    assert checked(settings_of(*values)[0], LIMITS) == settings
    again = outcome(models, settings_of(*values)[0])[-1][0]
    assert again["pictures"] == value["pictures"] and "resample known True" in again["summary"]
    assert checked(settings_of(*reuse(value, "settings", 0)[:-2], 50, True)[0], LIMITS) == settings


def test_a_png_of_a_plain_run_brings_nothing_that_has_no_control(models):
    value = outcome(models, Settings("fake", "fox", steps=3, seed=50))[-1][0]
    assert settings_of(*restore(models, LIMITS, save(value, "png", 0, 2)[2]))[0].rare() == {}


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", None])
def test_a_file_without_settings_is_refused_in_one_sentence(models, content):
    with pytest.raises(ValueError, match=RESTORE_ERROR):
        restore(models, LIMITS, content)


def test_form_and_settings_are_each_others_inverse():
    settings = Settings("fake", None, None, 2, "raster", 9, 1.5, 3, 0.5, 0, "linear", True, 77)
    assert settings_of(*form_values(settings)) == (settings, True)


def test_the_form_starts_with_the_models_recommendation(pipeline):
    settings = defaults(pipeline.info)
    assert (settings.steps, settings.guidance_scale, settings.class_id) == (16, 2.0, "cat")


def test_the_form_starts_with_a_style_of_its_own_where_the_model_has_styles(pipeline):
    assert defaults(pipeline.info).style == pipeline.info.styles[0]
    assert defaults(replace(pipeline.info, styles=())).style is None
    page = build(pipelines={"fake": pipeline})
    started = {block.elem_id: getattr(block, "value", None) for block in page.blocks.values()}
    assert [started[f"{tab}-style"] for tab in ("image", "compare", "edit")] == [*[pipeline.info.styles[0]] * 2, ""]


def test_a_preset_sets_what_it_names_and_leaves_the_rest_as_recommended(pipeline):
    assert preset_values(pipeline.info, "Draft") == ("halton", 6, 0.0, 0, 1.0)
    assert preset_values(pipeline.info, "Best") == ("confidence", 32, 3.0, 0, 1.0)


def test_a_class_is_found_by_other_words_that_lead_to_it(pipeline):
    info = replace(pipeline.info, words={"owl": ("night bird", "Fox"), "cat": ("kitten", "night bird")})
    choices = class_choices(info)
    assert choices[0] == ("Anything", "") and ("owl", "owl") in choices
    assert [c for c in choices if ":" in c[0]] == [
        ("kitten: cat", "cat"),
        ("night bird: cat", "cat"),  # every word once
    ]


def test_another_model_or_effort_forgets_the_settings_that_came_with_a_picture(models):
    page = build(pipelines={"fake": models.pipeline("fake")})
    for name, asked in (("on_model", ("fake",)), ("on_preset", ("fake", "Draft"))):
        [event] = [
            one
            for one in page.fns.values()
            if getattr(one.fn, "__name__", "") == name and one.outputs and one.outputs[-1].get_block_name() == "state"
        ]
        answer = event.fn(*asked)
        assert len(answer) == len(event.outputs) and answer[-1] == {}
