"""Guidance found ahead is what it is meant to be, saved work is counted, points are read and drawn."""

import pytest
import torch
from torch.testing import assert_close

from benchmarks.baseline import noise_of, our_sample
from benchmarks.encoder_refresh import GuidanceAhead, generate, operations, parse_point, plot
from benchmarks.operations import generation_operations
from benchmarks.pgm_vs_maskgit import make
from pgm.models import make_predictor
from pgm.orders import fixed_order
from pgm.partition_transformer import PartitionTransformerConfig
from pgm.predictors import Clean
from pgm.sampling import SamplingConfig, sample
from pgm.schedules import step_counts

GRID = (4, 4)
LABELS = torch.tensor([0, 1, 2]), torch.tensor([1, 0, 1])
SAMPLING = SamplingConfig(steps=7, guidance_scale=2.0, guidance_schedule="constant", temperature=0.7)


@pytest.fixture(scope="module")
def model():
    config = PartitionTransformerConfig(
        vocab_size=18, length=16, width=16, heads=2, encoder_layers=3, decoder_layers=2, mask_id=16, bos_id=17,
        num_classes=3, num_styles=2, dropout=0.0,
    )  # fmt: skip
    model = make(config, torch.device("cpu"), torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(10)  # what was found ahead must differ from what is found now
    return model


@pytest.fixture(scope="module")
def conditions(model):
    nulls = torch.full((3,), -1)
    with torch.no_grad():
        return model.condition(*LABELS), model.condition(nulls, nulls)


def test_nothing_saved_gives_the_ordinary_codes_and_operations(model):
    noise = noise_of(3, 16, SAMPLING)
    codes = generate(model, *LABELS, noise, GRID, SAMPLING)
    assert torch.equal(codes, our_sample(model, *LABELS, noise, GRID, SAMPLING))
    assert len(codes.unique()) > 4  # the model says something
    assert operations(model.config, SAMPLING) == generation_operations(model.config, SAMPLING, 16)


def test_all_guidance_at_every_step_gives_the_ordinary_codes(model, conditions):
    noise = noise_of(3, 16, SAMPLING)
    order, counts = fixed_order("halton", GRID, noise.order, None), step_counts("arccos", 16, 7)
    ahead = GuidanceAhead(make_predictor(model, *conditions), 1, order, counts)
    *_, last = sample(ahead, noise, GRID, SAMPLING)
    assert torch.equal(last.codes, our_sample(model, *LABELS, noise, GRID, SAMPLING))


def test_the_difference_is_the_one_found_ahead(model, conditions):
    calls, noise = [], noise_of(3, 16, SAMPLING)

    class Recorded(GuidanceAhead):
        def predict(self, clean, queries, query_lengths, guided):
            answer = super().predict(clean, queries, query_lengths, guided)
            calls.append((clean, queries, answer))
            return answer

    order, counts = fixed_order("halton", GRID, noise.order, None), step_counts("arccos", 16, 7)
    list(sample(Recorded(make_predictor(model, *conditions), 3, order, counts), noise, GRID, SAMPLING))

    def alone(clean, queries):
        return make_predictor(model, *conditions).predict(Clean(clean.codes, clean.arrival, None), queries, None, True)

    assert len(calls) == 7
    for index, (clean, queries, (conditional, unconditional)) in enumerate(calls):
        now, then = alone(clean, queries), alone(calls[index - index % 3][0], queries)
        assert_close(conditional, now[0], atol=1e-4, rtol=1e-4)
        assert_close(conditional - unconditional, then[0] - then[1], atol=1e-4, rtol=1e-4)
        assert index % 3 == 0 or (now[1] - unconditional).abs().max() > 1e-3


@pytest.mark.parametrize("text", ["7:3", "7:7", "7:1:3"])
def test_saved_work_is_what_does_not_run(model, monkeypatch, text):
    point = parse_point(text)
    config = SamplingConfig(**{**vars(SAMPLING), "encoder_refresh": point.encoder})
    encoded, asked = [], []
    block, head = model.encoder.blocks[1].attn_out, model.output_layer.linear
    handles = [
        block.register_forward_hook(lambda module, given, found: encoded.append(found.shape[:2].numel())),
        head.register_forward_hook(lambda module, given, found: asked.append(found.shape[:2].numel())),
    ]
    generate(model, *LABELS, noise_of(3, 16, config), GRID, config, point.guidance)
    for handle in handles:
        handle.remove()
    # At width 1 the attention's own part is told apart from the columns that go through layers.
    found = operations(model.config, config, point.guidance)
    assert found < operations(model.config, SAMPLING)
    wider = operations(PartitionTransformerConfig(**{**vars(model.config), "width": 32}), config, point.guidance)
    squares = (wider - 2 * found) / 2 / 16**2  # products with a matrix of width x width
    layers = model.config.encoder_layers * 12 + 2 * (1 + model.config.decoder_layers)
    assert squares == (layers * sum(encoded) + (1 + 10 * model.config.decoder_layers) * sum(asked)) / 3


def test_points_are_read_and_drawn():
    points = [parse_point(text) for text in ("16", "8", "16:4", "16:1:2")]
    assert [(p.steps, p.encoder, p.guidance) for p in points] == [(16, 1, 1), (8, 1, 1), (16, 4, 1), (16, 1, 2)]
    drawn = plot(points)
    assert drawn.count("<polyline") == 6
    assert "16 steps, encoder_refresh" in drawn and "16 steps, guidance ahead" in drawn
    with pytest.raises(ValueError, match="not on both, got '16:2:2'"):
        parse_point("16:2:2")
