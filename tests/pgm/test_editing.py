"""Starting from codes that are already known: they stay, and every row is what it would be alone."""

import pytest
import torch

from pgm.orders import order_names

LABELS, SEEDS = [1, 2, 3, 4], [5, 6, 7, 8]


@pytest.fixture(scope="module", params=["partition", "interleaved", "summary", "masked"])
def model(request, partition, masked):
    return {
        "partition": partition,
        "interleaved": lambda: partition(decoder_mode="interleave", registers=4),
        "summary": lambda: partition(query_mode="learn+freqs+logsumexp"),
        "masked": masked,
    }[request.param]()


@pytest.fixture
def ragged():
    """Four rows with 0, 3, 13 (fewer left than steps) and 16 codes known."""
    known = torch.full((4, 16), -1)
    known[1, [2, 9, 14]] = torch.tensor([3, 1, 4])
    known[2, 3:] = torch.arange(13) % 12
    known[3] = torch.arange(16) % 12
    return known


@pytest.mark.parametrize("order", order_names())
def test_known_codes_stay(model, steps_of, ragged, order):
    for step in steps_of(model, LABELS, SEEDS, ragged, order=order, guidance_scale=2.0, resample_known=True):
        assert torch.equal(step.codes[ragged >= 0], ragged[ragged >= 0])
        assert not (step.filled & (ragged >= 0)).any()
    assert ((step.codes >= 0) & (step.codes < 12)).all()


@pytest.mark.parametrize("schedule", ["linear", "constant", "cosine"])
@pytest.mark.parametrize(
    ("order", "mode"),
    [
        *((order, "linear") for order in order_names()),
        *(("confidence", mode) for mode in ("warmup", "random", "none")),
    ],
)
def test_ragged_rows_equal_the_rows_run_alone(model, steps_of, ragged, order, schedule, mode):
    config = {"order": order, "guidance_scale": 2.0, "guidance_schedule": schedule, "confidence_mode": mode}
    together = steps_of(model, LABELS, SEEDS, ragged, **config)
    for k in range(4):
        alone = steps_of(model, LABELS[k : k + 1], SEEDS[k : k + 1], ragged[k : k + 1], **config)
        assert torch.equal(alone[-1].codes[0], together[-1].codes[k])
        for step, own in zip(together, alone, strict=False):
            assert torch.equal(step.filled[k], own.filled[0])


def test_what_is_known_is_seen(model, steps_of):
    known = torch.full((1, 16), -1)
    results = set()
    for code in range(12):
        known[0, :4] = code
        results.add(tuple(steps_of(model, [1], [0], known)[-1].codes[0, 4:].tolist()))
    assert len(results) > 1


@pytest.mark.parametrize("order", order_names())
def test_one_code_left(model, steps_of, order):
    known = (torch.arange(16) % 12)[None].clone()
    known[0, 6] = -1
    steps = steps_of(model, [1], [0], known, order=order, guidance_scale=2.0)
    assert len(steps) == 1 and steps[0].filled.nonzero().tolist() == [[0, 6]]


def test_everything_known_runs_nothing(model, steps_of, ragged):
    full = ragged[3:]
    steps = steps_of(model, [1], [0], full)
    assert len(steps) == 1 and steps[0].computed == 0 and torch.equal(steps[0].codes, full)
