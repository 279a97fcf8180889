"""The sampling loop on predictors whose logits are known by formula, so that every code can be foretold."""

import pytest
import torch

from pgm.noise import draw_noise
from pgm.orders import halton_order, order_names
from pgm.sampling import SamplingConfig, planned_steps, sample
from pgm.schedules import schedule_names, step_counts

L, V = 16, 12


def prefers(code_of):
    """Logits that put 10 on the code `code_of(clean, queries)` (B, Q) and 0 elsewhere."""
    return lambda clean, queries: torch.nn.functional.one_hot(code_of(clean, queries), V).float() * 10


def flat(clean, queries):
    return torch.zeros(*queries.shape, V)


def known_so_far(clean, queries):
    return clean.codes.ge(0).sum(1, keepdim=True).expand_as(queries) % V


def run(predictor, seeds=(0,), known=None, **config):
    settings = SamplingConfig(**{"steps": 5, **config})
    noise = draw_noise(list(seeds), L, planned_steps(settings, L))
    return list(sample(predictor, noise, (4, 4), settings, known_codes=known))


def test_codes_that_a_formula_foretells(formula):
    last = run(formula(prefers(known_so_far)), temperature=0)[-1]
    expected, done = torch.full((1, L), -1), 0
    for count in step_counts("arccos", L, 5):
        expected[0, list(halton_order(4, 4)[done : done + count])] = done % V
        done += count
    assert torch.equal(last.codes, expected)


def test_nothing_runs_before_it_is_asked_for(formula):
    predictor = formula(flat)
    steps = sample(predictor, draw_noise([0], L), (4, 4), SamplingConfig(steps=5))
    assert len(predictor.calls) == 0
    for index in range(5):
        assert next(steps).index == index
        assert len(predictor.calls) == index + 1
    assert next(steps, None) is None and len(predictor.calls) == 5


def test_closing_ends_the_work(formula):
    predictor = formula(flat)
    steps = sample(predictor, draw_noise([0], L), (4, 4), SamplingConfig(steps=5))
    next(steps)
    steps.close()
    assert next(steps, None) is None and len(predictor.calls) == 1


@pytest.mark.parametrize("order", order_names())
@pytest.mark.parametrize("schedule", schedule_names())
def test_what_every_step_promises(formula, order, schedule):
    predictor = formula(flat, flat)
    known_codes = torch.full((3, L), -1)
    known_codes[1, :4] = 1
    known_codes[2, 2:] = 2
    steps = run(predictor, (0, 1, 2), known_codes, order=order, schedule=schedule, guidance_scale=1.0)
    before, computed, computed_masked = known_codes >= 0, 0, 0
    for index, (step, call) in enumerate(zip(steps, predictor.calls, strict=True)):
        assert (step.index, step.total) == (index, 5)
        assert step.codes.shape == step.known.shape == step.filled.shape == (3, L)
        assert torch.equal(step.codes >= 0, step.known) and (step.codes[~step.known] == -1).all()
        assert not (step.filled & before).any() and torch.equal(step.known, before | step.filled)
        assert torch.equal(call.clean.codes >= 0, before)
        passes = 2 if call.guided else 1
        computed += passes * predictor.cost(call.clean.arrival.shape[1], call.queries.shape[1])
        computed_masked += passes * (L + 1)
        assert (step.computed, step.computed_masked) == (computed, computed_masked)
        assert step.seconds >= (steps[index - 1].seconds if index else 0)
        before = step.known
    assert steps[-1].known.all()
    filled = torch.stack([step.filled for step in steps]).sum((0, 2))
    assert filled.tolist() == [16, 12, 2]
    assert [int(step.filled[0].sum()) for step in steps] == step_counts(
        schedule, L, 5, "confidence" if order == "confidence" else "ordered"
    )


@pytest.mark.parametrize("order", order_names())
def test_steps_are_never_changed_afterwards(formula, order):
    settings = SamplingConfig(steps=5, order=order)
    kept = []
    for step in sample(formula(flat), draw_noise([0, 1], L, 5), (4, 4), settings):
        kept.append((step, step.codes.clone(), step.known.clone(), step.filled.clone()))
    for step, codes, known, filled in kept:
        assert torch.equal(step.codes, codes) and torch.equal(step.known, known) and torch.equal(step.filled, filled)


