"""Shared by the page's tests: the stand-in pipeline, a served page, and a visitor with a browser."""

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gradio import Blocks

sys.path.insert(0, str(Path(__file__).parent))

from fake_pipeline import FakePipeline  # noqa: E402  the path above has to come first

from app.limits import Limits  # noqa: E402
from app.page import build, launch_settings  # noqa: E402

BROWSER_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]


@dataclass
class Served:
    """A page that is being served from this process, and the pipeline behind it."""

    url: str
    pipeline: FakePipeline
    page: Blocks


def _serve(
    pipeline: FakePipeline, limits: Limits, *others: FakePipeline, absent: Mapping[str, str] | None = None
) -> Iterator[Served]:
    page = build(pipelines={one.info.name: one for one in (pipeline, *others)}, limits=limits, absent=absent)
    try:
        _, url, _ = page.launch(
            **launch_settings(page), prevent_thread_lock=True, quiet=True, inbrowser=False, ssr_mode=False
        )
        yield Served(url, pipeline, page)
    finally:
        page.close(verbose=False)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    os.environ["GRADIO_TEMP_DIR"] = str(tmp_path_factory.mktemp("gradio"))
    try:
        yield from _serve(FakePipeline(step_seconds=0.06), Limits())
    finally:
        os.environ.pop("GRADIO_TEMP_DIR")


@pytest.fixture
def slow(served: Served, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Steps take their time, so that a busy machine can look, or stop, between two of them. Calling it ends that."""
    usual = served.pipeline.step_seconds
    monkeypatch.setattr(served.pipeline, "step_seconds", 0.8)
    return lambda: monkeypatch.setattr(served.pipeline, "step_seconds", usual)


@pytest.fixture
def crowded() -> Iterator[Served]:
    """A page whose line holds one visitor, over a slow model."""
    yield from _serve(FakePipeline(step_seconds=0.3), Limits(queue_size=1))


@pytest.fixture
def patient() -> Iterator[Served]:
    """A page whose line is long and whose memory of visitors is short, over a model that takes no time."""
    yield from _serve(FakePipeline(step_seconds=0.0), Limits(queue_size=400, max_sessions=20))


@pytest.fixture
def pipeline() -> FakePipeline:
    return FakePipeline(step_seconds=0.0)


@pytest.fixture
def with_absent() -> Iterator[Served]:
    """A page that knows of a model which is not on this machine."""
    absent = {"Far away 256": "not on this machine: at least 2.3 GB to download"}
    yield from _serve(FakePipeline(step_seconds=0.0), Limits(), absent=absent)


@pytest.fixture
def with_twin() -> Iterator[Served]:
    """A page with a partition model and its masked twin."""
    pipeline = FakePipeline(step_seconds=0.03)
    yield from _serve(pipeline, Limits(), FakePipeline(0.05, "fake-maskgit", twin_of=pipeline))


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    """A headless Chromium driven by playwright."""
    playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=BROWSER_FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """Path of axe-core's script, which the package axe-playwright-python ships."""
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None or not found.submodule_search_locations:
        pytest.skip("axe-playwright-python is not installed")
    return str(Path(found.submodule_search_locations[0]) / "axe.min.js")


@pytest.fixture
def visit(browser: Any, served: Served) -> Iterator[Callable[..., Any]]:
    """Opens the served page, as wide and high as asked and with further options of a browser context; at the end it
    demands that the console stayed clean.
    """
    contexts, faults = [], []

    def note(message: Any) -> None:
        if message.type in ("error", "warning"):
            faults.append(message.text)

    def open_page(width: int = 1440, height: int = 900, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True, **options)
        context.set_default_timeout(45_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(served.url)
        page.wait_for_selector(".viewer-canvas")
        page.get_by_role("button", name="Generate", exact=True).wait_for()
        page.wait_for_function("() => document.querySelector('.viewer-ticks').children.length > 0")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []
