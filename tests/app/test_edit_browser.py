"""A visitor edits a picture in a real browser: upload, paint with the mouse, redraw, stop, keep, go on."""

import numpy as np
import pytest
import visitor
from PIL import Image, ImageFilter

from pgm_image.frame import Frame
from pgm_image.metadata import read_settings

MADE = "() => document.querySelectorAll('#edit-viewer .viewer-ticks i[data-made]').length"
PAINTED = "() => pgm.painters.edit.painted().cells"


@pytest.fixture
def opened(visit):
    """Opens the edit tab."""

    def open_tab(**options):
        page = visit(**options)
        page.get_by_role("tab", name="Edit").click()
        page.wait_for_selector("#edit-painter .viewer-canvas")
        return page

    return open_tab


def photo(tmp_path, width=300, height=200):
    values = np.zeros((height, width, 3), np.uint8)
    values[..., 0] = np.linspace(0, 255, width)
    values[..., 1] = np.linspace(0, 255, height)[:, None]
    path = tmp_path / "photo.png"
    Image.fromarray(values).save(path)
    return path, values


def upload(page, path):
    page.set_input_files(".edit-files input[type=file]", path)


def ready(page):
    page.wait_for_selector("#edit-painter .painter[data-state=ready]")


def drag(page, start, end):
    box = page.locator("#edit-painter .viewer-canvas").bounding_box()
    points = [(box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in (start, end)]
    page.mouse.move(*points[0])
    page.mouse.down()
    page.mouse.move(*points[1], steps=8)
    page.mouse.up()


def redraw(page, wait_for="done"):
    page.get_by_role("button", name="Redraw", exact=True).click()
    if wait_for:
        page.wait_for_selector(f"#edit-viewer .viewer[data-state={wait_for}]", timeout=60_000)
        page.wait_for_timeout(900)  # the last glow fades


def pixels(page) -> np.ndarray:
    return visitor.pixels(page, "#edit-viewer")


def grid(cells) -> np.ndarray:
    mask = np.zeros(256, dtype=bool)
    mask[cells] = True
    return mask.reshape(16, 16)


def test_what_is_painted_is_redrawn_step_by_step_and_nothing_else(opened, tmp_path, slow):
    page = opened()
    assert "Upload a picture" in page.locator("#edit-painter .viewer-empty").inner_text()
    redraw(page, wait_for="")
    page.wait_for_function("() => document.getElementById('edit-notice')?.textContent")
    assert page.locator("#edit-notice").inner_text().startswith("Upload a picture first")
    path, values = photo(tmp_path, 300, 300)
    upload(page, path)
    ready(page)
    drag(page, (0.3, 0.4), (0.6, 0.5))
    cells = page.evaluate(PAINTED)
    assert (
        10 < len(cells) < 60 and f"{len(cells)} of 256 codes" in page.locator("#edit-painter .viewer-note").inner_text()
    )

    redraw(page, wait_for="")
    seen = []
    for count in (2, 8):
        page.wait_for_function(f"({MADE})() >= {count}")
        seen.append(pixels(page))
    slow()
    page.wait_for_selector("#edit-viewer .viewer[data-state=done]")
    page.wait_for_timeout(900)
    seen.append(pixels(page))
    side = len(seen[-1])
    touched = Frame(side, side, 64, (16, 16)).pixels(grid(cells))
    edge = np.asarray(Image.fromarray(touched.astype(np.uint8)).filter(ImageFilter.MaxFilter(41))) > 0
    for before, after in zip(seen, seen[1:], strict=False):
        changed = np.abs(before.astype(int) - after).max(-1) > 24
        assert (changed & touched).any()
        assert not (changed & ~edge).any()  # previews under way are lossy: their blocks of 16 pixels reach over an edge

    page.locator("#edit-viewer [data-view=before]").click()
    assert np.abs(pixels(page).astype(int) - seen[-1]).max(-1)[touched].max() > 60
    with page.expect_download() as download:
        page.locator("#edit-viewer [data-save=png]").click()
    saved = Image.open(download.value.path())
    assert saved.size == (300, 300) and read_settings(saved)["edit"]["cells"] == len(cells)
    kept = ~Frame(300, 300, 64, (16, 16)).pixels(grid(cells))
    made = np.asarray(saved.convert("RGB"))
    assert (made[kept] == values[kept]).all() and (made[~kept] != values[~kept]).any()

    page.locator("#edit-viewer [data-reuse=settings]").click()
    page.wait_for_selector("#edit-stage[data-pane=source]")
    page.wait_for_function("() => !pgm.painters.edit.painted().cells.length")


def test_stop_frees_the_worker_and_a_broken_file_changes_nothing(opened, served, tmp_path, slow):
    page = opened()
    upload(page, photo(tmp_path)[0])
    ready(page)
    drag(page, (0.2, 0.5), (0.8, 0.5))
    painted, closed = page.evaluate(PAINTED), served.pipeline.closed
    broken = tmp_path / "page.png"
    broken.write_text("<!doctype html>not found")
    upload(page, broken)
    page.wait_for_function("() => /HTML/.test(document.getElementById('edit-notice')?.textContent)")
    assert page.evaluate(PAINTED) == painted
    redraw(page, wait_for="")
    page.wait_for_function(f"({MADE})() >= 3")
    page.get_by_role("button", name="Stop", exact=True).click()
    page.wait_for_selector("#edit-viewer .viewer[data-state=stopped]")
    assert "stopped at step" in page.locator("#edit-viewer .viewer-title").inner_text()
    visitor.freed(served, closed + 1)
    slow()
    redraw(page)
    assert page.locator('#edit-viewer [data-number="known"]').inner_text() == "256 of 256"


def test_strokes_can_be_taken_back_inverted_and_made_by_keyboard(opened, tmp_path):
    page = opened(width=390, height=844, has_touch=True)
    upload(page, photo(tmp_path)[0])
    ready(page)
    drag(page, (0.4, 0.5), (0.4, 0.5))
    one = page.evaluate(PAINTED)
    drag(page, (0.7, 0.5), (0.7, 0.5))
    two = page.evaluate(PAINTED)
    assert set(one) < set(two)
    page.get_by_role("button", name="Undo").click()
    assert page.evaluate(PAINTED) == one
    page.get_by_role("button", name="Invert").click()
    shown = len(one) + len(page.evaluate(PAINTED))
    assert 160 <= shown < 256, "cells that show margin alone cannot be painted"
    page.get_by_role("button", name="Clear").click()
    canvas = page.locator("#edit-painter .viewer-canvas")
    canvas.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", " "):
        canvas.press(key)
    assert len(page.evaluate(PAINTED)) == 1
    assert "painted" in page.locator("#edit-painter .viewer-note").inner_text()
    overflow = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    assert overflow <= 0


def test_the_picture_of_the_image_tab_can_be_outpainted(opened):
    page = opened()
    page.get_by_role("tab", name="Image").click()
    page.get_by_role("button", name="Generate", exact=True).click()
    page.wait_for_selector("#image-viewer .viewer[data-state=done]", timeout=60_000)
    page.get_by_role("tab", name="Edit").click()
    page.get_by_role("button", name="From the Image tab").click()
    ready(page)
    assert page.locator("#edit-class input").input_value() == "cat"
    page.locator("#edit-mode label", has_text="Outpaint").click()
    shift = page.locator("#edit-right input[type=number]")
    shift.fill("0.25")
    shift.press("Enter")
    page.wait_for_function(
        "() => /64 of 256 codes/.test(document.querySelector('#edit-painter .viewer-note').textContent)"
    )
    redraw(page)
    assert page.locator("#edit-viewer .viewer-title").inner_text() == "Outpaint · cat · Crayon"
    assert page.locator("#edit-viewer .viewer-settings").inner_text().startswith("64 of 256 codes drawn anew")