@pytest.mark.parametrize("order", order_names())
def test_the_network_is_told_the_truth(formula, order):
    """Known positions in the order of their arrival, queries among the unknown ones, no position twice."""
    predictor = formula(flat)
    run(predictor, (0, 1), order=order)
    for call, following in zip(predictor.calls, predictor.calls[1:], strict=False):
        known = call.clean.codes >= 0
        assert call.clean.lengths is None and call.query_lengths is None
        for row in range(2):
            assert sorted(call.clean.arrival[row].tolist()) == known[row].nonzero()[:, 0].tolist()
            assert len(set(call.queries[row].tolist())) == call.queries.shape[1]
            assert not known[row, call.queries[row]].any()
        longer = following.clean.arrival
        assert torch.equal(longer[:, : call.clean.arrival.shape[1]], call.clean.arrival)


def test_guidance_off_runs_one_pass(formula):
    predictor = formula(flat, flat)
    steps = run(predictor, guidance_scale=0.0)
    assert not any(call.guided for call in predictor.calls)
    assert steps[-1].computed_masked == 5 * (L + 1)


@pytest.mark.parametrize(
    ("schedule", "guided"), [("linear", [False, True, True, True, True]), ("constant", [True] * 5)]
)
def test_guidance_runs_two_passes_where_its_weight_is_not_zero(formula, schedule, guided):
    predictor = formula(flat, flat)
    run(predictor, guidance_scale=0.5, guidance_schedule=schedule)
    assert [call.guided for call in predictor.calls] == guided


def test_guidance_moves_away_from_the_unconditional_choice(formula):
    def conditional(clean, queries):
        return flat(clean, queries) + torch.tensor([1.0, 0.9] + [0.0] * (V - 2))

    def unconditional(clean, queries):
        return flat(clean, queries) + torch.tensor([1.0] + [0.0] * (V - 1))

    assert (run(formula(conditional, unconditional), temperature=0)[-1].codes == 0).all()
    options = {"guidance_scale": 1.0, "guidance_schedule": "constant", "temperature": 0}
    assert (run(formula(conditional, unconditional), **options)[-1].codes == 1).all()
    assert (run(formula(conditional), **options)[-1].codes == 0).all()  # without an unconditional pass: no guidance


@pytest.mark.parametrize("order", order_names())
@pytest.mark.parametrize("scale", [0.0, 2.0])
def test_one_step_fills_everything_under_full_guidance(formula, order, scale):
    predictor = formula(flat, flat)
    steps = run(predictor, (0, 1), steps=1, order=order, guidance_scale=scale)
    assert len(steps) == 1 and steps[0].known.all()
    assert [call.guided for call in predictor.calls] == [scale > 0]


@pytest.mark.parametrize("order", order_names())
def test_more_steps_than_codes_fill_one_at_a_time(formula, order):
    predictor = formula(flat)
    steps = run(predictor, (0, 1), steps=50, order=order)
    assert len(steps) == len(predictor.calls) == L == planned_steps(SamplingConfig(steps=50), L)
    assert all(step.filled.sum(1).tolist() == [1, 1] and step.total == L for step in steps)


def test_nothing_to_do_is_one_step_that_says_so(formula):
    predictor, known = formula(flat), torch.arange(L)[None] % V
    steps = run(predictor, known=known)
    assert len(steps) == 1 and predictor.calls == []
    assert torch.equal(steps[0].codes, known) and steps[0].known.all() and not steps[0].filled.any()
    assert (steps[0].total, steps[0].computed, steps[0].computed_masked) == (0, 0, 0)
    known[0, 0] = 9  # the caller's tensor is not the step's
    assert steps[0].codes[0, 0] == 0


def test_the_random_order_is_that_of_the_noise_and_roll_shifts_halton(formula):
    noise = draw_noise([0, 1], L)
    for config, expected in (
        ({"order": "random"}, noise.order.argsort(1)),
        ({"roll": True}, torch.stack([torch.tensor(halton_order(4, 4)).roll(int(r * L)) for r in noise.roll])),
        ({"order": "raster"}, torch.arange(L).expand(2, -1)),
    ):
        predictor = formula(flat)
        run(predictor, (0, 1), **config)
        assert torch.equal(torch.cat([call.queries for call in predictor.calls], dim=1), expected)
    assert not torch.equal(*(torch.tensor(halton_order(4, 4)).roll(int(r * L)) for r in noise.roll))


