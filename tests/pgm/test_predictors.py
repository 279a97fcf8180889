"""Predictors: what each architecture is asked, guided and unguided passes, the published visible length, cost."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from pgm.models import make_predictor
from pgm.predictors import Clean, MaskedPredictor, PartitionPredictor, evaluating

CODES = torch.tensor([[3, -1, 5, -1, 1, *[-1] * 11], [-1, 2, -1, 4, 6, *[-1] * 11]])
CLEAN = Clean(CODES, torch.tensor([[0, 2, 4], [1, 3, 4]]), None)
QUERIES = torch.tensor([[1, 7], [9, 15]])


@pytest.fixture(scope="module", params=["partition", "masked"])
def model(request, partition, masked):
    return {"partition": partition, "masked": masked}[request.param]()


@torch.no_grad()
def conditions(model, labels=(1, 2)):
    labels = torch.tensor(labels)
    return model.condition(labels), model.condition(torch.full_like(labels, -1))


def test_a_guided_pass_is_two_unguided_ones(model):
    conditional, null = conditions(model)
    both = make_predictor(model, conditional, null).predict(CLEAN, QUERIES, None, True)
    for logits, condition in zip(both, (conditional, null), strict=True):
        single, nothing = make_predictor(model, condition).predict(CLEAN, QUERIES, None, False)
        assert nothing is None
        assert_close(logits, single, atol=1e-4, rtol=1e-4)
    assert (both[0] - both[1]).abs().max() > 1e-3


def test_without_a_null_condition_there_is_no_guidance(model):
    conditional, null = conditions(model)
    assert make_predictor(model, conditional, null).can_guide
    assert not make_predictor(model, conditional).can_guide


def test_architectures_get_their_predictor(partition, masked):
    first = make_predictor(partition(), conditions(partition())[0])
    second = make_predictor(masked(), conditions(masked())[0])
    assert isinstance(first, PartitionPredictor) and isinstance(second, MaskedPredictor)
    assert (first.can_resample, second.can_resample) == (False, True)
    assert (first.special_ids, second.special_ids) == ((12, 13), (12,))
    assert first.length == second.length == 16


def test_the_published_samplers_hide_the_last_clean_token(partition):
    model = partition()
    conditional, _ = conditions(model)
    logits = {}
    for visible in ("reference", "full"):
        for last in (1, 7):
            codes = CODES.clone()
            codes[0, 4] = last
            clean = Clean(codes, CLEAN.arrival, None)
            predictor = make_predictor(model, conditional, visible_length=visible)
            logits[visible, last] = predictor.predict(clean, QUERIES, None, False)[0]
    assert torch.equal(logits["reference", 1], logits["reference", 7])
    assert (logits["full", 1] - logits["full", 7])[0].abs().max() > 1e-3
    shorter = Clean(CODES, CLEAN.arrival[:, :2], None)
    expected = make_predictor(model, conditional).predict(shorter, QUERIES, None, False)[0]
    assert_close(logits["reference", 1], expected, atol=1e-4, rtol=1e-4)


def test_at_the_first_step_of_the_published_samplers_all_positions_look_alike(partition):
    predictor = make_predictor(partition(query_mode="learn"), conditions(partition())[0], visible_length="reference")
    nothing = Clean(torch.full((2, 16), -1), torch.zeros(2, 0, dtype=torch.int64), None)
    logits, _ = predictor.predict(nothing, torch.arange(16).expand(2, -1), None, False)
    assert_close(logits, logits[:, :1].expand_as(logits), atol=1e-6, rtol=1e-6)


def test_an_unknown_visible_length_is_refused(partition):
    with pytest.raises(ValueError, match="visible_length must be 'full' or 'reference', got 'short'"):
        make_predictor(partition(), conditions(partition())[0], visible_length="short")


def test_cost(partition, masked):
    condition = conditions(partition())[0]
    assert make_predictor(partition(), condition).cost(3, 4) == 1 + 1 + 3 + 4  # a register, BOS, known, queries
    assert make_predictor(partition(registers=0), condition).cost(3, 4) == 1 + 3 + 4
    mixing = make_predictor(partition(decoder_mode="interleave"), condition)
    assert mixing.cost(3, 4) == 1 + 1 + 3 + 4 + 1  # and the register that is queried along
    assert make_predictor(masked(), conditions(masked())[0]).cost(3, 4) == 17


def test_no_mask_is_built_where_rows_are_equally_long(partition, monkeypatch):
    model, masks = partition(), []
    original = type(model).encode_embedded
    monkeypatch.setattr(type(model), "encode_embedded", lambda *a: masks.append(a[-1]) or original(*a))
    predictor = make_predictor(model, conditions(model)[0])
    predictor.predict(CLEAN, QUERIES, None, False)
    predictor.predict(Clean(CODES, CLEAN.arrival, torch.tensor([3, 2])), QUERIES, None, False)
    assert masks[0] is None and masks[1].tolist() == [3, 4]  # the shorter row first, one group


def ragged(rows, generator):
    """A clean side of `rows` rows with 0..12 codes known, queries of 1..4 positions."""
    arrival = torch.stack([torch.randperm(16, generator=generator) for _ in range(rows)])
    lengths = torch.randint(0, 13, (rows,), generator=generator)
    counts = torch.randint(0, 5, (rows,), generator=generator)
    codes = torch.full((rows, 16), -1)
    for row, length in enumerate(lengths.tolist()):
        codes[row, arrival[row, :length]] = torch.randint(0, 12, (length,), generator=generator)
    queries = arrival.flip(1)[:, : max(1, int(counts.max()))]
    return Clean(codes, arrival[:, : int(lengths.max())], lengths), queries, counts


@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize("variant", [{}, {"decoder_mode": "interleave"}, {"query_mode": "learn+freqs+mean"}])
@pytest.mark.parametrize("limit", [1, 8, 1000])
def test_ragged_rows_get_what_each_would_get_alone(partition, monkeypatch, variant, guided, limit):
    monkeypatch.setattr("pgm.predictors.TOKENS", limit)
    monkeypatch.setattr("pgm.predictors.CACHE", 0)
    model, generator = partition(**variant), torch.Generator().manual_seed(0)
    conditional, null = conditions(model, (0, 1, 2, 3, 4, -1))
    clean, queries, counts = ragged(6, generator)
    together = make_predictor(model, conditional, null).predict(clean, queries, counts, guided)
    for row, count in enumerate(counts.tolist()):
        if not count:
            continue
        alone = Clean(clean.codes[row : row + 1], clean.arrival[row : row + 1, : clean.lengths[row]], None)
        predictor = make_predictor(model, conditional[row : row + 1], null[row : row + 1])
        expected = predictor.predict(alone, queries[row : row + 1, :count], None, guided)
        for found, own in zip(together[: 1 + guided], expected, strict=False):
            assert_close(found[row, :count], own[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("passes", [(False, True, True, False, True), (True,) * 5])
def test_tokens_embedded_earlier_are_not_embedded_again(partition, passes):
    model, generator = partition(), torch.Generator().manual_seed(0)
    arrival = torch.stack([torch.randperm(16, generator=generator) for _ in range(2)])
    conditional, null = conditions(model)
    sizes = []
    handle = model.vocab_embed.register_forward_pre_hook(lambda module, given: sizes.append(given[0].shape[1]))
    kept, known, codes = make_predictor(model, conditional, null), 0, torch.full((2, 16), -1)
    for count, guided in zip((0, 2, 1, 4, 5), passes, strict=True):
        before, known = known, known + count
        codes = codes.scatter(1, arrival[:, before:known], 3 + known % 5)
        clean, queries = Clean(codes, arrival[:, :known], None), arrival[:, known : known + 3]
        expected = make_predictor(model, conditional, null).predict(clean, queries, None, guided)
        found = kept.predict(replace(clean, since=before), queries, None, guided)
        for logits, fresh in zip(found[: 1 + guided], expected, strict=False):
            assert_close(logits, fresh, atol=1e-4, rtol=1e-4)
    handle.remove()
    # BOS goes along with the first codes; rows that a pass without guidance left out are embedded again.
    assert sizes[1::2] == ([1, 3, 1, 4, 5] if all(passes) else [1, 3, 1, 4, 13])


def test_evaluating_restores_modes_and_gradients_after_an_exception(model):
    modes = []
    for index, module in enumerate(model.modules()):
        module.training = index % 3 == 0
        modes.append(module.training)
    with pytest.raises(KeyError), evaluating(model):
        assert not any(module.training for module in model.modules()) and not torch.is_grad_enabled()
        raise KeyError
    assert [module.training for module in model.modules()] == modes and torch.is_grad_enabled()
    model.eval()
