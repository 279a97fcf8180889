"""Whole generations with tiny networks: seeds, batches, and nothing left behind."""

import random

import numpy as np
import pytest
import torch

from pgm.models import make_predictor
from pgm.noise import draw_noise
from pgm.orders import order_names
from pgm.sampling import SamplingConfig, sample
from pgm.schedules import step_counts

CLASSES, SEEDS = [1, 2, 3, -1], [5, 6, 7, 8]


@pytest.fixture(scope="module", params=["partition", "interleaved", "summary", "masked"])
def model(request, partition, masked):
    return {
        "partition": partition,
        "interleaved": lambda: partition(decoder_mode="interleave"),
        "summary": lambda: partition(query_mode="learn+freqs+mean"),
        "masked": masked,
    }[request.param]()


@pytest.fixture
def passes(model):
    """Rows that went through the network at each pass."""
    table, rows = getattr(model, "vocab_embed", None) or model.tok_emb, []
    handle = table.register_forward_pre_hook(lambda module, arguments: rows.append(len(arguments[0])))
    yield rows
    handle.remove()


def given(codes):
    """Three codes given, the same number in each row."""
    known = torch.full((4, 16), -1)
    known[:, [0, 6, 11]] = codes
    return known


@pytest.mark.parametrize("known", [False, True], ids=["all", "some-given"])
@pytest.mark.parametrize("scale", [0.0, 2.0], ids=["plain", "guided"])
@pytest.mark.parametrize("order", order_names())
def test_an_image_is_the_same_alone_and_in_a_batch(model, steps_of, order, scale, known):
    codes = given(torch.tensor([1, 2, 3])) if known else None
    config = {"order": order, "guidance_scale": scale, "roll": order == "halton"}
    together = steps_of(model, CLASSES, SEEDS, codes, **config)[-1].codes
    assert len({tuple(row) for row in together.tolist()}) == 4
    for k, (label, seed) in enumerate(zip(CLASSES, SEEDS, strict=True)):
        alone = steps_of(model, [label], [seed], None if codes is None else codes[k : k + 1], **config)[-1].codes
        assert torch.equal(alone[0], together[k])
    for half in (slice(0, 2), slice(2, 4)):
        pair = steps_of(model, CLASSES[half], SEEDS[half], None if codes is None else codes[half], **config)
        assert torch.equal(pair[-1].codes, together[half])


@pytest.mark.parametrize("order", order_names())
def test_the_seed_decides(model, steps_of, order):
    first, again, other = (steps_of(model, [1], [seed], order=order)[-1].codes for seed in (3, 3, 4))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_the_class_decides(model, steps_of):
    assert len({tuple(steps_of(model, [label], [3])[-1].codes[0].tolist()) for label in range(5)}) > 1


@pytest.mark.parametrize("order", order_names())
def test_global_generators_neither_matter_nor_move(model, steps_of, order):
    results = []
    for seed in (0, 1):
        torch.manual_seed(seed), random.seed(seed), np.random.seed(seed)
        states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
        results.append(steps_of(model, CLASSES, SEEDS, order=order, guidance_scale=1.0)[-1].codes)
        assert torch.equal(states[0], torch.get_rng_state()) and states[1] == random.getstate()
        assert np.array_equal(states[2], np.random.get_state()[1])
    assert torch.equal(*results)


def tensors_of(model, order):
    """Everything a caller hands in: conditions, noise and given codes."""
    with torch.no_grad():
        labels = torch.tensor(CLASSES)
        conditions = model.condition(labels), model.condition(torch.full_like(labels, -1))
    noise = draw_noise(SEEDS, 16, 5)
    return conditions, noise, given(torch.tensor([1, 2, 3]))


@pytest.mark.parametrize("order", order_names())
def test_what_the_caller_hands_in_stays_as_it_is(model, order):
    conditions, noise, known = tensors_of(model, order)
    handed = [*conditions, noise.codes, noise.order, noise.roll, noise.confidence, known]
    before = [tensor.clone() for tensor in handed]
    weights = [parameter.clone() for parameter in model.parameters()]
    config = SamplingConfig(steps=5, order=order, guidance_scale=1.0, roll=True, resample_known=True)
    last = list(sample(make_predictor(model, *conditions), noise, (4, 4), config, known_codes=known))[-1]
    assert all(torch.equal(a, b) for a, b in zip(handed, before, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), weights, strict=True))
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    assert not last.codes.requires_grad