def test_confidence_takes_the_surest_first(formula):
    def surer_to_the_right(clean, queries):
        return torch.nn.functional.one_hot(queries % V, V) * (1 + queries[..., None].float())

    steps = run(formula(surer_to_the_right), order="confidence", confidence_mode="none", temperature=0)
    left = L
    for step, count in zip(steps, step_counts("arccos", L, 5, "confidence"), strict=True):
        assert step.filled[0].nonzero()[:, 0].tolist() == list(range(left - count, left))
        left -= count


@pytest.mark.parametrize("mode", ["linear", "warmup", "random", "none"])
@pytest.mark.parametrize("counts", ["pgm", "maskgit"])
def test_confidence_keeps_exact_counts_also_among_equals(formula, mode, counts):
    steps = run(
        formula(flat), (0, 1, 2), order="confidence", confidence_mode=mode, confidence_counts=counts, temperature=0
    )
    rule = "confidence" if counts == "pgm" else "confidence-maskgit"
    for step, count in zip(steps, step_counts("arccos", L, 5, rule), strict=True):
        assert step.filled.sum(1).tolist() == [count] * 3
    if mode == "none":
        assert steps[0].filled[0].nonzero()[:, 0].tolist() == [0]  # of equal ones the first


def test_confidence_noise_fades_to_nothing(formula):
    def sure_of_code(clean, queries):
        return torch.nn.functional.one_hot(queries % V, V) * (1 + queries[..., None].float())

    loud = run(formula(sure_of_code), range(8), order="confidence", confidence_temperature=100.0, temperature=0)
    quiet = run(formula(sure_of_code), range(8), order="confidence", confidence_temperature=1e-9, temperature=0)
    assert (quiet[0].filled == torch.eye(L, dtype=torch.bool)[L - 1]).all()
    assert len({tuple(row) for row in loud[0].filled.tolist()}) > 3


def test_noise_fades_over_the_steps_of_each_row(formula):
    def sure_of_code(clean, queries):
        return torch.nn.functional.one_hot(queries % V, V) * (1 + queries[..., None].float() / 2)

    known = torch.full((41, L), -1)
    known[:40, 4:] = 1
    options = {"order": "confidence", "temperature": 0, "steps": 8, "confidence_temperature": 0.7}
    together = run(formula(sure_of_code), range(41), known, **options)
    for row in range(40):
        alone = run(formula(sure_of_code), [row], known[row : row + 1], **options)
        assert len(alone) == 4
        assert all(torch.equal(a.filled[0], b.filled[row]) for a, b in zip(alone, together, strict=False))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_broken_network_is_named_by_step_and_dtype(formula, bad):
    def breaks_later(clean, queries):
        logits = flat(clean, queries).half()
        return logits + bad if (clean.codes >= 0).any() else logits

    with pytest.raises(FloatingPointError, match=r"NaN or infinity at step 1 in torch\.float16.*float32"):
        run(formula(breaks_later))


@pytest.mark.parametrize("order", order_names())
def test_huge_half_precision_logits_under_strong_guidance_stay_valid(formula, order):
    def huge(clean, queries):
        generator = torch.Generator().manual_seed(int(queries.sum()))
        return (torch.randn(*queries.shape, V, generator=generator) * 1e4).half()

    predictor = formula(huge, lambda clean, queries: -huge(clean, queries))
    for temperature in (0, 1e-6, 1.0):
        steps = run(predictor, (0, 1), order=order, guidance_scale=30.0, temperature=temperature)
        assert ((steps[-1].codes >= 0) & (steps[-1].codes < V)).all()


def test_special_ids_are_never_sampled(formula):
    def likes_specials(clean, queries):
        return flat(clean, queries) + torch.tensor([0.0] * (V - 2) + [50.0, 50.0])

    predictor = formula(likes_specials, special_ids=(V - 2, V - 1))
    assert (run(predictor, range(20))[-1].codes < V - 2).all()
    assert (run(predictor, range(20), suppress_special=False)[-1].codes >= V - 2).all()


def test_an_unknown_id_leaves_its_position_unknown(formula):
    predictor = formula(prefers(lambda clean, queries: queries.clamp_max(V - 1)), unknown_id=V - 1)
    last = run(predictor, temperature=0, suppress_special=False)[-1]
    assert (last.codes[0, V - 1 :] == -1).all() and torch.equal(last.codes[0, : V - 1], torch.arange(V - 1))
    assert torch.equal(last.known, last.codes >= 0)


