"""Uploads of every kind become upright RGB or one sentence."""

import io
import resource
import struct
import time
import zlib

import numpy as np
import pytest
from PIL import Image

from tokenizer.image_files import open_picture, to_rgb
from tokenizer.vqgan import square


def corner_picture() -> Image.Image:
    """24 x 16, white, the top left corner red."""
    picture = Image.new("RGB", (24, 16), "white")
    picture.paste((255, 0, 0), (0, 0, 8, 4))
    return picture


def file_bytes(picture: Image.Image, form: str, **options) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


STORED = {  # EXIF orientation -> how the upright picture lies in the file
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


@pytest.mark.parametrize("orientation", STORED)
def test_every_exif_orientation_gives_the_same_reconstruction(orientation, model):
    upright, turn = corner_picture(), STORED[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = upright if turn is None else upright.transpose(turn)
    data = file_bytes(stored, "PNG", exif=exif)
    opened = open_picture(data)
    assert opened.size == (24, 16)
    expected = np.array(model.reconstruct(upright))
    assert np.array_equal(np.array(model.reconstruct(opened)), expected)
    assert np.array_equal(np.array(model.reconstruct(Image.open(io.BytesIO(data)))), expected)
    assert np.array_equal(np.array(square(Image.open(io.BytesIO(data)), 8)), np.array(square(upright, 8)))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "I", "I;16", "F"])
def test_every_mode_becomes_rgb_of_the_same_grey(mode):
    grey = Image.new("L", (5, 4), 255 if mode == "1" else 100)
    if mode == "I;16":
        picture = Image.fromarray(np.full((4, 5), 100 * 257, np.uint16))
    elif mode in ("PA", "HSV"):
        picture = grey.convert("RGBA" if mode == "PA" else "RGB").convert(mode)
    else:
        picture = grey.convert(mode)
    assert picture.mode == mode
    rgb = to_rgb(picture)
    assert rgb.mode == "RGB" and rgb.size == (5, 4)
    assert np.abs(np.array(rgb).astype(int) - grey.getpixel((0, 0))).max() <= 1


@pytest.mark.parametrize(
    "form, mode",
    [
        ("PNG", "1"),
        ("PNG", "LA"),
        ("PNG", "P"),
        ("PNG", "I;16"),
        ("JPEG", "L"),
        ("JPEG", "CMYK"),
        ("WEBP", "RGBA"),
        ("GIF", "P"),
        ("BMP", "RGB"),
        ("TIFF", "F"),
        ("TIFF", "I"),
        ("TIFF", "CMYK"),
        ("PPM", "RGB"),
    ],
)
def test_every_format_opens(form, mode):
    picture = Image.new("I;16", (9, 7), 9000) if mode == "I;16" else Image.new("L", (9, 7), 90).convert(mode)
    opened = open_picture(file_bytes(picture, form))
    assert opened.mode == "RGB" and opened.size == (9, 7)


def test_float_pictures_may_run_from_0_to_1():
    assert to_rgb(Image.fromarray(np.full((2, 2), 0.5, np.float32))).getpixel((0, 0)) == (128,) * 3
    assert to_rgb(Image.fromarray(np.full((2, 2), np.nan, np.float32))).getpixel((0, 0)) == (0,) * 3


def test_transparent_areas_become_white_and_not_what_hides_beneath():
    hidden = Image.new("RGBA", (4, 4), (255, 0, 0, 0))
    assert open_picture(file_bytes(hidden, "PNG")).getpixel((0, 0)) == (255, 255, 255)
    half = Image.new("RGBA", (4, 4), (0, 0, 0, 128))
    assert to_rgb(half).getpixel((0, 0)) == (127, 127, 127)
    palette = Image.new("P", (4, 4), 1)
    palette.putpalette([9, 9, 9, 200, 0, 0])
    assert open_picture(file_bytes(palette, "PNG", transparency=1)).getpixel((0, 0)) == (255, 255, 255)


def test_the_first_frame_of_an_animation_is_taken():
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    data = file_bytes(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert open_picture(data).getpixel((0, 0)) == (255, 0, 0)


def bomb(width: int, height: int) -> bytes:
    """A PNG header that promises width x height pixels, with next to nothing behind it."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [9_000, 30_000])
def test_a_decompression_bomb_is_refused_from_its_header(side):
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    with pytest.raises(ValueError, match="pixels"):
        open_picture(bomb(side, side))
    assert time.perf_counter() - began < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


@pytest.mark.parametrize(
    "data, says",
    [
        (b"", "empty"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG"),
        (b"\n <!DOCTYPE html><html></html>", "HTML"),
        (b"just some text", "not a picture"),
        (b"\x89PNG\r\n\x1a\n", ""),
        (file_bytes(corner_picture(), "PNG")[:60], ""),
        (file_bytes(corner_picture().resize((300, 300)), "JPEG")[:900], "truncated"),
        (file_bytes(corner_picture(), "GIF")[:20], ""),
        (file_bytes(corner_picture(), "WEBP")[:40], ""),
        (file_bytes(corner_picture(), "TIFF")[:80], ""),
    ],
)
def test_what_is_no_picture_gets_one_sentence(data, says):
    with pytest.raises(ValueError, match=says) as caught:
        open_picture(data)
    assert "\n" not in str(caught.value)


def test_files_are_named_in_the_sentence_without_their_folder(tmp_path):
    path = tmp_path / "holiday.png"
    with pytest.raises(ValueError, match="'holiday.png' cannot be read") as caught:
        open_picture(path)
    assert str(tmp_path) not in str(caught.value)
    path.write_text("no picture")
    with pytest.raises(ValueError, match="'holiday.png' is not a picture"):
        open_picture(path)


def test_broken_exif_does_not_cost_the_picture():
    data = file_bytes(corner_picture(), "PNG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    assert open_picture(data).size == (24, 16)
