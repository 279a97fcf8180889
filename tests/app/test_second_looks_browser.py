"""Second looks in a real browser, over tiny real models: what is seen in a round, in the end, and after Stop."""

import io

import numpy as np
import pytest
from gradio_client import Client
from PIL import Image
from tiny_pipeline import tiny_pipeline, tiny_text_pipeline
from visitor import generate, pixels, unfold

from app.limits import Limits
from app.page import build, launch_settings
from pgm_image.metadata import read_settings

pytestmark = pytest.mark.browser
CARD = {"recommended": {"steps": 4}, "presets": {"Draft": {"steps": 2, "refine_rounds": 0}, "Balanced": {"steps": 4}}}
TEXT_CARD = {"recommended": {"steps": 4, "refine_rounds": 2}, "presets": {}}
FIRST, TOTAL = 4, 4 + 4 + 3  # steps; the second round takes three of 16 codes back
MADE = "(count) => document.querySelectorAll('{0} .viewer-ticks i[data-made]').length >= count"
PAPER = "() => getComputedStyle(document.querySelector('#image-viewer')).getPropertyValue('--paper').trim()"


class Tiny:
    """A page that is being served, and its pipeline."""

    def __init__(self):
        self.pipeline, self.text = tiny_pipeline(**CARD), tiny_text_pipeline(**TEXT_CARD)
        self.page = build({"emoji64": self.pipeline}, Limits(), text_pipelines={"fake-pgm": self.text})
        self.url = self.page.launch(
            **launch_settings(self.page), prevent_thread_lock=True, quiet=True, inbrowser=False, ssr_mode=False
        )[1]


@pytest.fixture(scope="module")
def served():
    tiny = Tiny()
    yield tiny
    tiny.page.close(verbose=False)


@pytest.fixture
def slow(served, monkeypatch):
    monkeypatch.setattr(served.pipeline, "step_seconds", 0.8)


def choose_two(page):
    unfold(page, "How")
    page.locator("#image-rounds input[type=number]").fill("2")
    page.locator("#image-rounds input[type=number]").press("Enter")


def number(page, name, viewer="#image-viewer"):
    return page.locator(f'{viewer} [data-number="{name}"]').inner_text()


def title(page, viewer="#image-viewer"):
    return page.locator(f"{viewer} .viewer-title").text_content()


def empty_cells(page):
    """How many of the 16 cells on the stage are paper."""
    paper = [int(page.evaluate(PAPER).lstrip("#")[i : i + 2], 16) for i in (0, 2, 4)]
    shown = pixels(page)
    side = shown.shape[0] // 4
    middles = shown[side // 2 :: side, side // 2 :: side][:4, :4]
    return int((middles == paper).all(-1).sum())


def test_a_second_look_is_told_and_seen_and_ends_in_what_the_api_returns(visit, served, slow):
    page = visit()
    choose_two(page)
    generate(page, wait_for="")
    page.wait_for_function(MADE.format("#image-viewer"), arg=FIRST)
    ticks = page.locator("#image-viewer .viewer-ticks i")
    assert ticks.count() == TOTAL and number(page, "step") == f"{FIRST} of {TOTAL}"
    assert page.locator("#image-viewer .viewer-ticks i[data-later]").count() == 1
    assert ticks.nth(FIRST).get_attribute("data-later") is not None
    page.wait_for_function(MADE.format("#image-viewer"), arg=FIRST + 1)
    assert title(page) == "bird · flat second look 1 of 2"
    page.get_by_text("Second look 1 of 2: the codes that fit worst were taken back").wait_for()
    assert int(number(page, "known").split()[0]) < 16
    page.wait_for_selector("#image-viewer .viewer[data-state=done]", timeout=60_000)
    page.wait_for_timeout(900)
    assert title(page) == "bird · flat"
    assert (
        number(page, "known") == "16 of 16" and "2 second looks" in page.locator(".viewer-settings").first.inner_text()
    )

    shown = pixels(page)
    seed = int(page.locator("#image-viewer .viewer-seed").inner_text().split()[1])
    client = Client(served.url, verbose=False, download_files=True)
    [drawn] = client.predict(class_id="bird", style="flat", seed=seed, refine_rounds=2, api_name="/generate")
    expected = np.asarray(Image.open(drawn["image"]).convert("RGB"))
    scale = shown.shape[0] // 16
    assert np.array_equal(shown, expected.repeat(scale, 0).repeat(scale, 1))
    with page.expect_download() as download:
        page.get_by_role("button", name="Save PNG").click()
    content = download.value.path().read_bytes()
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(content)).convert("RGB")), expected)
    assert read_settings(io.BytesIO(content))["refine_rounds"] == 2

    timeline = page.locator("#image-viewer .viewer-ticks")  # back and forth: holes are where they were
    holes = {}
    for step in [*range(TOTAL, FIRST - 1, -1), *range(FIRST, TOTAL + 1)]:
        timeline.press("End")
        for _ in range(TOTAL - step):
            timeline.press("ArrowLeft")
        assert number(page, "step") == f"{step} of {TOTAL}"
        found = empty_cells(page)
        assert holes.setdefault(step, found) == found == 16 - int(number(page, "known").split()[0])
    assert holes[FIRST] == holes[FIRST + 4] == holes[TOTAL] == 0 and holes[FIRST + 1] > 0 < holes[FIRST + 5]
    assert np.array_equal(pixels(page), shown)
    page.get_by_role("button", name="Order", exact=True).click()
    timeline.press("ArrowLeft")
    page.get_by_text("The palest cells were drawn anew in second looks.").wait_for()


