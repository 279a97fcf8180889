"""Refinement: which codes are taken back, what stays, that nothing leaks between halves, and that counts add up."""

import pytest
import torch

from pgm.models import make_predictor
from pgm.orders import order_names
from pgm.refinement import (
    all_steps,
    fits,
    noise_for,
    refinement_arguments,
    refining_steps,
    sample_and_refine,
    worst,
)
from pgm.sampling import SamplingConfig, planned_steps, sample

L, V = 16, 12


def prefers(code_of):
    """Logits that put 10 on the code `code_of(clean, queries)` (B, Q) and 0 elsewhere."""
    return lambda clean, queries: torch.nn.functional.one_hot(code_of(clean, queries), V).float() * 10


def position(clean, queries):
    return queries % V


def run(predictor, seeds=(0,), known=None, **config):
    settings = SamplingConfig(**{"steps": 5, "refine_rounds": 3, **config})
    noise = noise_for(settings, list(seeds), L)
    return list(sample_and_refine(predictor, noise, (4, 4), settings, known_codes=known))


@pytest.fixture
def tiny(partition, masked):
    """tiny("pgm" | "maskgit") -> a random model."""
    return lambda kind: partition() if kind == "pgm" else masked()


def predictor_of(model, rows=2):
    classes = torch.arange(rows) % 3
    with torch.no_grad():
        return make_predictor(model, model.condition(classes), model.condition(torch.full((rows,), -1)))


@pytest.mark.parametrize("order", order_names())
@pytest.mark.parametrize("kind", ["pgm", "maskgit"])
def test_counts_add_up_over_all_rounds(tiny, kind, order):
    settings = {"order": order, "guidance_scale": 1.5, "refine_rounds": 3, "refine_share": 0.5, "refine_steps": 2}
    steps = run(predictor_of(tiny(kind)), (0, 1), **settings)
    config = SamplingConfig(steps=5, **settings)
    assert len(steps) == all_steps(config, L) == planned_steps(config, L) + refining_steps(config, L) == 5 + 3 * 2
    assert [step.index for step in steps] == list(range(11)) and {step.total for step in steps} == {11}
    assert [step.round for step in steps] == [0] * 5 + [1, 1, 2, 2, 3, 3]
    for before, step in zip(steps, steps[1:], strict=False):
        assert step.computed > before.computed and step.computed_masked > before.computed_masked
        assert step.seconds >= before.seconds
    redrawn = [sum(int(step.filled[0].sum()) for step in steps if step.round == index) for index in (1, 2, 3)]
    assert redrawn == [8, 5, 3]  # half of 16, then linearly fewer
    assert steps[-1].known.all() and (steps[-1].codes < V).all()


def test_without_rounds_it_is_the_plain_sampler(tiny):
    predictor, config = predictor_of(tiny("pgm")), SamplingConfig(steps=5)
    noise = noise_for(config, [3, 4], L)
    plain = list(sample(predictor, noise, (4, 4), config))
    for own, expected in zip(sample_and_refine(predictor, noise, (4, 4), config), plain, strict=True):
        assert torch.equal(own.codes, expected.codes)
        assert (own.total, own.computed) == (expected.total, expected.computed)


def test_the_first_draw_is_the_same_with_and_without_rounds(tiny):
    predictor = predictor_of(tiny("pgm"))
    with_rounds, without = (run(predictor, (0, 1), refine_rounds=rounds, order="confidence") for rounds in (2, 0))
    assert torch.equal(with_rounds[4].codes, without[-1].codes)


@pytest.mark.parametrize("kind", ["pgm", "maskgit"])
def test_a_picture_is_the_same_in_any_batch(tiny, kind):
    model = tiny(kind)
    known = torch.full((2, L), -1)
    known[1, :9] = 1  # rows of different length
    together = run(predictor_of(model), (5, 6), known)[-1].codes
    for row, seed in enumerate((5, 6)):
        classes = torch.tensor([row])
        alone = make_predictor(model, model.condition(classes), model.condition(torch.tensor([-1])))
        assert torch.equal(run(alone, (seed,), known[row : row + 1])[-1].codes, together[row : row + 1])