def test_forward_passes_are_counted_and_lazy(model, steps_of, passes):
    conditions, noise, _ = tensors_of(model, "halton")
    steps = sample(make_predictor(model, *conditions), noise, (4, 4), SamplingConfig(steps=5))
    assert passes == []
    next(steps)
    assert passes == [4]
    steps.close()
    assert passes == [4]
    passes.clear()
    steps_of(model, [1], [0], guidance_scale=0.0)
    assert passes == [1] * 5
    passes.clear()
    steps_of(model, [1], [0], guidance_scale=2.0)
    assert passes == [1, 2, 2, 2, 2]  # the published ramp starts at zero


def mixed_modes(model):
    """Put every second submodule into train mode and return all modes."""
    for index, module in enumerate(model.modules()):
        module.training = index % 2 == 0
    return [module.training for module in model.modules()]


@pytest.mark.parametrize("way", ["exhausted", "closed", "failed"])
def test_train_and_eval_modes_come_back(model, steps_of, way):
    expected = steps_of(model, CLASSES, SEEDS)[-1].codes
    modes = mixed_modes(model)
    try:
        conditions, noise, _ = tensors_of(model, "halton")
        steps = sample(make_predictor(model, *conditions), noise, (4, 4), SamplingConfig(steps=5))
        assert [module.training for module in model.modules()] == modes
        if way == "exhausted":
            assert torch.equal(list(steps)[-1].codes, expected)  # and dropout was off
        elif way == "closed":
            next(steps)
            assert [module.training for module in model.modules()] == modes
            steps.close()
        else:
            table = getattr(model, "vocab_embed", None) or model.tok_emb
            handle = table.register_forward_pre_hook(lambda *_: (_ for _ in ()).throw(RuntimeError("out of memory")))
            with pytest.raises(RuntimeError, match="out of memory"):
                next(steps)
            handle.remove()
        assert [module.training for module in model.modules()] == modes and torch.is_grad_enabled()
    finally:
        model.eval()
    assert torch.equal(steps_of(model, CLASSES, SEEDS)[-1].codes, expected)


@pytest.mark.parametrize("order", order_names())
@pytest.mark.parametrize("steps", [1, 16, 99])
def test_any_number_of_steps_fills_every_position_with_codes(model, steps_of, order, steps):
    last = steps_of(model, CLASSES, SEEDS, order=order, steps=steps, guidance_scale=1.0)[-1]
    assert last.total == min(steps, 16) and ((last.codes >= 0) & (last.codes < 12)).all()


def test_filters_that_keep_everything_or_one_code(model, steps_of):
    assert torch.equal(
        steps_of(model, CLASSES, SEEDS, top_k=1)[-1].codes, steps_of(model, CLASSES, SEEDS, temperature=0)[-1].codes
    )
    plain = steps_of(model, CLASSES, SEEDS)[-1].codes
    for config in ({"top_k": 12}, {"top_k": 14}, {"top_k": 15}, {"top_p": 1.0}):
        kept = steps_of(model, CLASSES, SEEDS, **config)[-1].codes
        assert torch.equal(kept, plain)


def test_a_masked_transformer_may_draw_known_codes_anew_and_a_partition_one_may_not(partition, masked, steps_of):
    for model, changes in ((partition(), False), (masked(), True)):
        plain = steps_of(model, CLASSES, SEEDS)
        anew = steps_of(model, CLASSES, SEEDS, resample_known=True)
        same = [torch.equal(a.codes, b.codes) for a, b in zip(plain, anew, strict=True)]
        assert same[0] and all(same) is not changes


def test_partition_transformers_compute_less(partition, masked, steps_of):
    fewer = steps_of(partition(), [1], [0])[-1]
    full = steps_of(masked(), [1], [0])[-1]
    assert full.computed == full.computed_masked == fewer.computed_masked == 5 * 17
    computed, known = 0, 0
    for count in step_counts("arccos", 16, 5):
        computed += 1 + 1 + known + count  # register, BOS, known codes, queries
        known += count
    assert fewer.computed == computed < full.computed
