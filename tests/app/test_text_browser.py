"""A visitor at the text tab in a real browser: generate, stop, fill blanks, compare, scrub, copy, download, walk."""

import json
import re

import pytest
from fake_pipeline import FakePipeline
from fake_text_pipeline import FakeTextPipeline, entry
from visitor import faults_found

from app.limits import Limits
from app.page import build, launch_settings

pytestmark = pytest.mark.browser
MADE = "() => document.querySelectorAll('.text .viewer-ticks i[data-made]').length"
WORDS = """(which) => [...document.querySelectorAll('.text-words')[which].querySelectorAll('.text-cell')]
  .filter((cell) => ['given', 'known'].includes(cell.dataset.state)).map((cell) => cell.textContent).join('')"""


@pytest.fixture(scope="module")
def writers():
    return {kind: FakeTextPipeline(kind, 0.04) for kind in ("pgm", "mdlm", "rmdm")}


@pytest.fixture(scope="module")
def address(writers):
    page = build(
        {"fake": FakePipeline(0.02)}, Limits(), text_pipelines={one.info.name: one for one in writers.values()}
    )
    try:
        yield page.launch(
            **launch_settings(page), prevent_thread_lock=True, quiet=True, inbrowser=False, ssr_mode=False
        )[1]
    finally:
        page.close(verbose=False)


@pytest.fixture
def visit(browser, address):
    """Opens the text tab and, at the end, demands that the console stayed clean."""
    contexts, faults = [], []

    def note(message):
        if message.type in ("error", "warning"):
            faults.append(message.text)

    def open_tab(width=1440, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True, **options)
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(address)
        tab = page.get_by_role("tab", name="Text", exact=True)
        tab.wait_for()
        tab.click()
        page.wait_for_function("() => document.querySelector('.text .viewer-ticks')?.children.length > 0")
        return page

    yield open_tab
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture
def slow(writers, monkeypatch):
    """Steps that take their time, so that a test can look between two of them."""
    monkeypatch.setattr(writers["pgm"], "step_seconds", 0.8)


def generate(page, wait_for_the_end=True):
    page.evaluate(
        """() => {
             const viewer = document.querySelector('.text');
             window.finished = new Promise((resolve) => new MutationObserver(() => viewer.dataset.state === 'done'
               && resolve()).observe(viewer, { attributes: true, attributeFilter: ['data-state'] }));
           }"""
    )
    page.locator("#text-generate").click()
    if wait_for_the_end:
        page.evaluate("() => window.finished")


def write(page, prompt):
    page.locator("#text-prompt textarea").fill(prompt)


def view(page, name):
    page.locator(".text .viewer-views button", has_text=name).click()


def unfold(page, name):
    page.locator("#text-rail button.label-wrap", has_text=name).click()


def number(page, name):
    return page.locator(f'.text [data-number="{name}"]').inner_text()


def fixed_seed(page, seed):
    unfold(page, "More")
    page.locator("#text-randomise input").uncheck()
    page.locator("#text-seed input").fill(str(seed))


def saved(page, kind):
    with page.expect_download() as download:
        page.locator(f".text [data-save={kind}]").click()
    return download.value.suggested_filename, download.value.path().read_text(encoding="utf-8")


def test_words_stream_in_step_by_step_and_the_downloads_hold_them(visit, slow):
    page = visit()
    assert "Write a beginning" in page.locator(".text .viewer-empty").inner_text()
    write(page, "lantern (noun): ")
    fixed_seed(page, 5)
    generate(page, wait_for_the_end=False)
    cells = []
    for count in (2, 7, 12):
        page.wait_for_function(f"() => ({MADE})() >= {count}")
        cells.append(page.locator(".text-cell").count())
        assert page.locator(".text-cell[data-new]").count() > 0
    page.wait_for_selector(".text[data-state=done]")
    assert set(cells) == {page.locator(".text-cell").count()} == {40}, "the number of cells is constant"
    assert page.locator(".text-cell[data-new]").count() == 0, "the finished text carries no marks"
    expected = "lantern (noun): " + entry(5).partition(": ")[2]
    assert page.evaluate(WORDS, 0) == expected
    assert "".join(page.locator(".text-cell[data-state=given]").all_inner_texts()) == "lantern (noun):"
    assert number(page, "step") == "16 of 16" and number(page, "known") == "40 of 40"
    assert re.fullmatch(r"\d+ vs \d+ masked", number(page, "computed"))
    assert page.locator(".text-live").inner_text() == f"Finished: {expected}"

    assert saved(page, "txt") == ("lantern-noun-seed5.txt", expected + "\n")
    name, content = saved(page, "json")
    (model,) = json.loads(content)["models"]
    assert name == "lantern-noun-seed5.json" and model["texts"] == [{"label": "Seed 5", "seed": 5, "text": expected}]
    assert len(model["steps"]) == 16 and model["settings"]["sampler"] == "uniform"