def test_rounds_may_reuse_the_encoder_and_stay_the_same_in_any_batch(tiny):
    model, settings = tiny("pgm"), {"encoder_refresh": 8, "refine_share": 0.5, "guidance_scale": 1.0}
    together = run(predictor_of(model), (5, 6), **settings)
    exact = run(predictor_of(model), (5, 6), **{**settings, "encoder_refresh": 1})
    assert together[-1].computed < exact[-1].computed and together[-1].known.all()
    for row, seed in enumerate((5, 6)):
        classes = torch.tensor([row])
        alone = make_predictor(model, model.condition(classes), model.condition(torch.tensor([-1])))
        assert torch.equal(run(alone, (seed,), **settings)[-1].codes, together[-1].codes[row : row + 1])


def test_codes_that_do_not_fit_are_the_ones_taken_back(formula):
    predictor = formula(prefers(position))
    codes = torch.arange(L)[None] % V
    codes[0, [2, 7, 11]] = 0  # where the formula says 2, 7 and 11
    fit, _ = fits(predictor, codes, torch.ones(1, L, dtype=torch.bool), torch.rand(1, L))
    assert worst(fit, torch.tensor([3])).nonzero()[:, 1].tolist() == [2, 7, 11]


def undecided(clean, queries):
    """Logits: any code alike at even positions; at odd ones code 0 in nine of ten cases, else code 1."""
    odd = torch.full((V,), -torch.inf)
    odd[:2] = torch.tensor([0.9, 0.1]).log()
    return torch.where((queries % 2 == 1)[..., None], odd, torch.zeros(V))