@pytest.mark.parametrize("order", order_names())
@pytest.mark.parametrize("able", [False, True])
def test_known_codes_are_drawn_anew_only_where_the_network_can(formula, order, able):
    given = torch.full((1, L), -1)
    given[0, 5] = 7
    predictor = formula(prefers(known_so_far), can_resample=able)
    steps = run(predictor, known=given, order=order, temperature=0, resample_known=True)
    before = step_counts("arccos", 15, 5, "confidence" if order == "confidence" else "ordered")[:-1]
    latest = (1 + sum(before)) % V
    assert (steps[-1].codes[0] == latest).sum() == (L - 1 if able else 15 - sum(before))
    assert steps[-1].codes[0, 5] == 7  # what the caller gave stays in any case
    plain = run(formula(prefers(known_so_far), can_resample=able), known=given, order=order, temperature=0)
    assert torch.equal(plain[-1].codes, steps[-1].codes) is not able


def test_codes_follow_the_probabilities_and_temperature_flattens_them(formula):
    p = torch.tensor([0.4, 0.25, 0.2, 0.1, 0.05] + [0.0] * (V - 5))

    def counts(**config):
        codes = run(formula(lambda clean, queries: p.log().expand(*queries.shape, -1)), range(500), **config)[-1].codes
        return torch.bincount(codes.flatten(), minlength=V).float()

    n, possible = 500 * L, p > 0
    chi_square = ((counts() - n * p)[possible] ** 2 / (n * p[possible])).sum()
    assert chi_square < 18.5  # 0.1 % of fair draws exceed it at four degrees of freedom
    assert counts()[~possible].sum() == 0
    entropy = [torch.special.entr(counts(temperature=t) / n).sum().item() for t in (0, 0.25, 0.5, 1.0, 2.0, 8.0)]
    assert entropy == sorted(entropy) and entropy[0] == 0 and entropy[-1] > 1.55
    flatter = counts(temperature_warmup=5)  # twice the temperature in all five steps
    assert torch.equal(flatter, counts(temperature=2.0))


def test_an_annealed_temperature_is_high_at_first_and_as_asked_at_last(formula):
    p = torch.tensor([0.4, 0.25, 0.2, 0.1, 0.05] + [0.0] * (V - 5))
    model = formula(lambda clean, queries: p.log().expand(*queries.shape, -1))
    steps = run(model, range(500), steps=4, schedule="linear", temperature=0.25, temperature_anneal=8.0)
    entropy = []
    for step in steps:
        drawn = torch.bincount(step.codes[step.filled], minlength=V).float()
        entropy.append(torch.special.entr(drawn / drawn.sum()).sum().item())
    assert entropy == sorted(entropy, reverse=True)
    plain = run(model, range(500), steps=4, schedule="linear", temperature=0.25)
    assert torch.equal(plain[-1].codes[steps[-1].filled], steps[-1].codes[steps[-1].filled])
    assert not torch.equal(plain[0].codes, steps[0].codes)


def test_rows_of_different_length_anneal_as_they_do_alone(formula):
    """A picture with few codes to fill takes fewer steps; its ramp is its own, whatever it shares a batch with."""
    model = formula(lambda clean, queries: torch.linspace(0, 3, V).expand(*queries.shape, -1))
    given = torch.full((2, L), -1)
    given[0, 2:] = 1
    settings = {"steps": 5, "temperature": 0.5, "temperature_anneal": 6.0}
    both = run(model, [3, 4], known=given, **settings)[-1].codes
    for row, seed in enumerate((3, 4)):
        assert torch.equal(run(model, [seed], known=given[row : row + 1], **settings)[-1].codes[0], both[row])


def test_bad_settings_are_named(formula):
    for config, message in (
        ({"guidance_scale": -1.0}, "guidance_scale"),
        ({"steps": 0}, "steps must be"),
        ({"schedule": "fast"}, "schedule must be"),
        ({"order": "spiral"}, "order must be"),
        ({"guidance_schedule": "up"}, "guidance_schedule must be"),
    ):
        with pytest.raises(ValueError, match=message):
            run(formula(flat), **config)
