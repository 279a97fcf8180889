"""The browser's copy of a reveal holds every step, exactly, and closing it frees the worker."""

import json

import numpy as np
import torch

from app.reveal import picture_at, reveal
from app.settings import Settings

FOUR = Settings("fake", "owl", "Flat", num_images=3, steps=8, seed=11)


def test_the_first_value_has_no_step_and_the_last_has_all(pipeline):
    values = list(reveal(pipeline, FOUR))
    assert [len(value["steps"]) for value in values] == list(range(9))
    assert [value["done"] for value in values] == [False] * 8 + [True]
    assert len({value["run"] for value in values}) == 1
    assert values[0]["seeds"] == [11, 12, 13]


def test_values_only_grow_and_are_plain_json(pipeline):
    values = [json.loads(json.dumps(value)) for value in reveal(pipeline, FOUR)]
    for before, after in zip(values, values[1:], strict=False):
        assert after["steps"][: len(before["steps"])] == before["steps"]


def test_new_cells_and_codes_rebuild_every_step(pipeline):
    steps = list(pipeline.steps(pipeline.request(**FOUR.arguments())))
    *_, value = reveal(pipeline, FOUR)
    codes = torch.full((3, 256), -1)
    for step, record in zip(steps, value["steps"], strict=True):
        for picture in range(3):
            codes[picture, record["filled"][picture]] = torch.tensor(record["codes"][picture])
        assert torch.equal(codes, step.codes)
        assert record["known"] == int(step.known[0].sum())
        assert (record["computed"], record["masked"]) == (step.computed, step.computed_masked)


def test_small_pictures_are_kept_without_loss_at_every_step(pipeline):
    steps = list(pipeline.steps(pipeline.request(**FOUR.arguments())))
    *_, value = reveal(pipeline, FOUR)
    for index, step in enumerate(steps):
        for picture, expected in enumerate(pipeline.decode(step.codes)):
            assert np.array_equal(np.asarray(picture_at(value, index, picture)), np.asarray(expected))


def test_one_decode_per_step_and_none_for_looking_back(pipeline):
    decoded = []
    decode = pipeline.decode
    pipeline.decode = lambda codes: decoded.append(len(codes)) or decode(codes)
    *_, value = reveal(pipeline, FOUR)
    picture_at(value, 2, 1)
    assert decoded == [3] * 8


def test_seconds_leave_out_what_happens_between_steps(pipeline):
    import time

    pipeline.step_seconds = 0.01
    seconds = 0.0
    for value in reveal(pipeline, Settings("fake", "owl", steps=4)):
        time.sleep(0.1)
        seconds = value["steps"][-1]["seconds"] if value["steps"] else 0.0
    assert 0.03 < seconds < 0.2


def test_closing_a_reveal_closes_the_pipelines_generator(pipeline):
    values = reveal(pipeline, FOUR)
    for _ in range(4):
        next(values)
    values.close()
    assert (pipeline.started, pipeline.closed, pipeline.steps_run) == (1, 1, 3)
    assert len(list(reveal(pipeline, FOUR))) == 9
