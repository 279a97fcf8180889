"""Shared by the page's tests: the stand-in pipeline and a served page."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from gradio import Blocks

sys.path.insert(0, str(Path(__file__).parent))

from fake_pipeline import FakePipeline  # noqa: E402  the path above has to come first

from app.limits import Limits  # noqa: E402
from app.page import build, launch_settings  # noqa: E402


@dataclass
class Served:
    """A page that is being served from this process, and the pipeline behind it."""

    url: str
    pipeline: FakePipeline
    page: Blocks


def _serve(pipeline: FakePipeline, limits: Limits, *others: FakePipeline) -> Iterator[Served]:
    page = build(pipelines={one.info.name: one for one in (pipeline, *others)}, limits=limits)
    try:
        _, url, _ = page.launch(
            **launch_settings(), prevent_thread_lock=True, quiet=True, inbrowser=False, ssr_mode=False
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
def crowded() -> Iterator[Served]:
    """A page whose line holds one visitor, over a slow model."""
    yield from _serve(FakePipeline(step_seconds=0.3), Limits(queue_size=1))


@pytest.fixture
def pipeline() -> FakePipeline:
    return FakePipeline(step_seconds=0.0)


@pytest.fixture
def with_twin() -> Iterator[Served]:
    """A page with a partition model and its masked twin."""
    pipeline = FakePipeline(step_seconds=0.03)
    yield from _serve(pipeline, Limits(), FakePipeline(0.05, "fake-maskgit", twin_of=pipeline))
