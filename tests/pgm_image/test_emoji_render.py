"""Rendering of vendor files: white behind transparency, square, right size."""

import io

import numpy as np
import pytest
from PIL import Image

from pgm_image.emoji.render import fit_square, on_white, render
from pgm_image.emoji.sources import wrap_svg

RINGING = 16  # Lanczos overshoots a little beside an edge


def webp(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", lossless=True, exact=True)
    return buffer.getvalue()


def test_a_transparent_picture_becomes_white_whatever_colour_hides_in_it():
    image = render(webp(Image.new("RGBA", (32, 32), (255, 0, 0, 0))), 16)
    assert image.shape == (16, 16, 3)
    assert image.dtype == np.uint8
    assert (image == 255).all()


def test_half_transparent_black_on_white_is_grey():
    assert on_white(Image.new("RGBA", (2, 2), (0, 0, 0, 128))).getpixel((0, 0)) == (127, 127, 127)


def test_a_wide_picture_is_padded_above_and_below():
    image = np.asarray(fit_square(Image.new("RGB", (16, 8), "black"), 16))
    assert (image[4:12] == 0).all()
    assert (image[:4] == 255).all()
    assert (image[12:] == 255).all()


def test_a_picture_of_the_right_size_is_left_alone():
    picture = Image.new("RGB", (16, 16), "red")
    assert fit_square(picture, 16) is picture


def test_an_icon_body_is_drawn_within_its_own_view_box():
    pytest.importorskip("resvg_py", reason="drawing SVG needs resvg-py")
    icon_set = {"width": 10, "height": 10, "icons": {}}
    icon = {"left": 100, "body": '<rect x="100" y="0" width="5" height="10" fill="#00f"/>'}
    image = render(wrap_svg(icon, icon_set), 16)
    assert np.abs(image[:, :7] - np.array([0, 0, 255])).max() <= RINGING
    assert image[:, 9:].min() >= 255 - RINGING


def test_a_tall_icon_keeps_its_proportions():
    pytest.importorskip("resvg_py", reason="drawing SVG needs resvg-py")
    icon = {"width": 10, "height": 20, "body": '<rect width="10" height="20" fill="#000"/>'}
    image = render(wrap_svg(icon, {}), 16)
    assert image[:, 5:11].max() <= RINGING
    assert image[:, :3].min() >= 255 - RINGING
    assert image[:, 13:].min() >= 255 - RINGING
