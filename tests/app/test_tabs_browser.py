"""Compare, tokens, history and links in a real browser."""

import base64
import io
import json
import time
import zipfile

import numpy as np
import pytest
from PIL import Image
from visitor import generate, pixels, unfold

from pgm_image.metadata import png_info, read_settings
from tokenizer.image_files import open_picture

DROP = """async ([name, letters, selector]) => {
  const bytes = Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
  const files = new DataTransfer();
  files.items.add(new File([bytes], name, { type: 'image/png' }));
  const target = document.querySelector(selector);
  for (const kind of ['dragover', 'drop'])
    target.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: files }));
}"""


def drop(page, content: bytes, selector: str = "body"):
    page.evaluate(DROP, ["dropped.png", base64.b64encode(content).decode(), selector])


def png_of(picture: Image.Image, **settings) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "png", pnginfo=png_info(settings) if settings else None)
    return buffer.getvalue()


def opened(page, tab):
    page.get_by_role("tab", name=tab).click()
    page.locator(f"#{tab.lower()}-stage .viewer").wait_for()


def saved(page, button):
    with page.expect_download() as download:
        button.click()
    return download.value.suggested_filename, download.value.path().read_bytes()


def test_three_orders_appear_in_step_and_a_sweep_fills_its_sheet(visit):
    page = visit()
    opened(page, "Compare")
    page.wait_for_function("() => document.querySelector('#compare-mode input[value=twin]')?.disabled")
    assert "none is installed" in page.locator("#compare-mode").inner_text()
    page.locator("#compare-generate").click()
    page.wait_for_function("() => document.querySelectorAll('.compare .viewer-ticks i[data-made]').length >= 3")
    assert page.locator(".compare-side").count() == 3
    page.wait_for_selector(".compare[data-state=done]", timeout=60_000)
    page.wait_for_timeout(300)
    labels = page.locator(".compare-side figcaption").all_inner_texts()
    assert labels == ["Halton", "Confidence", "Random"]
    rates = page.locator(".compare-numbers > div:nth-child(3) dd").all_inner_texts()
    assert all(float(rate) > 0 for rate in rates)
    page.locator(".compare .viewer-ticks").press("Home")
    earlier = page.locator(".compare-numbers > div:first-child dd").all_inner_texts()
    page.locator(".compare .viewer-ticks").press("End")
    later = page.locator(".compare-numbers > div:first-child dd").all_inner_texts()
    assert all(int(a.replace(",", "")) < int(b.replace(",", "")) for a, b in zip(earlier, later, strict=True))

    page.locator("#compare-mode input[value=sweep]").check()
    unfold(page, "How")
    page.locator("#compare-many-steps textarea, #compare-many-steps input").fill("1, 3")
    page.locator("#compare-many-guidance textarea, #compare-many-guidance input").fill("0, banana")
    page.locator("#compare-generate").click()
    page.wait_for_function("() => document.getElementById('compare-notice')?.textContent")
    assert page.locator("#compare-notice").inner_text() == "Guidance must be a number from 0 to 10, not banana."
    page.locator("#compare-many-guidance textarea, #compare-many-guidance input").fill("0, 2")
    page.locator("#compare-generate").click()
    page.wait_for_selector(".compare[data-state=done] .compare-sheet img >> nth=3", timeout=60_000)
    name, content = saved(page, page.locator(".compare [data-save=csv]"))
    assert name.endswith("-sweep.csv") and len(content.decode().splitlines()) == 5
    name, content = saved(page, page.locator(".compare [data-save=png]"))
    assert open_picture(content).width > 2 * 128
    page.locator("[data-cell='1,1']").click()
    page.locator(".compare-use").click()
    page.wait_for_function("() => document.querySelector('#image-stage')?.offsetParent")
    unfold(page, "How")
    page.wait_for_function("() => document.querySelector('#image-steps input')?.value === '3'")


def test_a_model_and_its_twin_run_side_by_side(browser, with_twin):
    context = browser.new_context()
    page = context.new_page()
    page.goto(with_twin.url)
    opened(page, "Compare")
    page.locator("#compare-generate").click()
    page.wait_for_selector(".compare[data-state=done]", timeout=60_000)
    assert page.locator(".compare-side figcaption").all_inner_texts() == ["PGM", "MaskGIT"]
    assert "times as many codes as PGM" in page.locator(".compare-verdict").inner_text()
    context.close()


