"""Models in bounded memory: loaded once and lazily, the least recently used given up, absent ones explained."""

import gc
import threading
import weakref
from dataclasses import replace

import pytest
from fake_pipeline import FakePipeline

import pgm_image
from app.about import model_table
from app.limits import Limits
from app.model_cache import ModelCache
from app.models import Models, warm_up
from app.page import build


class Weights:
    """Stands for what takes up memory."""


class Loader:
    """Loads a model by name and counts how often."""

    def __init__(self) -> None:
        self.loads: list[str] = []
        self.alive: list[weakref.ref] = []

    def __call__(self, name: str) -> Weights:
        self.loads.append(name)
        weights = Weights()
        self.alive.append(weakref.ref(weights))
        return weights

    def count(self) -> int:
        """Models that are still held by anyone."""
        return sum(one() is not None for one in self.alive)


def test_the_least_recently_used_model_makes_room():
    loader, cache = Loader(), ModelCache(2)
    for name in ("a", "b", "a", "c", "a", "b"):
        cache.get(name, lambda name=name: loader(name))
        assert loader.count() <= 2
    assert loader.loads == ["a", "b", "c", "b"], "a was used again before c came, so b had to go"
    assert cache.names() == ["a", "b"]


def test_the_old_model_is_gone_before_the_new_one_is_read():
    loader, cache = Loader(), ModelCache(1)
    cache.get("a", lambda: loader("a"))

    def load() -> Weights:
        assert loader.count() == 0
        return loader("b")

    cache.get("b", load)
    assert loader.count() == 1


def test_a_run_keeps_the_model_it_works_with_until_it_ends():
    loader, cache = Loader(), ModelCache(1)
    in_use = cache.get("a", lambda: loader("a"))
    cache.get("b", lambda: loader("b"))
    assert loader.count() == 2
    del in_use
    gc.collect()
    assert loader.count() == 1


def test_visitors_who_come_at_once_share_one_load():
    loader, cache = Loader(), ModelCache(2)
    first_in, go_on = threading.Event(), threading.Event()
    found = []

    def slow() -> Weights:
        first_in.set()
        assert go_on.wait(10)
        return loader("a")

    visitors = [threading.Thread(target=lambda: found.append(cache.get("a", slow))) for _ in range(6)]
    for visitor in visitors:
        visitor.start()
    assert first_in.wait(10)
    assert cache.names() == [], "it is not there yet"
    assert cache.get("b", lambda: loader("b")), "nobody else waits for it"
    go_on.set()
    for visitor in visitors:
        visitor.join(10)
    assert loader.loads == ["b", "a"] and len(found) == 6 and len(set(map(id, found))) == 1


def test_a_load_that_fails_is_told_and_tried_again():
    cache = ModelCache(1)

    def fail() -> Weights:
        raise ValueError("the file is damaged")

    for _ in range(2):
        with pytest.raises(ValueError, match="the file is damaged"):
            cache.get("a", fail)
        assert cache.names() == []
    assert isinstance(cache.get("a", Weights), Weights)


def test_a_cache_without_room_is_refused():
    with pytest.raises(ValueError, match="most must be at least 1, got 0"):
        ModelCache(0)


@pytest.fixture
def three(monkeypatch):
    """Three models as if bundled with pgm_image, a published one that is not here, and what has been loaded."""
    infos = [replace(FakePipeline().info, name=name, title=name.upper()) for name in ("one", "two", "three", "far")]
    loaded: list[FakePipeline] = []

    def load(name: str) -> FakePipeline:
        loaded.append(FakePipeline(0.0, name))
        return loaded[-1]

    monkeypatch.setattr(pgm_image, "models", lambda public=False: infos, raising=False)
    monkeypatch.setattr(
        pgm_image, "unavailable_models", lambda download=True: {"far": "not on this machine: 2 GB"}, raising=False
    )
    monkeypatch.setattr(pgm_image.PGMPipeline, "from_pretrained", load)
    return loaded


def test_models_are_loaded_when_they_are_needed_and_at_most_so_many_are_kept(three):
    models = Models(most=2)
    assert three == [] and models.loaded() == []
    for name in ("one", "two", "one", "three"):
        assert models.pipeline(name).info.name == name
    assert [pipeline.info.name for pipeline in three] == ["one", "two", "three"]
    assert models.loaded() == ["one", "three"]


