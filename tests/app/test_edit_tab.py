"""The functions behind the edit tab and the endpoint `/edit`, called without a browser."""

import io
import json
import struct
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gradio_client import Client, handle_file
from PIL import Image

from app.downloads import frames
from app.edit_form import NO_PAINT, NO_PICTURE, open_source, task_of
from app.edit_reveal import save_edit
from app.edit_tab import edit_result, image_result, masked, run, shown
from app.image_form import defaults
from app.image_tab import run as run_image
from app.limits import Limits
from app.models import Models
from app.reveal import decoded, picture_at
from app.settings import Settings
from pgm_image.frame import Frame
from pgm_image.metadata import read_settings

LIMITS = Limits()
FORM = {"model": "fake", "class_id": "fox", "style": "Ink", "steps": 5, "seed": 9}


@pytest.fixture
def models(pipeline):
    return Models({"fake": pipeline})


def picture(width=96, height=40, mode="RGB") -> Image.Image:
    values = np.random.default_rng(width).integers(0, 256, (height, width, len(mode)))
    return Image.fromarray(values.astype(np.uint8))


def file_of(image: Image.Image, form="png", **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def last(models, content, painted, **form):
    *_, (value, session, _) = run(models, LIMITS, content, painted, {**FORM, **form})
    return value, session


PAINTED = {"cells": [100, 101, 116, 117, 130]}


def test_a_run_yields_the_value_and_keeps_what_files_are_made_from(models):
    rows = list(run(models, LIMITS, file_of(picture()), PAINTED, FORM))
    assert [len(value["steps"]) for value, _, _ in rows] == [0, 1, 2, 3, 4, 5]
    assert rows[0][2] == 9 and all(len(session["squares"]) == len(value["steps"]) for value, session, _ in rows)
    value = json.loads(json.dumps(rows[-1][0]))
    assert value["done"] and value["total"] == 5 and value["title"] == "Repaint · fox · Ink"
    filled = sorted(cell for step in value["steps"] for cell in step["filled"][0])
    assert filled == PAINTED["cells"]
    assert sorted(filled + value["given"]["cells"][0]) == list(range(256))


def test_the_page_changes_in_painted_cells_only_at_every_step(models):
    slope = Image.linear_gradient("L").resize((400, 400)).convert("RGB")
    value, _ = last(models, file_of(slope), PAINTED)
    before, side = np.asarray(decoded(value["before"])), value["size"][0]
    assert side == 448  # seven times the model's 64
    cells = np.zeros(256, dtype=bool)
    cells[PAINTED["cells"]] = True
    mask = Frame(side, side, 64, (16, 16)).pixels(cells.reshape(16, 16))
    final = np.asarray(picture_at(value, 4, 0))
    assert (final != before)[mask].any()
    loss = np.abs(final.astype(int) - before.astype(int))[~mask]  # the preview of the original is lossy
    assert loss.max() <= 8


@pytest.mark.parametrize("size", [(64, 64), (96, 40), (301, 700), (3, 2), (1, 1)])
def test_a_saved_picture_is_as_large_as_the_upload_and_differs_in_touched_cells_only(models, pipeline, size):
    source = picture(*size)
    cells = list(range(96, 160)) if min(size) > 1 else list(range(256))
    value, session = last(models, file_of(source), {"cells": cells}, num_images=2)
    name, kind, content = save_edit(pipeline.info, session, LIMITS, "png", 1, 4)
    saved = Image.open(io.BytesIO(content))
    assert (name, kind, saved.size) == ("edited-fox-ink-seed10.png", "image/png", size)
    grid = np.zeros(256, dtype=bool)
    grid[cells] = True
    kept = ~Frame(*size, 64, (16, 16)).pixels(grid.reshape(16, 16))
    assert (np.asarray(saved)[kept] == np.asarray(source)[kept]).all()
    settings = read_settings(saved)
    assert settings["seed"] == 10 and settings["edit"]["kind"] == "repaint"
    _, _, content = save_edit(pipeline.info, session, LIMITS, "zip", 0, 4)
    assert sorted(zipfile.ZipFile(io.BytesIO(content)).namelist()) == [
        "edited-fox-ink-seed10.png",
        "edited-fox-ink-seed9.png",
    ]
    assert len(frames(value, 1)) == 5


def test_frames_of_a_reveal_show_what_was_given_from_the_start(models):
    value, _ = last(models, file_of(picture(64, 64)), PAINTED)
    first = np.asarray(frames(value, 0)[0].resize((64, 64), Image.NEAREST))
    assert (first[:24, :] == np.asarray(picture(64, 64))[:24, :]).all()


def test_a_class_swap_keeps_what_is_painted(models):
    value, _ = last(models, file_of(picture(64, 64)), PAINTED, mode="swap")
    assert value["given"]["cells"][0] == PAINTED["cells"]


def test_painting_all_that_shows_is_a_plain_generation(models, pipeline):
    value, _ = last(models, file_of(picture(96, 40)), {"cells": list(range(64, 192))}, composite=False)
    assert value["given"]["cells"] == [[]]
    made = picture_at(value, len(value["steps"]) - 1, 0)
    plain = pipeline.pictures("fox", style="Ink", steps=5, seed=9)[0]
    assert (np.asarray(made) == np.asarray(plain)).all()


def test_what_the_form_leaves_out_is_recommended_for_edits(pipeline):
    pipeline.info = replace(
        pipeline.info, editing={"guidance_scale": 0.25, "temperature": 0.75, "temperature_anneal": 3}
    )
    task = task_of(Models({"fake": pipeline}), LIMITS, file_of(picture()), PAINTED, {"model": "fake"})
    assert (task.settings.guidance_scale, task.settings.temperature) == (0.25, 0.75)
    sampling = task.edit(pipeline.info, LIMITS).request.sampling
    assert (sampling.guidance_scale, sampling.temperature, sampling.temperature_anneal) == (0.25, 0.75, 3)
    assert defaults(pipeline.info).temperature == pipeline.info.recommended["temperature"]


def test_variations_differ_between_results_and_need_no_paint(models):
    value, _ = last(models, file_of(picture(64, 64)), {}, mode="variation", strength=0.25, num_images=2)
    given = value["given"]["cells"]
    assert [len(cells) for cells in given] == [192, 192] and given[0] != given[1]


def test_outpainting_shows_the_moved_picture_and_what_it_was_before(models):
    value, session = last(models, file_of(picture(64, 64)), {}, mode="outpaint", right=0.5)
    assert all(cell % 16 >= 8 for cell in value["given"]["cells"][0]) and len(value["given"]["cells"][0]) == 128
    before, start = (np.asarray(decoded(value[name])) for name in ("before", "start"))
    assert (start[:, 32:] == before[:, :32]).all()


@pytest.mark.parametrize(
    ("content", "painted", "form", "words"),
    [
        (None, PAINTED, {}, NO_PICTURE),
        (b"", PAINTED, {}, NO_PICTURE),
        ("good", {}, {}, NO_PAINT["repaint"]),
        ("good", {"cells": []}, {"mode": "swap"}, NO_PAINT["swap"]),
        ("good", {"cells": [256]}, {}, "Cells must be numbers in 0..255, got 256."),
        ("good", {"cells": ["1"]}, {}, "Cells must be numbers in 0..255, got '1'."),
        ("good", {"cells": "100"}, {}, NO_PAINT["repaint"]),
        ("good", PAINTED, {"class_id": "no such"}, "no label named 'no such'"),
        ("good", PAINTED, {"mode": "../x"}, "Mode must be one of repaint, outpaint, variation, swap, not ../x."),
        ("good", PAINTED, {"fit": "x"}, "Fit must be one of whole, crop, not x."),
        ("good", PAINTED, {"num_images": 1000}, "How many must be"),
        ("good", PAINTED, {"model": "/etc"}, "model must be one of fake"),
        ("good", {}, {"mode": "variation", "strength": 2}, "Strength must be a number from 0 to 1, not 2."),
        ("good", {}, {"mode": "outpaint", "right": float("nan")}, "Shift to the right must be a number"),
        (b"<html>", PAINTED, {}, "SVG, HTML or XML"),
    ],
)
def test_a_bad_value_shows_one_sentence_and_the_next_run_works(models, pipeline, content, painted, form, words):
    content = file_of(picture()) if content == "good" else content
    rows = list(run(models, LIMITS, content, painted, {**FORM, **form}))
    assert len(rows) == 1 and words.lower() in rows[0][0]["error"].lower()
    assert rows[0][0]["error"].endswith((".", "?")) and pipeline.running == 0
    assert last(models, file_of(picture()), PAINTED)[0]["done"]


def test_closing_the_handler_ends_the_work(models, pipeline):
    rows = run(models, LIMITS, file_of(picture()), {"cells": list(range(100, 150))}, {**FORM, "steps": 16})
    for _ in range(4):
        next(rows)
    rows.close()
    assert (pipeline.closed, pipeline.running, pipeline.steps_run) == (1, 0, 3)


def bomb() -> bytes:
    """A PNG of 30000 x 30000 pixels in a few hundred bytes of header and nothing else."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 30000, 30000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    )


def rotated() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return file_of(picture(60, 40), "jpeg", exif=exif)


def animated() -> bytes:
    return file_of(picture(50, 50), "gif", save_all=True, append_images=[picture(50, 50), Image.new("RGB", (50, 50))])


UPLOADS = {
    "rotated by EXIF": (rotated, (40, 60)),
    "grey": (lambda: file_of(picture().convert("L")), (96, 40)),
    "palette": (lambda: file_of(picture().convert("P")), (96, 40)),
    "CMYK": (lambda: file_of(picture().convert("CMYK"), "jpeg"), (96, 40)),
    "16-bit": (lambda: file_of(Image.fromarray(np.full((40, 96), 40000, np.uint16))), (96, 40)),
    "transparent": (lambda: file_of(picture(96, 40, "RGBA")), (96, 40)),
    "black and white": (lambda: file_of(picture().convert("1")), (96, 40)),
    "animated": (animated, (50, 50)),
    "1x1": (lambda: file_of(picture(1, 1)), (1, 1)),
    "a thin line": (lambda: file_of(picture(2000, 2)), (2000, 2)),
    "WebP": (lambda: file_of(picture(), "webp"), (96, 40)),
    "TIFF": (lambda: file_of(picture(), "tiff"), (96, 40)),
    "truncated": (lambda: file_of(picture(200, 200), "jpeg")[:900], "damaged or truncated"),
    "HTML": (lambda: b"<!doctype html><p>not found", "SVG, HTML or XML"),
    "text": (lambda: b"hello there", "not a picture"),
    "a bomb": (bomb, "larger than 40000000 pixels"),
    "empty": (lambda: b"", NO_PICTURE[:20]),
}


@pytest.mark.parametrize("kind", UPLOADS)
def test_any_upload_gives_a_picture_to_paint_on_or_one_sentence(models, pipeline, kind):
    make, expected = UPLOADS[kind]
    value, source = shown(models, LIMITS, "fake", "whole", make())
    if isinstance(expected, str):
        assert expected in value["error"] and value["error"].endswith(".") and value["error"].count("\n") == 0
        assert not isinstance(source, bytes)
        return
    assert source == make() and open_source(source, LIMITS).size == expected
    assert value["size"][0] == value["size"][1] and value["size"][0] % 64 == 0
    assert decoded(value["picture"]).size == tuple(value["size"])
    assert last(models, source, {"cells": list(range(256))}, steps=2)[0]["done"]


def test_the_limit_of_pixels_can_be_set(models):
    value, _ = shown(models, replace(LIMITS, max_pixels=1000), "fake", "whole", file_of(picture()))
    assert "96 x 40 pixels" in value["error"]


def test_a_mask_file_paints_the_cells_it_touches(models):
    mask = Image.new("L", (64, 64))
    mask.paste(255, (20, 8, 33, 9))
    content = file_of(picture(64, 64))
    assert masked(models, LIMITS, "fake", "whole", content, file_of(mask))["cells"] == [37, 38, 39, 40]
    fault = masked(models, LIMITS, "fake", "whole", content, file_of(Image.new("L", (64, 30))))
    assert fault["error"].startswith("Mask must have the picture's size 64 x 64")
    assert masked(models, LIMITS, "fake", "whole", None, file_of(mask))["error"] == NO_PICTURE


def test_the_picture_on_the_image_tabs_stage_can_be_taken(models, pipeline):
    *_, (value, _, _) = run_image(models, LIMITS, Settings("fake", "owl", num_images=2, steps=3, seed=4), False)
    taken = Image.open(io.BytesIO(image_result(value, {"picture": 1, "step": 2})))
    assert np.array_equal(np.asarray(taken), np.asarray(pipeline.pictures("owl", steps=3, seed=5)[0]))
    first = image_result(value, {"picture": 1, "step": 0})
    assert first != image_result(value, {"picture": 1, "step": 2}) == image_result(value, {"picture": 1, "step": 99})
    assert image_result(value, {"picture": 7, "step": 0}) is None and image_result(None, None) is None


def test_a_result_can_be_edited_again_at_its_own_size(models):
    value, session = last(models, file_of(picture(301, 200)), PAINTED, num_images=2)
    again = edit_result(models, LIMITS, session, 1)
    assert Image.open(io.BytesIO(again)).size == (301, 200)
    assert last(models, again, PAINTED)[0]["done"]


def test_tasks_take_what_the_card_recommends_for_blanks(models):
    task = task_of(models, LIMITS, file_of(picture()), PAINTED, {"class_id": "", "steps": None})
    assert (task.settings.class_id, task.settings.steps, task.settings.guidance_scale) == (None, 16, 2.0)


def test_the_endpoint_edits_over_http(served, tmp_path):
    source, mask = picture(96, 40), Image.new("L", (96, 40))
    mask.paste(255, (60, 0, 96, 40))
    source.save(tmp_path / "in.png")
    mask.save(tmp_path / "mask.png")
    client = Client(served.url, verbose=False, download_files=True)
    values = [
        handle_file(str(tmp_path / "in.png")), handle_file(str(tmp_path / "mask.png")), "owl", "", "repaint", 0.5, 0, 0,
        1, False, 2, 4, None, 5, "whole", True, "",
    ]  # fmt: skip
    files = [Path(item["image"]) for item in client.predict(*values, api_name="/edit")]
    assert [read_settings(file)["seed"] for file in files] == [5, 6]
    made = np.asarray(Image.open(files[0]).convert("RGB"))
    assert made.shape == (40, 96, 3) and (made[:, :60] == np.asarray(source)[:, :60]).all()
    assert (made[:, 60:] != np.asarray(source)[:, 60:]).any()
    values[2] = "no such"
    with pytest.raises(Exception, match="no such"):
        client.predict(*values, api_name="/edit")
