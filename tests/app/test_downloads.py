"""Downloads: the pixels of the run, its settings inside, and a reveal that moves."""

import io
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from app.downloads import animation, file_name, frames, save
from app.reveal import reveal
from app.settings import RARE, Settings
from pgm_image.metadata import read_settings

RUN = Settings("fake", "red apple", "Ink", num_images=2, steps=6, seed=7, guidance_scale=1.5, top_k=20)


@pytest.fixture
def value(pipeline):
    *_, last = reveal(pipeline, RUN)
    return last


def test_a_png_has_the_pictures_pixels_and_its_own_seed(pipeline, value):
    name, media_type, content = save(value, "png", picture=1, step=5)
    picture = Image.open(io.BytesIO(content))
    assert (name, media_type, picture.format) == ("red-apple-ink-seed8.png", "image/png", "PNG")
    assert np.array_equal(np.asarray(picture), np.asarray(pipeline.pictures(**RUN.arguments())[1]))


def test_settings_in_a_png_make_the_same_picture_again(pipeline, value):
    _, _, content = save(value, "png", picture=1, step=5)
    found = read_settings(io.BytesIO(content))
    again = Settings(**{key: found[key] for key in Settings.__dataclass_fields__ if key in found})
    assert replace(again, **dict.fromkeys(RARE)) == RUN.of_picture(1)
    *_, single = reveal(pipeline, again)
    assert save(single, "png", 0, 5)[2] == content


def test_any_step_can_be_saved(value):
    name, _, content = save(value, "png", picture=0, step=2)
    assert name == "red-apple-ink-seed7-step3.png"
    assert read_settings(io.BytesIO(content))["shown_step"] == 3


@pytest.mark.parametrize("kind", ["webp", "gif"])
def test_an_animation_has_a_frame_per_step_at_a_readable_size(value, kind):
    name, media_type, content = save(value, kind, picture=0, step=0)
    moving = Image.open(io.BytesIO(content))
    assert (name, media_type) == (f"red-apple-ink-seed7-reveal.{kind}", f"image/{kind}")
    assert (moving.n_frames, moving.size, moving.info["loop"]) == (6, (384, 384), 0)


def test_frames_show_paper_then_tint_then_the_clean_picture(pipeline, value):
    shown = frames(value, 0)
    known = [len(step["filled"][0]) for step in value["steps"]]
    paper = (np.asarray(shown[0]) == (243, 241, 236)).all(-1).mean()
    assert paper == pytest.approx(1 - known[0] / 256, abs=0.01)
    clean = pipeline.pictures(**RUN.arguments())[0].resize((384, 384), Image.NEAREST)
    assert np.array_equal(np.asarray(shown[-1]), np.asarray(clean))


def test_all_pictures_come_in_one_zip(value):
    name, _, content = save(value, "zip", picture=0, step=5)
    files = zipfile.ZipFile(io.BytesIO(content))
    assert name == "red-apple-ink-seed7-all.zip"
    assert files.namelist() == ["red-apple-ink-seed7.png", "red-apple-ink-seed8.png"]
    assert files.read("red-apple-ink-seed8.png") == save(value, "png", 1, 5)[2]


def test_one_frame_is_an_animation_too(value):
    assert Image.open(io.BytesIO(animation(frames(value, 0)[:1], "gif"))).size == (384, 384)


@pytest.mark.parametrize(
    ("kind", "picture", "step"), [("exe", 0, 0), ("png", 2, 0), ("png", -1, 0), ("png", 0, 6), ("gif", 0, -1)]
)
def test_what_is_not_in_the_run_is_refused(value, kind, picture, step):
    with pytest.raises(ValueError):
        save(value, kind, picture, step)


def test_file_names_hold_nothing_but_letters_digits_and_dashes():
    assert file_name(Settings("m", "../../etc/passwd", "Ünïcode", seed=3)) == "etc-passwd-n-code-seed3"
    assert file_name(Settings("m", None)) == "any-class-seed0"