@pytest.mark.parametrize(("score", "taken"), [("likelihood", 0), ("typicality", 1)])
def test_typicality_forgives_surprise_where_it_was_to_be_expected(formula, score, taken):
    codes = (torch.arange(L) % 2)[None]  # the rarer code at odd positions: log 0.1 there, log 1/12 at even ones
    everything = torch.ones(1, L, dtype=torch.bool)
    fit, _ = fits(formula(undecided), codes, everything, torch.rand(1, L), score)
    assert (worst(fit, torch.tensor([L // 2])).nonzero()[:, 1] % 2 == taken).all()


def test_rounds_take_back_by_the_score_asked_for(formula):
    known = (torch.arange(L) % 2)[None]
    known[0, :8] = -1
    for score in ("likelihood", "typicality"):
        steps = run(formula(undecided), (3,), known, refine_score=score, refine_rounds=1, refine_share=0.25)
        first = steps[4].codes
        again = sum(step.filled for step in steps[5:]) > 0
        rare = first == 1
        odd = torch.arange(L)[None] % 2 == 1
        if score == "likelihood":  # any even one is less likely than both codes of odd ones
            assert again.sum() == 2 and not (again & odd).any()
        else:
            assert again.sum() == 2 and (again & odd & rare).sum() == min(2, (odd & rare & (known < 0)).sum())


def test_a_hot_first_draw_is_mended(formula):
    hot = run(formula(prefers(position)), range(8), temperature=1.0, temperature_anneal=40.0, refine_rounds=0)[-1]
    wrong = (hot.codes != torch.arange(L) % V).sum()
    mended = run(formula(prefers(position)), range(8), temperature=1.0, temperature_anneal=40.0, refine_share=1.0)[-1]
    assert wrong > 30 and (mended.codes != torch.arange(L) % V).sum() == 0


def test_each_half_is_scored_without_seeing_itself(formula):
    predictor = formula(prefers(position))
    codes = torch.arange(L)[None].repeat(2, 1) % V
    generated = torch.ones(2, L, dtype=torch.bool)
    generated[1, 5:] = False
    fits(predictor, codes, generated, torch.rand(2, L))
    asked = torch.zeros(2, L, dtype=torch.long)
    for call in predictor.calls:
        assert not call.guided
        for row in range(2):
            count = call.queries.shape[1] if call.query_lengths is None else int(call.query_lengths[row])
            queries = call.queries[row, :count]
            assert (call.clean.codes[row, queries] == -1).all()
            visible = call.clean.arrival[row]
            if call.clean.lengths is not None:
                visible = visible[: int(call.clean.lengths[row])]
            assert not set(visible.tolist()) & set(queries.tolist()) and len(visible) + count == L
            asked[row, queries] += 1
    assert torch.equal(asked, generated.long()) and len(predictor.calls) == 2


def test_the_scores_are_those_of_the_training_pass(tiny):
    model = tiny("pgm")
    predictor = predictor_of(model)
    codes, order = torch.randint(V, (2, L)), torch.rand(2, L)
    fit, computed = fits(predictor, codes, torch.ones(2, L, dtype=torch.bool), order)
    typical, _ = fits(predictor, codes, torch.ones(2, L, dtype=torch.bool), order, "typicality")
    second = order.argsort(1).argsort(1) >= L // 2
    tokens = torch.cat((torch.full((2, 1), V + 1), codes), dim=1)
    for half, bos in ((second, True), (~second, True)):  # generation shows BOS to both halves, training to one
        groups = torch.cat((torch.full((2, 1), not bos), half), dim=1).long()
        with torch.no_grad():
            logits = model(tokens, groups, torch.arange(2))[:, 1:, :V].log_softmax(-1)
        expected = logits.gather(-1, codes[..., None])[..., 0]
        assert torch.allclose(fit[half], expected[half], atol=1e-4)
        entropy = -(logits.exp() * logits).sum(-1)
        assert torch.allclose(typical[half], (expected + entropy)[half], atol=1e-4)
    assert computed == 2 * predictor.cost(L // 2, L // 2)


def test_given_codes_are_never_taken_back(tiny):
    known = torch.full((3, L), -1)
    known[0, :10] = 5  # a code that the model does not like
    known[1] = 7  # nothing to generate
    known[2, 1:] = 3  # one code: it may be drawn anew, in one step
    steps = run(predictor_of(tiny("pgm"), 3), (0, 1, 2), known, refine_share=1.0)
    for step in steps:
        assert torch.equal(step.codes[known >= 0], known[known >= 0]) and step.known[known >= 0].all()
    assert steps[-1].known.all() and not any(step.filled[1].any() for step in steps)
    assert sum(int(step.filled[2, 0]) for step in steps) == 4


def test_nothing_to_generate_is_one_step(tiny):
    (step,) = run(predictor_of(tiny("pgm")), (0, 1), torch.full((2, L), 3))
    assert (step.index, step.total, step.computed) == (0, 0, 0)


@pytest.mark.parametrize("schedule", ["ancestral", "binomial", "even"])
def test_schedules_that_draw_their_counts_are_refined_too(tiny, schedule):
    steps = run(predictor_of(tiny("pgm")), (0, 1), order="random", schedule=schedule, refine_steps=2)
    config = SamplingConfig(steps=5, order="random", schedule=schedule, refine_rounds=3, refine_steps=2)
    assert len(steps) == steps[0].total == all_steps(config, L) and steps[-1].known.all()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"refine_rounds": -1}, r"refine_rounds must be an integer in 0\.\.64, got -1"),
        ({"refine_rounds": "many"}, "refine_rounds must be an integer"),
        ({"refine_share": 0}, r"refine_share must be a number in \(0, 1\], got 0"),
        ({"refine_score": "charm"}, "refine_score must be one of likelihood, typicality, got 'charm'"),
        ({"refine_steps": 0}, r"refine_steps must be an integer in 1\.\.64, got 0"),
    ],
)
def test_bad_settings_are_named(settings, says):
    with pytest.raises(ValueError, match=says):
        refinement_arguments(settings)