def test_the_page_loads_as_many_models_beforehand_as_asked_and_runs_as_many_steps(three):
    build(limits=Limits(warm_models=0))
    assert three == []
    build(limits=Limits(warm_models=2, warm_steps=3))
    assert [(one.info.name, one.steps_run, one.running) for one in three] == [("one", 3, 0), ("two", 3, 0)]
    three.clear()
    build(limits=Limits(warm_models=9, max_models=1))
    assert [one.info.name for one in three] == ["one"], "never more than there is room for"


def test_zero_gpu_loads_what_there_is_room_for_and_computes_nothing_beforehand(three, monkeypatch):
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    build(limits=Limits(warm_models=1, warm_steps=3, max_models=2))
    assert [(one.info.name, one.started) for one in three] == [("one", 0), ("two", 0)]


def test_a_warm_up_that_asks_for_more_steps_than_there_are_ends(pipeline):
    warm_up(pipeline, pipeline.request(None, steps=2), 50)
    assert (pipeline.steps_run, pipeline.running) == (2, 0)


def test_a_model_that_is_not_here_is_listed_with_the_reason_and_cannot_be_used(three):
    models = Models()
    assert models.names() == ["one", "two", "three"]
    assert models.absent() == {"far": "not on this machine: 2 GB"} and models.title("far") == "FAR"
    for use in (models.info, models.pipeline):
        with pytest.raises(ValueError, match="^model 'far' is not on this machine: 2 GB$"):
            use("far")
    assert "| FAR | Not on this machine: 2 GB. |" in model_table(models)
    page = build(limits=Limits(warm_models=0))
    [menu] = [block for block in page.blocks.values() if getattr(block, "elem_id", None) == "image-model"]
    assert menu.choices == [("ONE", "one"), ("TWO", "two"), ("THREE", "three"), ("FAR", "far")]
    assert menu.interactive


def test_published_models_that_are_not_here_are_told_without_asking_the_network(monkeypatch):
    from pgm_image import public_loading
    from pgm_image.public_models import PUBLIC_MODELS

    monkeypatch.setattr(public_loading, "hub_answers", lambda: pytest.fail("the hub was asked"))
    monkeypatch.setattr(public_loading, "is_offline", lambda: False)
    reasons = pgm_image.unavailable_models(download=False)
    assert set(reasons) == set(PUBLIC_MODELS)
    assert reasons["imagenet256-pgm-12-12"] == (
        "not on this machine: at least 2.3 GB to download from jdeschena/pgm and FoundationVision/LlamaGen"
    )


@pytest.mark.parametrize("name", ["PGM_WARM_MODELS", "PGM_WARM_STEPS"])
def test_a_warm_up_may_be_switched_off_but_not_be_negative(name):
    assert getattr(Limits.from_environment({name: "0"}), name.removeprefix("PGM_").lower()) == 0
    with pytest.raises(ValueError, match=f"{name} must be 0 or a positive int, got '-1'"):
        Limits.from_environment({name: "-1"})


def sized(name: str, parameters: int, twin_of: FakePipeline | None = None, **changes) -> FakePipeline:
    """A model of so many parameters; `changes` of its card."""
    pipeline = FakePipeline(0.0, name, twin_of=twin_of)
    pipeline.info = replace(pipeline.info, parameters=parameters, **changes)
    return pipeline


def test_a_twin_is_the_one_nearest_in_size():
    large, small = sized("a-large", 10_400_000), sized("b-small", 5_700_000)
    masked, tiny = sized("c-masked", 5_500_000, twin_of=small), sized("d-masked", 600_000, twin_of=small)
    other = sized("e-other", 5_500_001, classes=("cat",))
    models = Models({one.info.name: one for one in (large, small, masked, tiny, other)})
    assert models.twin("c-masked") == models.twin("d-masked") == "b-small"
    assert models.twin("a-large") == models.twin("b-small") == "c-masked"
    assert models.twin("e-other") is None


def test_of_two_equally_near_twins_the_first_is_taken():
    masked = sized("masked", 100, twin_of=FakePipeline())
    models = Models({one.info.name: one for one in (sized("one", 110), sized("two", 90), masked)})
    assert models.twin("masked") == "one"
