"""Editing changes what was asked for and nothing else, at any size, in every form a mask comes in."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

import pgm_image
from pgm_image import edits
from pgm_image.__main__ import main
from pgm_image.frame import Frame
from pgm_image.masks import read_mask
from pgm_image.metadata import read_settings
from tokenizer.pixels import from_pil


def photo(width: int, height: int, mode: str = "RGB") -> Image.Image:
    """Colours that differ everywhere, so that a shift by one pixel shows."""
    values = np.random.default_rng(width * 7919 + height).integers(0, 256, (height, width, 4 if mode == "RGBA" else 3))
    return Image.fromarray(values.astype(np.uint8))


def pixels(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture)


def box(width: int, height: int, left: int, top: int, right: int, bottom: int) -> np.ndarray:
    mask = np.zeros((height, width), dtype=bool)
    mask[top:bottom, left:right] = True
    return mask


def last_codes(pipeline, task) -> torch.Tensor:
    *_, step = task.steps(pipeline)
    return step.codes


@pytest.mark.parametrize("sampler", ["halton", "confidence", "random", "raster"])
def test_kept_codes_are_the_encoders_and_the_others_are_filled(pipeline, sampler):
    picture = photo(8, 8)
    codes = pipeline.tokenizer.encode(from_pil(picture)[None]).flatten()
    steps = list(pipeline.edit_steps(picture, box(8, 8, 2, 2, 6, 6), "bird", sampler=sampler, num_images=2))
    kept = torch.ones(4, 4, dtype=torch.bool)
    kept[1:3, 1:3] = False
    for step in steps:
        assert torch.equal(step.codes[:, kept.flatten()], codes[kept.flatten()].expand(2, -1))
    assert (steps[-1].codes >= 0).all() and len(steps) == 4
    assert sum(int(step.filled[0].sum()) for step in steps) == 4


def test_a_masked_model_that_resamples_what_it_knows_leaves_kept_codes_alone(masked_pipeline):
    picture = photo(8, 8)
    codes = masked_pipeline.tokenizer.encode(from_pil(picture)[None]).flatten()
    task = edits.edit_cells(masked_pipeline.info, picture, [5, 6, 9], "bird", resample_known=True)
    kept = torch.ones(16, dtype=torch.bool)
    kept[[5, 6, 9]] = False
    assert torch.equal(last_codes(masked_pipeline, task)[0, kept], codes[kept])


SIZES = [(8, 8), (64, 64), (960, 384), (257, 131), (16, 400), (3, 5), (1, 1)]


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("fit", ["whole", "crop"])
@pytest.mark.parametrize("size", SIZES)
def test_pixels_outside_the_touched_cells_are_byte_identical(pipeline, size, fit, mode):
    width, height = size
    picture = photo(width, height, mode)
    edge = min(size)  # within the central square, which both fits show
    mask = box(width, height, width // 2, height // 2, width // 2 + 1 + edge // 6, height // 2 + 1 + edge // 9)
    result = pipeline.edit(picture, mask, "bird", fit=fit, temperature=3.0)[0]
    assert result.size == picture.size and result.mode == mode
    frame = Frame(width, height, 8, (4, 4), fit)
    changed = frame.pixels(frame.touched(mask))
    assert (pixels(result)[~changed] == pixels(picture)[~changed]).all()
    assert (changed | ~mask).all(), "every painted pixel is in a touched cell"
    if mode == "RGBA":
        assert (pixels(result)[changed][:, 3] == 255).all()


def test_on_a_wide_picture_only_the_painted_third_changes(pipeline):
    picture = photo(960, 384)
    mask = box(960, 384, 640, 0, 960, 384)
    result = pixels(pipeline.edit(picture, mask, "bird")[0])
    where = np.nonzero((result != pixels(picture)).any((0, 2)))[0]
    assert where.min() >= 480 and where.max() == 959  # whole cells: columns of 240 pixels
    assert (result[:, :480] == pixels(picture)[:, :480]).all()


def test_every_pixel_belongs_to_the_cell_below_its_centre():
    frame = Frame(960, 384, 64, (16, 16))
    cells = np.zeros((16, 16), dtype=bool)
    cells[5, 3] = True
    rows, columns = np.nonzero(frame.pixels(cells))
    # 960 pixels on 64: cells of 60 pixels; 26 of 64 rows, from the 19th on, hold 384 pixels.
    assert (columns.min(), columns.max()) == (180, 239)
    top, bottom = ((place - 19) * 384 / 26 for place in (20, 24))
    assert abs(rows.min() - top) <= 0.5 and abs(rows.max() + 1 - bottom) <= 0.5
    owners = sum(frame.pixels(np.eye(256, dtype=bool)[k].reshape(16, 16)).astype(int) for k in range(256))
    assert (owners == 1).all()


@pytest.mark.parametrize("size", [(64, 64), (960, 384), (40, 200)])
def test_a_single_painted_pixel_touches_the_cell_it_lies_in(size):
    frame = Frame(*size, 64, (16, 16))
    for x, y in ((0, 0), (size[0] - 1, size[1] - 1), (size[0] // 3, size[1] // 2)):
        mask = box(*size, x, y, x + 1, y + 1)
        cells = frame.touched(mask)
        assert cells.sum() == 1 and frame.pixels(cells)[y, x]


def test_mask_forms_agree():
    painted = box(96, 40, 30, 10, 70, 33)
    grey = Image.fromarray(painted.astype(np.uint8) * 255)
    layer = Image.new("RGBA", (96, 40))
    layer.paste((10, 0, 200, 255), mask=grey)
    file = io.BytesIO()
    layer.save(file, "png")
    palette = Image.fromarray(painted.astype(np.uint8), "P")
    palette.putpalette([0, 0, 0, 255, 255, 255])
    opaque = grey.convert("RGBA")
    forms = [
        painted, torch.from_numpy(painted), painted.astype(np.uint8), painted.astype(np.uint8) * 255,
        painted.astype(np.float32), torch.from_numpy(painted)[None].float(), grey, grey.convert("1"),
        grey.convert("RGB"), opaque, layer, np.asarray(layer), palette, file.getvalue(),
        Image.fromarray(painted.astype(np.uint16) * 65535),
    ]  # fmt: skip
    for form in forms:
        assert (read_mask(form, 96, 40) == painted).all()


def test_a_mask_of_another_size_keeps_its_place_and_of_another_aspect_is_refused():
    frame = Frame(960, 384, 64, (16, 16))
    small, large = box(240, 96, 60, 24, 120, 48), box(960, 384, 240, 96, 480, 192)
    assert (frame.touched(read_mask(small, 960, 384)) == frame.touched(large)).all()
    read_mask(np.zeros((33, 82), dtype=bool), 960, 384)  # 82 x 32.8, rounded
    for rows, columns in ((384, 384), (960, 384), (64, 64)):
        with pytest.raises(ValueError, match=f"mask must have the picture's size 960 x 384 .* got {columns} x {rows}"):
            read_mask(np.zeros((rows, columns), dtype=bool), 960, 384)


@pytest.mark.parametrize("size", SIZES)
def test_nothing_painted_gives_the_picture_back(pipeline, size):
    picture = photo(*size)
    results = pipeline.edit(picture, np.zeros(size[::-1], dtype=bool), "bird", num_images=2)
    assert len(results) == 2 and all((pixels(r) == pixels(picture)).all() for r in results)
    model = pipeline.edit(picture, np.zeros(size[::-1], dtype=bool), "bird", composite=False)[0]
    square = Frame(*size, 8, (4, 4)).place(picture)
    assert (pixels(model) == pixels(pipeline.tokenizer.reconstruct(square))).all()


@pytest.mark.parametrize("size", [(8, 8), (960, 384)])
@pytest.mark.parametrize("sampler", ["halton", "confidence", "random"])
def test_everything_painted_is_a_plain_generation_with_the_same_seed(pipeline, size, sampler):
    arguments = {"style": "flat", "num_images": 2, "seed": 9, "sampler": sampler}
    plain = pipeline.generate("goldfish", **arguments)
    mask = np.ones(size[::-1], dtype=bool)
    edited = pipeline.edit(photo(*size), mask, "goldfish", composite=False, **arguments)
    assert all((pixels(a) == pixels(b)).all() for a, b in zip(plain, edited, strict=True))
    if size == (8, 8):
        edited = pipeline.edit(photo(*size), mask, "goldfish", **arguments)
        assert all((pixels(a) == pixels(b)).all() for a, b in zip(plain, edited, strict=True))


def test_edits_have_recommended_settings_of_their_own(pipeline):
    whole = {"guidance_scale": 1.5, "temperature": 0.3}
    info = replace(
        pipeline.info, recommended={"steps": 4, **whole}, editing={"guidance_scale": 0.5, "temperature": 0.6}
    )
    picture, part, everything = photo(8, 8), box(8, 8, 0, 0, 4, 8), np.ones((8, 8), dtype=bool)

    def found(edit: edits.Edit) -> tuple[int, float, float]:
        sampling = edit.request.sampling
        return sampling.steps, sampling.guidance_scale, sampling.temperature

    for edit in (
        edits.repaint(info, picture, part, "bird"),
        edits.variations(info, picture, 0.5, "bird"),
        edits.outpaint(info, picture, (0.5, 0), 1.0, "bird"),
        edits.edit_cells(info, picture, [3], "bird"),
    ):
        assert found(edit) == (4, 0.5, 0.6)
    assert found(edits.repaint(info, picture, part, "bird", temperature=1.0)) == (4, 0.5, 1.0)
    assert found(edits.repaint(info, picture, everything, "bird")) == (4, 1.5, 0.3)  # nothing is given
    assert found(edits.variations(info, picture, 1.0, "bird")) == (4, 1.5, 0.3)


def test_inverting_keeps_what_is_painted(pipeline):
    picture, mask = photo(8, 8), box(8, 8, 0, 0, 4, 8)
    assert (
        pixels(pipeline.edit(picture, mask, "bird", invert=True)[0]) == pixels(pipeline.edit(picture, ~mask, "bird")[0])
    ).all()


def test_another_label_gives_another_filling_of_the_same_hole(pipeline):
    picture, mask = photo(8, 8), box(8, 8, 2, 0, 8, 8)
    results = [last_codes(pipeline, edits.repaint(pipeline.info, picture, mask, name)) for name in (0, 1, 2, None)]
    assert any((results[0] != other).any() for other in results[1:])
    assert all(torch.equal(results[0][0, ::4], other[0, ::4]) for other in results)


@pytest.mark.parametrize("strength", [0, 0.1, 0.3, 0.5, 0.99, 1])
def test_a_variation_changes_exactly_its_share_of_codes(pipeline, strength):
    task = edits.variations(pipeline.info, photo(8, 8), strength, "bird", num_images=3, seed=4)
    assert (task.cells.reshape(3, -1).sum(1) == round(strength * 16)).all()
    kept = torch.from_numpy(~task.cells.reshape(3, -1))
    codes = pipeline.tokenizer.encode(from_pil(photo(8, 8))[None]).flatten().expand(3, -1)
    assert torch.equal(last_codes(pipeline, task)[kept], codes[kept])


def test_variations_depend_on_the_seed_alone_and_grow_with_the_strength(pipeline):
    def cells(strength=0.5, **arguments):
        return edits.variations(pipeline.info, photo(8, 8), strength, "bird", **arguments).cells

    four = cells(seed=3)
    assert len(four) == 4 and (four[0] != four[1]).any()
    assert (cells(seed=5, num_images=1)[0] == four[2]).all()
    assert not (cells(0.25, seed=3) & ~four).any()
    whole = pipeline.variations(photo(8, 8), 0.5, class_id="bird", seed=3)
    for batch_size in (1, 3):
        again = pipeline.variations(photo(8, 8), 0.5, class_id="bird", seed=3, batch_size=batch_size)
        assert all((pixels(a) == pixels(b)).all() for a, b in zip(whole, again, strict=True))
    full = pipeline.variations(photo(8, 8), 1, class_id="bird", seed=3)
    plain = pipeline.generate("bird", num_images=4, seed=3)
    assert all((pixels(a) == pixels(b)).all() for a, b in zip(full, plain, strict=True))


def test_a_shifted_picture_keeps_its_pixels_and_its_size(pipeline):
    picture = photo(64, 32)
    result = pixels(pipeline.outpaint(picture, shift=(0.25, 0), class_id="bird")[0])
    assert result.shape == (32, 64, 3)
    assert (result[:, 16:] == pixels(picture)[:, :48]).all()
    assert (result[:, :16] != 255).any()
    up = pixels(pipeline.outpaint(photo(64, 64), shift=(0, -0.5), class_id="bird")[0])
    assert (up[:32] == pixels(photo(64, 64))[32:]).all()


def test_a_shrunk_picture_stays_in_the_middle(pipeline):
    picture = photo(64, 64)
    result = pixels(pipeline.outpaint(picture, scale=0.5, class_id="bird")[0])
    small = pixels(picture.resize((32, 32), Image.LANCZOS))
    assert (result[16:48, 16:48] == small).all()
    task = edits.outpaint(pipeline.info, picture, scale=0.6)
    assert task.cells[0].sum() == 12, "cells that are covered in part are redrawn"


def test_inputs_stay_as_they_were(pipeline):
    picture, mask = photo(20, 20), box(20, 20, 5, 5, 9, 9)
    before = pixels(picture).copy(), mask.copy()
    pipeline.edit(picture, mask, "bird")
    pipeline.outpaint(picture, scale=0.5)
    assert (pixels(picture) == before[0]).all() and (mask == before[1]).all()


def test_a_rotated_photo_is_edited_upright(pipeline):
    upright = photo(30, 20)
    stored = upright.transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    stored.save(file, "png", exif=exif)
    mask = box(30, 20, 0, 0, 8, 20)
    results = [pipeline.edit(image, mask, "bird")[0] for image in (upright, file.getvalue(), np.asarray(upright))]
    assert all((pixels(result) == pixels(results[0])).all() for result in results)
    assert (pixels(results[0])[:, 20:] == pixels(upright)[:, 20:]).all()


def test_a_callback_can_interrupt_and_the_rest_stays_white(pipeline):
    def stop(pipe, index, total, extra):
        pipe.interrupt()

    result = pipeline.edit(
        photo(8, 8), box(8, 8, 0, 0, 8, 4), "bird", num_images=3, batch_size=2, callback_on_step_end=stop
    )
    assert len(result) == 2 and (pixels(result[0])[4:] == pixels(photo(8, 8))[4:]).all()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda p, m: pgm_image.edit(p, m, "no such", model="MODEL"), "class_id"),
        (lambda p, m: pgm_image.edit(p, m, "bird", steps=0, model="MODEL"), "steps"),
        (lambda p, m: pgm_image.edit(p, "mask", "bird", model="MODEL"), "cannot be read"),
        (lambda p, m: pgm_image.edit(p, None, "bird", model="MODEL"), "mask must be"),
        (lambda p, m: pgm_image.edit(p, m.astype(float) * np.nan, "bird", model="MODEL"), "mask must hold"),
        (lambda p, m: pgm_image.edit(p, m.astype(int) * -1, "bird", model="MODEL"), "mask must hold"),
        (lambda p, m: pgm_image.edit(p, m[:0], "bird", model="MODEL"), r"mask must have shape"),
        (lambda p, m: pgm_image.edit(p, m, "bird", fit="stretch", model="MODEL"), "fit must be one of whole, crop"),
        (lambda p, m: pgm_image.edit(5, m, "bird", model="MODEL"), "image must be"),
        (lambda p, m: pgm_image.edit(b"<html>", m, "bird", model="MODEL"), "SVG, HTML or XML"),
        (lambda p, m: pgm_image.edit(np.zeros((4, 4)), m, model="MODEL"), "image must be"),
        (lambda p, m: pgm_image.variations(p, 1.5, model="MODEL"), r"strength must be a number in 0\.\.1, got 1\.5"),
        (lambda p, m: pgm_image.variations(p, True, model="MODEL"), "strength"),
        (lambda p, m: pgm_image.variations(p, float("nan"), model="MODEL"), "strength"),
        (lambda p, m: pgm_image.outpaint(p, shift=0.5, model="MODEL"), "shift must be two numbers"),
        (lambda p, m: pgm_image.outpaint(p, shift=(1, 0), model="MODEL"), "shift must be above -1"),
        (lambda p, m: pgm_image.outpaint(p, scale=0, model="MODEL"), "scale must be above 0"),
        (lambda p, m: pgm_image.outpaint(p, shift=(0.9, 0), scale=0.1, model="MODEL"), "out of sight"),
        (
            lambda p, m: edits.edit_cells(pgm_image.api.model_info("MODEL"), p, [16]),
            r"cells must be numbers in 0\.\.15",
        ),
    ],
)
def test_a_bad_argument_is_named_before_any_weight_is_read(model_folder, monkeypatch, call, says):
    import pgm_image.api  # noqa: F401

    monkeypatch.setattr("pgm_image.editing.load", lambda *a, **k: pytest.fail("weights were read"))
    real = pgm_image.editing.model_info
    monkeypatch.setattr("pgm_image.editing.model_info", lambda name: real(str(model_folder)))
    monkeypatch.setattr("pgm_image.api.model_info", lambda name: real(str(model_folder)))
    with pytest.raises(ValueError, match=says):
        call(photo(20, 20), box(20, 20, 0, 0, 5, 5))


def test_paint_outside_of_the_crop_is_refused(pipeline):
    with pytest.raises(ValueError, match="only outside of the central square"):
        pipeline.edit(photo(60, 20), box(60, 20, 0, 0, 5, 5), "bird", fit="crop")


def test_the_public_functions_load_and_run(model_folder):
    model, picture = str(model_folder), photo(20, 20)
    mask = box(20, 20, 0, 0, 9, 9)
    edited = pgm_image.edit(picture, mask, "bird", model=model, device="cpu", batch_size=1, num_images=2)
    assert [p.size for p in edited] == [(20, 20)] * 2
    assert [p.size for p in pgm_image.variations(picture, 0.25, model=model)] == [(8, 8)] * 4
    assert pgm_image.outpaint(picture, (0, 0.3), model=model)[0].size == (20, 20)
    steps = pgm_image.edit_steps(picture, mask, "bird", model=model)
    assert [step.index for step in steps] == [0, 1, 2, 3]


def test_the_commands_write_what_the_functions_return(model_folder, tmp_path, capsys):
    picture, mask = photo(20, 20), box(20, 20, 0, 0, 9, 9)
    picture.save(tmp_path / "in.png")
    layer = Image.new("RGBA", (20, 20))
    layer.paste((255, 0, 0, 255), (0, 0, 9, 9))
    layer.save(tmp_path / "layer.png")
    shared = [str(tmp_path / "in.png"), "--model", str(model_folder), "--class", "bird", "--seed", "3"]
    out = tmp_path / "out.png"
    assert main(["edit", *shared, "--mask", str(tmp_path / "layer.png"), "--out", str(out)]) == 0
    expected = pgm_image.edit(picture, mask, "bird", seed=3, model=str(model_folder))[0]
    assert (pixels(Image.open(out)) == pixels(expected)).all()
    settings = read_settings(out)
    assert settings["edit"] == {"kind": "repaint", "cells": 4, "of": 16, "fit": "whole"} and settings["seed"] == 3
    capsys.readouterr()
    assert main(["variations", *shared, "--strength", "0.2", "--json", "--out", str(tmp_path / "v")]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["seed"] for line in lines] == [3, 4, 5, 6] and lines[0]["edit"]["cells"] == 3
    assert main(["outpaint", *shared, "--shift", "0.25", "-0.25", "--out", str(tmp_path / "o")]) == 0
    assert len(list((tmp_path / "o").glob("*.png"))) == 1
    assert main(["edit", *shared, "--mask", str(tmp_path / "none.png")]) == 2
    assert "none.png" in capsys.readouterr().err
