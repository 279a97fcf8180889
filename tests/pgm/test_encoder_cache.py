"""Encoder outputs kept between steps: what is computed is what a masked encoder over all known codes would give."""

import pytest
import torch
from torch.testing import assert_close

from pgm.models import make_predictor
from pgm.noise import draw_noise
from pgm.orders import halton_order
from pgm.partitioning import Stages
from pgm.predictors import Clean, PartitionPredictor
from pgm.sampling import SamplingConfig, planned_steps, sample

CLASSES = [0, 3, 1]
GIVEN = torch.full((3, 16), -1)
GIVEN[:, [2, 9, 14]] = torch.tensor([[3, 4, 5], [7, 7, 1], [0, 11, 2]])


@torch.no_grad()
def slow_logits(model, condition, codes, arrival, seen, queries):
    """Logits (B, Q, V) where the j-th column of known codes, registers and BOS in front, sees the first seen[j]."""
    registers, batch = model.config.registers, len(codes)
    own = torch.arange(registers // 2, registers).expand(batch, -1)
    tokens = torch.cat((torch.full((batch, 1), model.config.bos_id), codes.gather(1, arrival)), dim=1)
    x = torch.cat((model.reg_tokens(own), model.vocab_embed(tokens)), dim=1)
    internal = torch.cat((own, torch.full((batch, 1), registers), arrival + 1 + registers), dim=1)
    mask = torch.arange(x.shape[1]) < torch.tensor(seen)[:, None]  # (K, K)
    angles = model.rotary_emb(internal, x.dtype)
    for block in model.encoder.blocks:
        x = block(x, block.modulation(condition), angles, mask[None, None], "math")
    asked, swap = queries + 1 + registers, model.decoder.group_swap
    query_angles, everything = model.rotary_emb(asked, x.dtype), torch.ones(1, 1, 1, x.shape[1], dtype=torch.bool)
    y = swap(swap.queries(asked), x, query_angles, angles, everything, "math")
    for layer in model.decoder.layers:
        y = layer(y, x, layer.modulation(condition), query_angles, angles, everything, "math")
    return model.output_layer(y, model.output_layer.modulation(condition))


class Recorded(PartitionPredictor):
    """Keeps what was asked and answered."""

    def predict(self, clean, queries, query_lengths, guided):
        answer = super().predict(clean, queries, query_lengths, guided)
        self.calls = [*getattr(self, "calls", []), (clean, queries, answer)]
        return answer


@torch.no_grad()
def conditions(model, classes=CLASSES):
    labels = torch.tensor(classes)
    return model.condition(labels), model.condition(torch.full_like(labels, -1))


def recorded(model, known=None, **config):
    settings = SamplingConfig(steps=7, **config)
    noise = draw_noise([5, 6, 7], 16, planned_steps(settings, 16) if settings.order == "confidence" else 0)
    predictor = Recorded(model, *conditions(model))
    steps = list(sample(predictor, noise, (4, 4), settings, known_codes=known))
    return predictor.calls, steps


def seen_by_columns(calls, every, joined):
    """For each call, how many columns each column saw when it was encoded; all are encoded at call `joined`, too."""
    seen, found = [], []
    for index, (clean, _, _) in enumerate(calls):
        stop = 2 + clean.arrival.shape[1]
        anew = index % every == 0 or index == joined
        seen = [stop] * stop if anew else [*seen, *[stop] * (stop - len(seen))]
        found.append(seen)
    return found


@torch.no_grad()
@pytest.mark.parametrize("steps", [1, 7, 16])
def test_staged_training_asks_all_steps_of_this_sampler_at_once(partition, steps):
    model = partition(encoder_layers=3, decoder_layers=2)
    noise = draw_noise([5, 6, 7], 16)
    predictor = Recorded(model, *conditions(model))
    *_, last = sample(predictor, noise, (4, 4), SamplingConfig(steps=steps, encoder_refresh=16))
    order, counts = torch.tensor(halton_order(4, 4)), [len(call[1][0]) for call in predictor.calls]
    stages = torch.empty(16, dtype=torch.int64)
    stages[order] = torch.arange(1, steps + 1).repeat_interleave(torch.tensor(counts))
    if steps == 16:
        assert torch.equal(stages, Stages(order).at(torch.zeros(1))[0])
    bos = torch.full((3, 1), model.config.bos_id)
    tokens, start = torch.cat((bos, last.codes), dim=1), torch.zeros_like(bos)
    staged = torch.cat((start, stages.expand(3, -1)), dim=1)
    logits = model(tokens, torch.zeros_like(tokens), torch.tensor(CLASSES), stages=staged)[:, 1:]
    for _, queries, (answer, _) in predictor.calls:
        assert_close(logits.gather(1, queries[..., None].expand_as(answer)), answer, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("known", [None, GIVEN], ids=["everything", "editing"])
@pytest.mark.parametrize("guidance", [None, "constant", "linear"])
@pytest.mark.parametrize("order", ["halton", "random", "confidence"])
@pytest.mark.parametrize("every", [2, 4, 9])
def test_new_codes_see_older_ones_as_these_were_encoded(partition, every, order, guidance, known):
    model = partition(encoder_layers=3)
    guided = {"guidance_scale": 2.0, "guidance_schedule": guidance} if guidance else {}
    calls, steps = recorded(model, known, order=order, encoder_refresh=every, **guided)
    assert len(calls) == 7 and (steps[-1].codes >= 0).all()
    # The linear ramp's first step is unguided, the unconditional rows come at the second.
    seen = seen_by_columns(calls, every, joined=1 if guidance == "linear" else None)
    for index, (clean, queries, answer) in enumerate(calls):
        assert (answer[1] is None) == (guidance is None or (guidance == "linear" and index == 0))
        for logits, condition in zip(answer, conditions(model), strict=True):
            if logits is not None:
                expected = slow_logits(model, condition, clean.codes, clean.arrival, seen[index], queries)
                assert_close(logits, expected, atol=1e-4, rtol=1e-4)
    if 5 % every:  # the last but one step is not one that encodes everything
        clean, queries, (logits, _) = calls[5]
        everything = [len(seen[5])] * len(seen[5])
        fresh = slow_logits(model, conditions(model)[0], clean.codes, clean.arrival, everything, queries)
        assert (logits - fresh).abs().max() > 1e-2


@pytest.mark.parametrize("guided", [False, True])
def test_encoding_everything_at_every_step_is_the_ordinary_pass(partition, guided):
    model, generator = partition(), torch.Generator().manual_seed(0)
    arrival = torch.stack([torch.randperm(16, generator=generator) for _ in CLASSES])
    codes = torch.randint(0, 12, (3, 16), generator=generator)
    kept, since = make_predictor(model, *conditions(model)), 0
    for known in (0, 2, 3, 9):
        clean, queries = Clean(codes, arrival[:, :known], None, since), arrival[:, known : known + 4]
        plain = make_predictor(model, *conditions(model)).predict(
            Clean(codes, clean.arrival, None), queries, None, guided
        )
        found = kept.predict(Clean(codes, clean.arrival, None, since, reuse=False), queries, None, guided)
        for own, expected in zip(found[: 1 + guided], plain, strict=False):
            assert_close(own, expected, atol=1e-5, rtol=1e-5)
        since = known


@pytest.mark.parametrize("order", ["halton", "confidence"])
def test_one_is_the_ordinary_generation_and_more_is_not(partition, steps_of, order):
    settings = {"order": order, "guidance_scale": 2.0, "steps": 7}
    plain, one, three = (
        steps_of(partition(), CLASSES, [1, 2, 3], **settings, **more)[-1]
        for more in ({}, {"encoder_refresh": 1}, {"encoder_refresh": 3})
    )
    assert torch.equal(plain.codes, one.codes) and plain.computed == one.computed
    assert not torch.equal(plain.codes, three.codes)


@pytest.mark.parametrize("scale", [0.0, 2.0])
def test_a_picture_is_the_same_alone_and_in_parts(partition, steps_of, monkeypatch, scale):
    settings = {"encoder_refresh": 3, "guidance_scale": scale}
    together = steps_of(partition(), CLASSES, [1, 2, 3], **settings)[-1].codes
    monkeypatch.setattr("pgm.predictors.TOKENS", 8)
    monkeypatch.setattr("pgm.predictors.CACHE", 0)
    assert torch.equal(steps_of(partition(), CLASSES, [1, 2, 3], **settings)[-1].codes, together)
    alone = [
        steps_of(partition(), [label], [seed], **settings)[-1].codes
        for label, seed in zip(CLASSES, (1, 2, 3), strict=True)
    ]
    assert torch.equal(torch.cat(alone), together)


def test_positions_that_did_not_run_are_not_counted(partition):
    calls, steps = recorded(partition(), encoder_refresh=3)
    known = [clean.arrival.shape[1] for clean, _, _ in calls]
    expected = 0
    for index, (step, (_, queries, _)) in enumerate(zip(steps, calls, strict=True)):
        encoded = known[index] - known[index - 1] if index % 3 else 2 + known[index]
        expected += encoded + queries.shape[1]
        assert step.computed == expected


def test_what_cannot_be_kept_is_refused(partition, masked, steps_of):
    ragged = GIVEN.clone()
    ragged[0, :8] = 1
    settings = {"encoder_refresh": 2}
    with pytest.raises(ValueError, match="differ in their known codes"):
        steps_of(partition(), CLASSES, [1, 2, 3], ragged, **settings)
    with pytest.raises(ValueError, match="masked transformers"):
        steps_of(masked(), CLASSES, [1, 2, 3], **settings)
    for variant in ({"decoder_mode": "interleave"}, {"query_mode": "learn+freqs+mean"}):
        with pytest.raises(ValueError, match="encoder_refresh must be 1 unless"):
            steps_of(partition(**variant), CLASSES, [1, 2, 3], **settings)
    model = partition()
    predictor = make_predictor(model, *conditions(model), visible_length="reference")
    with pytest.raises(ValueError, match="visible_length 'reference'"):
        list(sample(predictor, draw_noise([1, 2, 3], 16), (4, 4), SamplingConfig(steps=4, encoder_refresh=2)))