def test_copy_takes_the_text_along(visit):
    page = visit()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    fixed_seed(page, 5)
    generate(page)
    page.locator(".text-copy").click()
    page.wait_for_function("() => document.querySelector('.text-copy').textContent === 'Copied'")
    assert page.evaluate("() => navigator.clipboard.readText()") == page.evaluate(WORDS, 0)


def test_scrubbing_asks_the_server_nothing_and_an_earlier_step_can_be_saved(visit, writers):
    page = visit()
    fixed_seed(page, 3)
    generate(page)
    whole, run = page.evaluate(WORDS, 0), writers["pgm"].steps_run
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    ticks = page.locator(".text .viewer-ticks")
    ticks.press("ArrowLeft")
    assert number(page, "step") == "15 of 16" and page.locator(".text-cell[data-new]").count() > 0
    ticks.press("Home")
    assert number(page, "step") == "1 of 16"
    assert ticks.get_attribute("aria-valuetext").startswith("Step 1 of 16, ")
    # Where the end of the text came first, cells behind it that are not known yet are "ahead".
    assert page.locator(".text-cell[data-state=unknown], .text-cell[data-state=ahead]").count() > 10
    ticks.press("End")
    assert page.evaluate(WORDS, 0) == whole
    assert requests == [] and writers["pgm"].steps_run == run
    ticks.press("Home")
    ticks.press("PageUp")
    name, content = saved(page, "txt")
    assert "-step3" in name and "____" in content


def test_stop_frees_the_worker_and_keeps_what_is_known(visit, writers, slow):
    page = visit()
    closed = writers["pgm"].closed
    fixed_seed(page, 5)
    generate(page, wait_for_the_end=False)
    page.wait_for_function(f"() => ({MADE})() >= 3")
    page.locator("#text-stop").click()
    page.wait_for_selector(".text[data-state=stopped]")
    page.locator("#text-generate").wait_for()
    assert "stopped at step" in page.locator(".text .viewer-title").inner_text()
    assert page.locator(".text-live").inner_text().startswith("Stopped")
    for _ in range(50):
        if writers["pgm"].closed > closed:
            break
        page.wait_for_timeout(100)
    assert writers["pgm"].closed == closed + 1 and writers["pgm"].running == 0
    writers["pgm"].step_seconds = 0.0
    _, content = saved(page, "txt")
    assert "____" in content and int(number(page, "known").split()[0]) > 0
    generate(page)
    assert number(page, "known") == "40 of 40"


def test_blanks_are_filled_and_the_rest_is_kept_to_the_letter(visit):
    page = visit()
    head, middle, tail = "<b>a</b> &amp; ", " of 👋🏽 the ", "'s [x]"
    write(page, f"{head}____{middle}____{tail}")
    generate(page)
    text = page.evaluate(WORDS, 0)
    assert text.startswith(head) and text.endswith(tail) and middle in text and "____" not in text
    given = "".join(page.locator(".text-cell[data-state=given]").all_text_contents())
    assert given.replace(" ", "") == (head + middle + tail).replace(" ", "")
    assert page.locator(".text-words b b, .text-words script").count() == 0, "markup is shown, not rendered"


