"""A visitor in a real browser: load, pick, generate, see pixels change, stop, scrub, download."""

import io

import numpy as np
import pytest
from PIL import Image
from visitor import STEPS_SHOWN, freed, generate, pixels, unfold

from pgm_image.metadata import read_settings


def pick(page, typed, name):
    box = page.locator("#image-class input")
    box.click()
    box.press("Control+a")
    box.press_sequentially(typed, delay=20)
    page.get_by_role("option", name=name).click()


def number(page, name):
    return page.locator(f'[data-number="{name}"]').inner_text()


def test_generating_reveals_the_picture_step_by_step_and_downloads_match(visit, served, slow):
    page = visit()
    assert "Choose a class" in page.locator(".viewer-empty").inner_text()
    pick(page, "gold", "goldfish")
    blank = pixels(page)
    generate(page, wait_for="")
    seen = [blank]
    for count in (2, 7, 12):
        page.wait_for_function(f"() => document.querySelectorAll('.viewer-ticks i[data-made]').length >= {count}")
        seen.append(pixels(page))
    for before, after in zip(seen, seen[1:], strict=False):
        assert (before != after).any(), "pixels change between steps"
    slow()
    page.wait_for_selector(".viewer[data-state=done]")
    page.wait_for_timeout(900)
    assert page.locator(".viewer-title").inner_text() == "goldfish · Crayon"
    assert number(page, "step") == "16 of 16" and number(page, "known") == "256 of 256"

    with page.expect_download() as download:
        page.get_by_role("button", name="Save PNG").click()
    assert download.value.suggested_filename.startswith("goldfish-crayon-seed")
    content = download.value.path().read_bytes()
    settings = read_settings(io.BytesIO(content))
    expected = np.asarray(served.pipeline.pictures("goldfish", style="Crayon", seed=settings["seed"], steps=16)[0])
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(content)).convert("RGB")), expected)

    shown = pixels(page)
    scale = shown.shape[0] // 64
    assert shown.shape == (64 * scale, 64 * scale, 3) and scale >= 6
    assert np.array_equal(shown, expected.repeat(scale, 0).repeat(scale, 1)), "crisp: every pixel a whole square"


def test_scrubbing_by_keyboard_and_drag_asks_the_server_nothing(visit, served):
    page = visit()
    generate(page)
    final, run = pixels(page), served.pipeline.steps_run
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    ticks = page.locator(".viewer-ticks")
    ticks.press("ArrowLeft")
    assert number(page, "step") == "15 of 16"
    ticks.press("Home")
    assert number(page, "step") == "1 of 16"
    first = pixels(page)
    assert (first != final).any()
    box = ticks.bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 20, steps=4)
    assert number(page, "step") in ("8 of 16", "9 of 16")
    page.mouse.move(box["x"] + box["width"] - 3, box["y"] + 20, steps=4)
    page.mouse.up()
    assert number(page, "step") == "16 of 16"
    assert np.array_equal(pixels(page), final)
    assert [url for url in requests if not url.startswith(("data:", "blob:"))] == []
    assert served.pipeline.steps_run == run


def test_an_earlier_step_can_be_saved_and_the_reveal_too(visit):
    page = visit()
    generate(page)
    page.locator(".viewer-ticks").press("PageDown")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save step").click()
    assert "-step" in download.value.suggested_filename
    for kind in ("WebP", "GIF"):
        with page.expect_download() as download:
            page.get_by_role("button", name=kind, exact=True).click()
        assert Image.open(download.value.path()).n_frames == 16


def test_stop_frees_the_worker_and_keeps_what_is_there(visit, served, slow):
    page = visit()
    closed = served.pipeline.closed
    generate(page, wait_for="")
    page.wait_for_function(f"({STEPS_SHOWN})() >= 3")
    page.get_by_role("button", name="Stop", exact=True).click()
    page.wait_for_selector(".viewer[data-state=stopped]")
    page.get_by_role("button", name="Generate", exact=True).wait_for()
    assert "stopped at step" in page.locator(".viewer-title").inner_text()
    freed(served, closed + 1)
    slow()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save PNG").click()
    assert download.value.path()
    generate(page)
    assert number(page, "known") == "256 of 256"


def test_closing_the_tab_frees_the_worker(visit, served, slow):
    page = visit()
    closed = served.pipeline.closed
    generate(page, wait_for="")
    page.wait_for_function(f"({STEPS_SHOWN})() >= 2")
    ran = served.pipeline.steps_run
    page.close()
    freed(served, closed + 1)
    assert served.pipeline.steps_run - ran < 12, "work went on long after the visitor had left"


def test_several_pictures_appear_together_and_a_click_brings_one_to_the_stage(visit):
    page = visit()
    page.get_by_role("radio", name="4", exact=True).check()
    generate(page)
    thumbs = page.locator(".viewer-strip button")
    assert thumbs.count() == 4
    first, seed = pixels(page), page.locator(".viewer-seed").inner_text()
    thumbs.nth(2).click()
    assert (pixels(page) != first).any()
    assert int(page.locator(".viewer-seed").inner_text().split()[1]) == int(seed.split()[1]) + 2