def test_codes_of_a_dropped_picture_can_be_looked_at_and_swapped(visit, served):
    page = visit()
    opened(page, "Tokens")
    page.locator("#tokens-current").click()
    page.wait_for_function("() => document.getElementById('tokens-notice')?.textContent.includes('generate one there')")
    drop(page, png_of(served.pipeline.pictures("owl", seed=3)[0].resize((200, 128))), ".tokens")
    page.wait_for_selector(".tokens[data-state=done]", timeout=45_000)
    assert page.locator(".tokens .viewer-title").inner_text() == "dropped.png"
    assert "dB" in page.locator(".tokens [data-number=psnr]").inner_text()
    canvas = page.locator(".tokens .viewer-canvas")
    canvas.press("ArrowRight")
    canvas.press("Enter")
    assert page.locator(".tokens-cell h2").inner_text().startswith("Code ")
    page.locator(".tokens-entries button").nth(8).wait_for()
    rebuilt = "document.querySelector('.tokens-strip [data-shows=rebuilt]').toDataURL()"
    before = page.evaluate(f"() => {rebuilt}")
    page.locator(".tokens-number input").fill("4000")
    page.locator(".tokens-number button").click()
    page.wait_for_function(f"(was) => {rebuilt} !== was", arg=before)
    assert page.locator(".tokens [data-number=swapped]").inner_text() == "1"
    assert page.locator(".tokens-cell h2").inner_text() == "Code 4000"
    page.locator(".tokens-reset").click()
    page.wait_for_function(f"(was) => {rebuilt} === was", arg=before)
    drop(page, b"\x89PNG not really", ".tokens")
    page.wait_for_function(
        "() => document.getElementById('tokens-notice').textContent.includes('damaged')"
        " || document.getElementById('tokens-notice').textContent.includes('not a picture')"
    )


def test_past_pictures_links_and_dropped_files_bring_settings_back(visit, served):
    page = visit()
    settings = {"model": "fake", "class_id": "whale", "style": "Ink", "seed": 41, "steps": 5, "sampler": "random"}
    drop(page, png_of(Image.new("RGB", (8, 8)), **settings))
    page.wait_for_function("() => document.querySelector('#image-class input')?.value === 'whale'")
    generate(page)
    first = pixels(page)
    assert page.locator("#image-viewer .viewer-seed").inner_text() == "Seed 41"

    page.reload()
    page.wait_for_selector(".history-strip button")
    page.locator(".history-strip button").first.click()
    assert "Seed 41" in page.locator(".history-about").inner_text()
    name, content = saved(page, page.locator("[data-past=save]"))
    assert name == "whale-ink-seed41.png" and read_settings(io.BytesIO(content))["steps"] == 5
    expected = served.pipeline.pictures("whale", style="Ink", seed=41, steps=5)[0]
    assert np.array_equal(np.asarray(open_picture(content)), np.asarray(expected))
    page.locator("[data-past=again]").click()
    page.wait_for_function("() => document.querySelector('#image-class input')?.value === 'whale'")

    link = page.evaluate("() => JSON.parse(localStorage.getItem('pgm-image-history'))[0].link")
    page.goto(f"{served.url}?{link}")
    page.wait_for_function("() => document.querySelector('#image-class input')?.value === 'whale'")
    page.wait_for_function("() => document.querySelector('.viewer-empty')?.textContent.includes('came with the link')")
    generate(page)
    assert np.array_equal(pixels(page), first)
    assert page.locator(".history-strip button").count() == 1, "the same picture is kept once"

    page.goto(f"{served.url}?class_id=unicorn&seed=3")
    page.wait_for_function("() => document.getElementById('image-notice')?.textContent")
    notice = page.locator("#image-notice").inner_text()
    assert notice == "The model fake has no class and style called unicorn."
    drop(page, png_of(Image.new("RGB", (8, 8))))
    page.wait_for_function("() => document.getElementById('image-notice')?.textContent.includes('not a PNG saved')")
    page.get_by_role("button", name="Clear").click()
    page.get_by_role("button", name="Really clear?").click()
    assert page.locator(".history-strip button").count() == 0
    assert json.loads(page.evaluate("() => localStorage.getItem('pgm-image-history')")) == []


def test_all_past_pictures_are_downloaded_together(visit):
    page = visit()
    page.get_by_role("radio", name="2", exact=True).check()
    generate(page)
    name, content = saved(page, page.get_by_role("button", name="Download all"))
    assert name == "pictures.zip" and len(zipfile.ZipFile(io.BytesIO(content)).namelist()) == 2


def test_nothing_is_kept_of_a_visitor_who_has_left(browser, served):
    context = browser.new_context()
    page = context.new_page()
    page.goto(served.url)
    page.get_by_role("button", name="Generate", exact=True).wait_for()
    sessions = served.page.app.state_holder.session_data
    others = set(sessions)
    generate(page)
    [mine] = [sessions[key] for key in set(sessions) - others]
    assert any(isinstance(value, dict) and "steps" in value for value in mine.state_data.values())
    context.close()
    for _ in range(50):
        if not mine.state_data and not mine.config_values:
            return
        time.sleep(0.1)
    pytest.fail("the run of a visitor who left is still held")