def test_an_example_fills_the_prompt(visit):
    page = visit()
    page.locator(".text-examples button", has_text="a person who").click()
    page.wait_for_function("() => document.querySelector('#text-prompt textarea').value.includes('a person who')")
    generate(page)
    assert " (noun): a person who" in page.evaluate(WORDS, 0)


def test_the_order_shows_as_a_heat_map_and_tokens_one_by_one(visit):
    page = visit()
    fixed_seed(page, 3)
    generate(page)
    view(page, "Order")
    tints = page.evaluate(
        "() => [...document.querySelectorAll('.text-cell[data-state=known] b')].map((b) => b.style.backgroundColor)"
    )
    assert len(set(tints)) >= 4 and all(tints)
    assert page.locator(".text-cell[data-state=known]").first.get_attribute("title").startswith("Step ")
    view(page, "Tokens")
    assert "␣" in page.locator(".text-words").inner_text() and "end" in page.locator(".text-words").inner_text()
    view(page, "Text")
    assert page.evaluate("() => document.querySelector('.text-cell[data-state=known] b').style.cssText") == ""


def test_models_write_side_by_side(visit):
    page = visit()
    page.locator("#text-mode input[value=compare]").check()
    assert page.locator("#text-model").is_hidden()
    assert page.locator(".text-side h3").all_inner_texts() == ["PGM", "MDLM", "RMDM"]
    fixed_seed(page, 3)
    generate(page, wait_for_the_end=False)
    page.wait_for_function(f"() => ({MADE})() >= 3")
    page.wait_for_selector(".text[data-state=done]", timeout=60_000)
    shown = page.locator(".text-side .compare-numbers div:first-child dd").all_inner_texts()
    work = [int(words.replace(",", "")) for words in shown]
    assert work[0] < work[1] == work[2]
    rates = page.locator(".text-side .compare-numbers > div:nth-child(3) dd").all_inner_texts()
    assert all(float(words) > 0 for words in rates)
    assert "times as many tokens as PGM" in page.locator(".text .compare-verdict").inner_text()
    assert page.evaluate(WORDS, 0) == page.evaluate(WORDS, 1)
    _, content = saved(page, "json")
    assert [model["kind"] for model in json.loads(content)["models"]] == ["PGM", "MDLM", "RMDM"]


def test_a_z_is_kept_and_walked_from(visit, writers):
    page = visit()
    assert page.locator("#text-latent").is_hidden(), "only RMDM has a z"
    page.locator("#text-model input").click()
    page.get_by_role("option", name="RMDM").click()
    page.locator("#text-latent").wait_for()
    page.locator("#text-count input[value='2']").check()
    generate(page)
    seed = int(page.locator(".text-tools span").nth(1).inner_text().split()[1])
    page.locator(".text-tools button", has_text="Keep z").nth(1).click()
    page.wait_for_function("() => document.querySelector('#text-z-mode input[value=keep]')?.checked")
    assert f"Kept: z of seed {seed}." in page.locator("#text-z-mode").inner_text()
    generate(page)
    assert (writers["rmdm"].requests[-1].z == writers["rmdm"].draw_latents([seed])).all()
    page.locator("#text-z-mode input[value=walk]").check()
    generate(page)
    labels = page.locator(".text-tools span").all_inner_texts()
    assert labels == [f"z of seed {seed}", "25% of the way", "50% of the way", "75% of the way", "z of seed 1"]
    assert len(set(writers["rmdm"].requests[-1].seeds)) == 1


def test_bad_input_shows_one_sentence_beside_the_button_and_the_next_run_works(visit):
    page = visit()
    for prompt, words in (("word " * 60, "do not fit."), ("", "")):
        write(page, prompt)
        generate(page, wait_for_the_end=not words)
        if words:
            page.wait_for_function("() => document.getElementById('text-notice')?.textContent")
            page.locator("#text-generate").wait_for()
        notice = page.locator("#text-notice").inner_text()
        assert notice.endswith(words) and notice.count(".") == bool(words)
    assert page.locator(".toast-body").count() == 0