def test_a_second_visitor_sees_their_place_in_line(visit, slow):
    one, two, three = visit(), visit(), visit()
    for page in (one, two, three):
        generate(page, wait_for="")
        page.wait_for_timeout(60)
    in_line = "() => /place \\d of \\d/.test(document.querySelector('.viewer-title').textContent)"
    three.wait_for_function(in_line)
    slow()
    for page in (one, two, three):
        page.wait_for_selector(".viewer[data-state=done]", timeout=60_000)


def test_a_full_line_is_told_and_the_button_comes_back(browser, crowded):
    context = browser.new_context()
    pages = [context.new_page() for _ in range(3)]
    for page in pages:
        page.goto(crowded.url)
        page.wait_for_function("() => document.querySelector('.viewer-ticks')?.children.length > 0")
    for page in pages:
        page.get_by_role("button", name="Generate", exact=True).click()
        page.wait_for_timeout(300)
    refused = pages[2]
    refused.locator(".toast-body").wait_for()
    refused.get_by_role("button", name="Generate", exact=True).wait_for()
    assert refused.locator(".viewer").get_attribute("data-state") == "idle"
    context.close()


def test_a_bad_value_shows_one_message_beside_the_button(visit):
    page = visit()
    unfold(page, "More")
    page.locator("#image-randomise input").uncheck()
    page.locator("#image-seed input").fill("-5")
    generate(page, wait_for="")
    notice = page.locator("#image-notice")
    page.wait_for_function("() => document.getElementById('image-notice')?.textContent")
    assert notice.inner_text() == "Seed must be a whole number from 0 up, not -5."
    assert page.locator(".toast-body").count() == 0
    page.locator("#image-seed input").fill("5")
    generate(page)
    assert notice.inner_text() == ""
    assert page.locator(".viewer-seed").inner_text() == "Seed 5"


def test_keeping_a_seed_makes_the_same_picture_again(visit):
    page = visit()
    generate(page)
    first, seed = pixels(page), page.locator(".viewer-seed").inner_text()
    page.get_by_role("button", name="Keep seed").click()
    unfold(page, "More")
    page.wait_for_function("() => document.querySelector('#image-randomise input')?.checked === false")
    generate(page)
    assert page.locator(".viewer-seed").inner_text() == seed
    assert np.array_equal(pixels(page), first)


def test_views_show_codes_and_order(visit):
    page = visit()
    generate(page)
    picture = pixels(page)
    page.get_by_role("button", name="Codes", exact=True).click()
    codes = pixels(page)
    page.get_by_role("button", name="Order", exact=True).click()
    order = pixels(page)
    assert (picture != codes).any() and (codes != order).any()
    assert "like rain" in page.locator(".viewer-note").inner_text()


def test_everything_can_be_done_with_the_keyboard(visit):
    page = visit()
    page.locator("#image-class input").focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.id") == "image-generate":
            break
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.id === 'image-stop'")
    page.wait_for_selector(".viewer[data-state=done]", timeout=60_000)
    page.wait_for_function("() => document.activeElement.id === 'image-generate'")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 820, 1440])
def test_nothing_scrolls_sideways_and_nothing_jumps(visit, width, scheme):
    page = visit(width=width, color_scheme=scheme)
    wide = "() => [document.documentElement.scrollWidth, window.innerWidth]"
    place = "() => Math.round(document.querySelector('.viewer-timeline').getBoundingClientRect().top + scrollY)"
    assert (lambda pair: pair[0] <= pair[1])(page.evaluate(wide))
    before = page.evaluate(place)
    generate(page, wait_for="")
    page.wait_for_function(f"({STEPS_SHOWN})() >= 4")
    assert page.evaluate(place) == before
    page.wait_for_selector(".viewer[data-state=done]", timeout=60_000)
    assert page.evaluate(place) == before
    unfold(page, "How")
    unfold(page, "More")
    assert (lambda pair: pair[0] <= pair[1])(page.evaluate(wide))
    background = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    level = int(background.split("(")[1].split(",")[0])
    assert (level < 60) == (scheme == "dark")
    page.get_by_role("tab", name="About").click()
    page.get_by_text("arXiv 2505.18883").wait_for()
    assert (lambda pair: pair[0] <= pair[1])(page.evaluate(wide))


def test_no_colour_of_the_default_theme_is_left(visit):
    page = visit()
    orange = page.evaluate(
        """() => [...document.querySelectorAll('body *')].filter((element) => {
             if (!element.offsetParent) return false;
             const style = getComputedStyle(element);
             return ['color', 'backgroundColor', 'borderTopColor', 'outlineColor'].some((name) => {
               const [r, g, b] = (style[name].match(/\\d+/g) || []).map(Number);
               return r > 220 && g > 80 && g < 170 && b < 80;
             });
           }).map((element) => element.className)"""
    )
    assert orange == []


def test_reduced_motion_draws_no_glow(visit):
    page = visit(reduced_motion="reduce")
    generate(page, wait_for="")
    page.wait_for_selector(".viewer[data-state=done]", timeout=60_000)
    page.wait_for_timeout(100)
    still = pixels(page)
    page.wait_for_timeout(300)
    assert np.array_equal(pixels(page), still)