def test_stopping_in_a_second_look_leaves_the_whole_picture_before_it(visit, served, slow):
    page = visit()
    choose_two(page)
    unfold(page, "More")
    page.locator("#image-randomise input").uncheck()
    page.locator("#image-seed input").fill("7")
    generate(page, wait_for="")
    page.wait_for_function(MADE.format("#image-viewer"), arg=FIRST + 1)
    page.get_by_role("button", name="Stop", exact=True).click()
    page.wait_for_selector("#image-viewer .viewer[data-state=stopped]")
    page.wait_for_timeout(1500)
    made = page.locator("#image-viewer .viewer-ticks i[data-made]").count()
    assert FIRST < made < FIRST + 4
    assert title(page) == f"bird · flat stopped at step {made} of {TOTAL}"
    assert (number(page, "step"), number(page, "known")) == (f"{FIRST} of {TOTAL}", "16 of 16")
    page.get_by_text("Stopped in a second look: this is the whole picture before it.").wait_for()
    [whole] = served.pipeline.generate("bird", style="flat", seed=7, steps=4)
    shown = pixels(page)
    scale = shown.shape[0] // 16
    assert np.array_equal(shown, np.asarray(whole).repeat(scale, 0).repeat(scale, 1)), "without any marks"
    page.locator("#image-viewer .viewer-ticks").press("End")
    assert empty_cells(page) == 16 - int(number(page, "known").split()[0]) > 0


def test_an_effort_sets_the_rounds_and_moving_them_is_an_effort_of_ones_own(visit):
    page = visit()
    choose_two(page)
    assert page.locator("#image-preset input:checked").count() == 0
    page.get_by_role("radio", name="Draft").check()
    page.wait_for_function("() => document.querySelector('#image-rounds input[type=number]').value === '0'")


def test_tokens_taken_back_are_blocks_again(visit, served):
    page = visit()
    page.get_by_role("tab", name="Text", exact=True).click()
    page.locator("#text-prompt textarea").fill("lantern (noun): ")
    page.locator("#text-generate").click()
    page.wait_for_selector(".text[data-state=done]", timeout=60_000)
    timeline = page.locator(".text .viewer-ticks")
    total = timeline.locator("i").count()
    cells = page.locator(".text .text-cell").count()
    unknown = page.locator('.text .text-cell[data-state="unknown"], .text .text-cell[data-state="ahead"]')
    page.locator(".text .viewer-views button", has_text="Tokens").click()
    assert unknown.count() == 0 and timeline.locator("i[data-later]").count() == 1
    page.locator(".text .viewer-views button", has_text="Text").click()
    timeline.press("Home")
    for _ in range(4):
        timeline.press("ArrowRight")
    assert title(page, ".text").endswith("second look 1 of 2")
    page.get_by_text("Second look 1 of 2: the tokens that fit worst were taken back").wait_for()
    known = int(number(page, "known", ".text").split()[0])
    page.locator(".text .viewer-views button", has_text="Tokens").click()
    assert unknown.count() == cells - known > 0
    assert number(page, "step", ".text") == f"5 of {total}"
    timeline.press("End")
    assert unknown.count() == 0
