"""The plain sampler is the oracle of ours: same codes, whatever is saved; and the floor counts what is run."""

import pytest
import torch

from benchmarks.baseline import compare, noise_of, our_sample
from benchmarks.floor import achieved, product_rate
from benchmarks.operations import generation_operations
from benchmarks.pgm_vs_maskgit import make
from benchmarks.plain_sampler import plain_sample
from pgm.partition_transformer import PartitionTransformerConfig
from pgm.sampling import SamplingConfig

CPU = torch.device("cpu")


@pytest.fixture(params=["cross-only", "interleave"])
def model(request):
    config = PartitionTransformerConfig(
        vocab_size=18, length=16, width=16, heads=2, encoder_layers=1, decoder_layers=2, mask_id=16, bos_id=17,
        num_classes=3, num_styles=2, dropout=0.0, decoder_mode=request.param,
    )  # fmt: skip
    return make(config, CPU, torch.float32)


@pytest.mark.parametrize("scale", [0.0, 2.0])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("order", ["halton", "random", "confidence"])
def test_every_saving_leaves_the_codes_as_they_are(model, order, temperature, scale):
    config = SamplingConfig(steps=5, order=order, guidance_scale=scale, temperature=temperature, temperature_anneal=2.0)
    labels = torch.tensor([0, 1, 2]), torch.tensor([1, 0, 1])
    ours, plain = (f(model, *labels, noise_of(3, 16, config), (4, 4), config) for f in (our_sample, plain_sample))
    assert torch.equal(ours, plain) and (ours >= 0).all()
    assert temperature == 0 or len(ours.unique()) > 4  # the model says something


def test_a_comparison_and_a_floor_are_positive_and_consistent(model):
    config = SamplingConfig(steps=3, guidance_scale=2.0)
    ours, plain, ratio = compare(model, model, 2, 4, config, CPU, pairs=1)
    assert ours > 0 and ratio == pytest.approx(plain / ours)
    rate = product_rate(CPU, torch.float32, size=64, repeats=1)
    seconds, floor, share = achieved(model, 2, config, CPU, rate, runs=1)
    assert floor == pytest.approx(2 * generation_operations(model.config, config, 16) / rate)
    assert share == pytest.approx(floor / seconds)
