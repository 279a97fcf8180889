"""A cold page says which model it is loading, on the stage, until the first step comes."""

import threading

import pytest
from fake_pipeline import FakePipeline
from fake_text_pipeline import FakeTextPipeline

import pgm_image
import pgm_text
from app import compare
from app.compare_tab import run as run_compare
from app.edit_tab import image_result
from app.edit_tab import run as run_edit
from app.image_form import defaults
from app.image_tab import run as run_image
from app.limits import Limits
from app.models import Models
from app.page import build, launch_settings
from app.text_models import TextModels
from app.text_tab import run as run_text

LIMITS = Limits(warm_models=0)
WORDS = "() => document.querySelector('{} .viewer-title').textContent"


@pytest.fixture
def cold(monkeypatch):
    """Models that have to be loaded, a twin and a text model among them; loading waits for the event."""
    go_on = threading.Event()
    pgm = FakePipeline(0.0)
    pipelines = {"fake": pgm, "fake-maskgit": FakePipeline(0.0, "fake-maskgit", twin_of=pgm)}
    writer = FakeTextPipeline("pgm", 0.0)

    def load(name):
        assert go_on.wait(60)
        return pipelines[name]

    def load_text(name):
        assert go_on.wait(60)
        return writer

    monkeypatch.setattr(pgm_image, "models", lambda public=False: [one.info for one in pipelines.values()])
    monkeypatch.setattr(pgm_image, "unavailable_models", lambda download=True: {})
    monkeypatch.setattr(pgm_image.PGMPipeline, "from_pretrained", load)
    monkeypatch.setattr(pgm_text, "models", lambda: [writer.info])
    monkeypatch.setattr(pgm_text.TextPipeline, "from_pretrained", load_text)
    yield go_on
    go_on.set()


def said(rows):
    return [row[0]["loading"] for row in rows if "loading" in row[0]]


def test_every_kind_of_run_says_what_it_loads_and_only_when_it_has_to(cold):
    models, texts = Models(), TextModels()
    settings = defaults(models.info("fake"))
    cold.set()
    first = list(run_image(models, LIMITS, settings, False))
    assert said(first) == ["Loading model Drawn faces 64 …"] and "loading" in first[0][0]
    assert first[-1][0]["done"]
    assert said(run_image(models, LIMITS, settings, False)) == []
    picture = image_result(first[-1][0], None)
    form = {"mode": "variation", "model": "fake-maskgit"}
    assert said(run_edit(models, LIMITS, picture, {}, form)) == ["Loading model Drawn faces 64 …"]
    both = list(run_compare(Models(), LIMITS, compare.TWIN, settings, ("4", "1"), False))
    assert said(both) == ["Loading models Drawn faces 64 and Drawn faces 64 …"] and both[-1][0]["done"]
    assert said(run_compare(models, LIMITS, compare.ORDERS, settings, ("4", "1"), False)) == []
    form = {"prompt": "", "steps": 3}
    assert said(run_text(texts, LIMITS, form, None)) == ["Loading model Made-up dictionary, PGM …"]
    assert said(run_text(texts, LIMITS, form, None)) == []


def test_a_model_that_cannot_be_loaded_is_told_after_that(cold, monkeypatch):
    def fail(name):
        raise ValueError("model.safetensors is missing")

    monkeypatch.setattr(pgm_image.PGMPipeline, "from_pretrained", fail)
    models = Models()
    rows = list(run_image(models, LIMITS, defaults(models.info("fake")), False))
    assert [sorted(row[0]) for row in rows] == [["loading", "run"], ["error", "run"]]
    assert rows[1][0]["error"] == "Model.safetensors is missing."


@pytest.fixture
def visitor(cold, browser):
    """Someone who has just opened the cold page."""
    page = build(limits=LIMITS)
    context = browser.new_context()
    context.set_default_timeout(45_000)
    try:
        _, url, _ = page.launch(
            **launch_settings(page), prevent_thread_lock=True, quiet=True, inbrowser=False, ssr_mode=False
        )
        opened = context.new_page()
        opened.goto(url)
        yield opened
    finally:
        cold.set()
        context.close()
        page.close(verbose=False)


def test_the_stage_says_it_and_then_shows_what_comes(cold, visitor):
    for channel, words in (("image", "Drawn faces 64"), ("text", "Made-up dictionary, PGM")):
        cold.clear()
        visitor.get_by_role("tab", name=channel.capitalize(), exact=True).click()
        visitor.locator(f"#{channel}-generate").click()
        shown = WORDS.format(f"#{channel}-viewer")
        visitor.wait_for_function(f"() => ({shown})() === 'Loading model {words} …'")
        assert visitor.locator(f"#{channel}-viewer .viewer").get_attribute("data-state") == "waiting"
        cold.set()
        visitor.wait_for_selector(f"#{channel}-viewer .viewer[data-state=done]")
        assert "Loading" not in visitor.evaluate(shown)


def test_stop_while_a_model_is_loaded_leaves_an_empty_stage_that_works(cold, visitor):
    visitor.locator("#image-generate").click()
    visitor.wait_for_function(f"() => ({WORDS.format('#image-viewer')})().startsWith('Loading')")
    visitor.locator("#image-stop").click()
    visitor.wait_for_selector("#image-viewer .viewer[data-state=idle]")
    cold.set()
    visitor.wait_for_timeout(500)
    assert visitor.locator("#image-viewer .viewer").get_attribute("data-state") == "idle"
    visitor.locator("#image-generate").click()
    visitor.wait_for_selector("#image-viewer .viewer[data-state=done]")
