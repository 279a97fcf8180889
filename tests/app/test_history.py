"""Settings that come in from outside, and files of past pictures; without a browser."""

import base64
import io
import os
import stat
import zipfile
from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import pytest
from PIL import Image

from app import downloads
from app.downloads import save
from app.history import BROKEN, MAX_PICTURES, past_files, told
from app.image_form import bring, brought, defaults
from app.image_tab import taken
from app.limits import Limits
from app.models import Models
from app.reveal import reveal
from app.settings import Settings
from pgm_image.metadata import read_settings

LIMITS = Limits()
FOX = Settings("fake", "fox", "Ink", 1, "random", 5, 1.5, 3, 0.9, 20, "linear", True, 77)


@pytest.fixture
def models(pipeline):
    return Models({"fake": pipeline})


@pytest.fixture
def value(pipeline):
    *_, last = reveal(pipeline, Settings("fake", "red apple", "Ink", num_images=2, steps=3, seed=7))
    return last


def past(value, picture=0):
    return {"settings": value["pictures"][picture], "picture": value["steps"][-1]["previews"][picture]}


@pytest.mark.parametrize("settings", [FOX, Settings("fake", None), Settings("fake", "red apple", guidance_scale=0.0)])
def test_a_link_brings_back_exactly_its_settings(models, settings):
    assert brought(models, LIMITS, dict(parse_qsl(settings.query()))) == settings


def test_every_picture_of_a_run_has_a_link_to_itself_alone(models, value):
    again = brought(models, LIMITS, dict(parse_qsl(value["links"][1])))
    assert (again.class_id, again.seed, again.num_images) == ("red apple", 8, 1)


def test_what_a_link_leaves_out_is_as_the_model_recommends(models, pipeline):
    settings = brought(models, LIMITS, {"class_id": "owl", "utm_source": "mail"})
    assert settings == Settings("fake", "owl", steps=16, guidance_scale=2.0)
    assert settings.steps == defaults(pipeline.info).steps


def test_a_picture_that_is_silent_on_the_encoders_refresh_is_older_than_it_and_a_link_leaves_it_to_the_card(
    pipeline, value
):
    pipeline.info = replace(pipeline.info, recommended={**pipeline.info.recommended, "encoder_refresh": 4})
    models = Models({"fake": pipeline})
    old = {name: held for name, held in value["pictures"][0].items() if name != "encoder_refresh"}
    assert brought(models, LIMITS, old).encoder_refresh == 1
    assert brought(models, LIMITS, {**old, "encoder_refresh": 2}).encoder_refresh == 2
    assert brought(models, LIMITS, {**old, "encoder_refresh": 4}).encoder_refresh is None
    assert brought(models, LIMITS, dict(parse_qsl(Settings("fake", "fox").query()))).encoder_refresh is None


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"model": "../x"}, "model must be one of fake"),
        ({"class_id": "no such thing"}, "has no class and style called no such thing"),
        ({"style": "Oil"}, "has no class and style called Oil"),
        ({"seed": "-4"}, "Seed must be"),
        ({"seed": "1e99"}, "Seed must be"),
        ({"steps": "1000"}, "Steps must be a whole number from 1 to 256"),
        ({"steps": "<b>"}, "Steps must be"),
        ({"guidance_scale": "nan"}, "Guidance must be"),
        ({"sampler": "spiral"}, "Sampler must be one of"),
        ({"roll": "perhaps"}, "Order roll must be true or false"),
        ({"top_k": "-1"}, "Top-k must be"),
    ],
)
def test_a_bad_link_is_told_in_one_sentence(models, link, words):
    with pytest.raises(ValueError, match=words) as fault:
        bring(models, LIMITS, link)
    told_to_visitor = told(fault.value)["fault"]
    assert told_to_visitor[0].isupper() and told_to_visitor.endswith(".")


def test_a_past_picture_becomes_the_png_the_run_itself_would_have_saved(value):
    name, media, content = past_files([past(value, 1)])
    assert (name, media) == ("red-apple-ink-seed8.png", "image/png")
    assert content == save(value, "png", 1, 2)[2]


def test_all_past_pictures_come_in_one_zip_under_names_of_their_own(value):
    name, _, content = past_files([past(value), past(value, 1), past(value)])
    files = zipfile.ZipFile(io.BytesIO(content))
    assert name == "pictures.zip"
    assert files.namelist() == ["red-apple-ink-seed7.png", "red-apple-ink-seed8.png", "red-apple-ink-seed7+.png"]
    assert read_settings(io.BytesIO(files.read("red-apple-ink-seed8.png")))["seed"] == 8


def test_a_past_picture_that_was_tampered_with_is_refused(value):
    good = past(value)
    huge = io.BytesIO()
    Image.new("L", (4000, 4000)).save(huge, "png")
    bad = [
        {},
        {**good, "picture": "data:image/png;base64,!!!"},
        {**good, "picture": "data:image/png;base64," + base64.b64encode(b"<svg/>").decode()},
        {**good, "picture": "data:image/png;base64," + base64.b64encode(huge.getvalue()).decode()},
        {**good, "settings": None},
        {**good, "picture": 7},
    ]
    for one in bad:
        with pytest.raises(ValueError, match=BROKEN.rstrip(".")):
            past_files([one])
    for many in ([], [good] * (MAX_PICTURES + 1)):
        with pytest.raises(ValueError, match="can be saved together"):
            past_files(many)


def test_an_uploaded_file_is_gone_once_it_is_read(tmp_path):
    file = tmp_path / "one.png"
    file.write_bytes(b"content")
    assert taken(str(file)) == b"content" and not file.exists()
    assert taken(None) == b""


def test_an_mp4_is_offered_and_made_only_where_ffmpeg_exists(value, monkeypatch):
    monkeypatch.setattr(downloads.shutil, "which", lambda name: None)
    assert not downloads.has_movies()
    with pytest.raises(ValueError, match="needs an ffmpeg program"):
        save(value, "mp4", 0, 0)


def test_ffmpeg_is_given_every_frame_and_a_rest_at_the_end(value, tmp_path, monkeypatch):
    program = tmp_path / "ffmpeg"
    program.write_text(
        '#!/bin/sh\nfor last; do :; done\necho "$@" > "$last.txt"\ncat > "$last"\ncat "$last.txt" >> "$last"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    name, media, content = save(value, "mp4", 0, 0)
    assert (name, media) == ("red-apple-ink-seed7-reveal.mp4", "video/mp4")
    frames = downloads.frames(value, 0)
    raw = np.frombuffer(content[: 3 * 384 * 384 * 3], np.uint8).reshape(3, 384, 384, 3)
    assert all(np.array_equal(one, np.asarray(frame)) for one, frame in zip(raw, frames, strict=True))
    assert b"-s 384x384 -r 1000/250" in content[-400:] and len(content) > 8 * 384 * 384 * 3
