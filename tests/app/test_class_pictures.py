"""The sheet of example pictures that a model drew itself: made, checked against the classes, served, shown in menus."""

import httpx
import numpy as np
import pytest
from fake_pipeline import CLASSES, FakePipeline
from PIL import Image

import pgm_image
from app import class_pictures
from app.class_pictures import COLUMNS, SIDE, draw_sheet, main, save_sheet, sheet_of
from app.limits import Limits
from app.page import build, launch_settings
from pgm_image import registry

LARGEST = 300_000  # bytes


@pytest.fixture
def assets(tmp_path, monkeypatch):
    """A folder of bundled models in which one has its sheet."""
    monkeypatch.setattr(registry, "ASSETS", tmp_path)
    (tmp_path / "fake").mkdir()
    pipeline = FakePipeline(0.0)
    save_sheet(draw_sheet(pipeline), pipeline.info.classes, tmp_path / "fake" / class_pictures.NAME)
    return tmp_path


def test_the_sheet_holds_what_the_model_draws_for_every_class_in_order(pipeline):
    sheet = draw_sheet(pipeline, seed=5)
    assert sheet.size == (COLUMNS * SIDE, 2 * SIDE)
    for index, name in enumerate(CLASSES):
        left, top = index % COLUMNS * SIDE, index // COLUMNS * SIDE
        [expected] = pipeline.pictures(name, style="Crayon", seed=5)
        assert np.array_equal(np.asarray(sheet.crop((left, top, left + SIDE, top + SIDE))), np.asarray(expected)), name


def test_a_style_that_training_never_saw_a_class_in_is_passed_over(pipeline):
    object.__setattr__(pipeline.info, "unseen", ([1, 0], [1, 1]))
    sheet = draw_sheet(pipeline)
    [expected] = pipeline.pictures("dog", style="Ink", seed=0)
    assert np.array_equal(np.asarray(sheet.crop((SIDE, 0, 2 * SIDE, SIDE))), np.asarray(expected))


def test_a_sheet_of_other_classes_or_a_broken_one_is_as_good_as_none(assets, pipeline):
    path = assets / "fake" / class_pictures.NAME
    assert sheet_of(pipeline.info) == path
    object.__setattr__(pipeline.info, "classes", (*CLASSES[:-1], "zebra"))
    assert sheet_of(pipeline.info) is None
    object.__setattr__(pipeline.info, "classes", CLASSES)
    Image.new("RGB", (64, 64)).save(path, "webp")
    assert sheet_of(pipeline.info) is None
    path.write_bytes(b"RIFF")
    assert sheet_of(pipeline.info) is None
    path.unlink()
    assert sheet_of(pipeline.info) is None


def test_the_command_writes_it_beside_the_weights(assets, pipeline, monkeypatch, capsys):
    path = assets / "fake" / class_pictures.NAME
    path.unlink()
    monkeypatch.setattr(pgm_image.PGMPipeline, "from_pretrained", lambda name: pipeline)
    monkeypatch.setattr(registry, "find_folder", lambda name: assets / name)
    main(["fake"])
    assert sheet_of(pipeline.info) == path and capsys.readouterr().out.startswith(f"{path}: 12 classes, ")


def test_the_bundled_sheet_is_of_the_bundled_classes_and_small():
    [info] = [one for one in pgm_image.models() if one.name == registry.DEFAULT_MODEL]
    path = sheet_of(info)
    assert path, "python -m app.class_pictures has to be run for the new classes"
    assert path.stat().st_size < LARGEST


@pytest.mark.browser
def test_the_chosen_class_and_those_of_the_menu_have_their_picture(assets, browser):
    page = build(pipelines={"fake": FakePipeline(0.0)}, limits=Limits())
    context = browser.new_context()
    context.set_default_timeout(45_000)
    try:
        _, url, _ = page.launch(
            **launch_settings(page), prevent_thread_lock=True, quiet=True, inbrowser=False, ssr_mode=False
        )
        assert httpx.get(f"{url}class-pictures/fake").headers["content-type"] == "image/webp"
        assert httpx.get(f"{url}class-pictures/other").status_code == 404
        visitor = context.new_page()
        visitor.goto(url)
        field = visitor.locator("#image-class input")
        field.wait_for()
        look = """(which) => {
          const style = getComputedStyle(document.querySelector(which), '::before');
          return style.display === 'none' ? '' : `${style.backgroundPosition} ${style.backgroundImage}`;
        }"""
        shown = "#image-class .wrap-inner"
        visitor.wait_for_function(f"() => ({look})('{shown}')")
        assert visitor.evaluate(look, shown) == f'0px 0px url("{url}class-pictures/fake")'
        field.click()
        owl = visitor.get_by_role("option", name="owl", exact=True)
        owl.wait_for()
        visitor.wait_for_selector('#image-class [aria-label="owl"][data-picture]')
        assert visitor.evaluate(look, '#image-class [aria-label="owl"]').startswith("-160px 0px")
        owl.click()
        visitor.wait_for_function(f"() => ({look})('{shown}').startsWith('-160px 0px')")
        field.click()
        visitor.get_by_role("option", name="Anything", exact=True).click()
        visitor.wait_for_function(f"() => ({look})('{shown}') === ''")
    finally:
        context.close()
        page.close(verbose=False)


def test_a_model_without_a_sheet_shows_none(pipeline, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "ASSETS", tmp_path)
    page = build(pipelines={"fake": pipeline})
    [shown] = [block for block in page.blocks.values() if getattr(block, "elem_id", None) == "class-pictures"]
    assert shown.props["sheets"] == {}