def test_a_seed_is_kept_and_makes_the_same_text_again(visit):
    page = visit()
    generate(page)
    text = page.evaluate(WORDS, 0)
    page.locator(".text [data-reuse=seed]").click()
    unfold(page, "More")
    page.wait_for_function("() => document.querySelector('#text-randomise input')?.checked === false")
    generate(page)
    assert page.evaluate(WORDS, 0) == text


def test_everything_is_labelled_and_reached_by_keyboard(visit):
    page = visit()
    page.locator("#text-prompt textarea").focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.id") == "text-generate":
            break
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.id === 'text-stop'")
    page.wait_for_selector(".text[data-state=done]", timeout=60_000)
    page.wait_for_function("() => document.activeElement.id === 'text-generate'")
    seen = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("() => document.activeElement.className + '|' + document.activeElement.textContent"))
    for wanted in ("viewer-ticks", "viewer-play", "text-copy", "Order", "Save .txt", ".json", "Remix"):
        assert any(wanted in found for found in seen), f"{wanted} is not reached: {seen}"
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('#text-studio :is(button, input, textarea, [role=slider])')]
             .filter((one) => one.offsetParent && !(one.textContent.trim() || one.ariaLabel || one.labels?.length
                || one.title || one.getAttribute('aria-labelledby')))
             .map((one) => one.outerHTML.slice(0, 120))"""
    )
    assert nameless == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_and_marks_can_be_read(visit, scheme):
    page = visit(color_scheme=scheme, reduced_motion="reduce")
    generate(page)
    page.locator(".text .viewer-ticks").press("PageDown")
    ratios = page.evaluate(
        """() => {
             const light = (colour) => {
               const [r, g, b] = colour.match(/[\\d.]+/g).map((v) => { const c = v / 255;
                 return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
               return 0.2126 * r + 0.7152 * g + 0.0722 * b;
             };
             const paper = (one) => { for (; one; one = one.parentElement) {
               const found = getComputedStyle(one).backgroundColor;
               if (!/, 0\\)$|transparent/.test(found)) return found; } };
             const ratio = (one) => { const [a, b] = [light(getComputedStyle(one).color), light(paper(one))];
               return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); };
             const found = [];
             for (const name of ['text', 'tokens', 'order']) {
               document.querySelector(`.text [data-view=${name}]`).click();
               for (const one of document.querySelectorAll('.text-cell[data-state=known] b, .text-cell[data-new] b,'
                   + '.text-cell[data-state=given] b, .text .viewer-note p, .text dt, .text dd, .viewer-settings'))
                 if (one.offsetParent && one.textContent.trim()) found.push([ratio(one), name, one.textContent]);
             }
             return found.sort((a, b) => a[0] - b[0]).slice(0, 3);
           }"""
    )
    assert ratios[0][0] >= 4.5, ratios


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_nothing_scrolls_sideways_and_the_timeline_does_not_jump(visit, width):
    page = visit(width=width)
    wide = "() => [document.documentElement.scrollWidth, window.innerWidth]"
    place = "() => Math.round(document.querySelector('.text .viewer-timeline').getBoundingClientRect().top + scrollY)"
    for _ in range(4):  # texts of several lengths: the seed is drawn anew
        generate(page, wait_for_the_end=False)
        page.wait_for_function(f"() => ({MADE})() >= 1")
        before = page.evaluate(place)
        page.wait_for_selector(".text[data-state=done]", timeout=60_000)
        assert page.evaluate(place) == before
    page.locator("#text-mode input[value=compare]").check()
    generate(page)
    for name in ("Tokens", "Order", "Text"):
        view(page, name)
        shown, room = page.evaluate(wide)
        assert shown <= room


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_finished_texts_can_be_seen_and_named_in_every_view(visit, axe, scheme):
    page = visit(color_scheme=scheme, reduced_motion="reduce")
    page.add_script_tag(path=axe)
    faults = {}
    generate(page)
    for name in ("Text", "Tokens", "Order"):
        view(page, name)
        faults[name] = faults_found(page)
    view(page, "Text")
    page.locator("#text-mode input[value=compare]").check()
    generate(page)
    faults["side by side"] = faults_found(page)
    assert not any(faults.values()), "\n".join(f"{name}: {one}" for name, many in faults.items() for one in many)
