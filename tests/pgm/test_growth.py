"""A grown model computes what the small one computed, and its new layers can learn."""

from dataclasses import replace

import pytest
import torch

from pgm.growth import grow
from pgm.partition_transformer import PartitionTransformer, PartitionTransformerConfig

CONFIG = PartitionTransformerConfig(
    vocab_size=10, length=6, width=8, heads=2, encoder_layers=2, decoder_layers=1, mask_id=8, bos_id=9, num_classes=3
)


def inputs_of(architecture):
    codes, classes = torch.randint(0, 8, (2, 16)), torch.tensor([0, 2])
    if architecture == "masked":
        return codes, classes
    return torch.cat((torch.full((2, 1), 13), codes), dim=1), torch.rand(2, 17) < 0.5, classes


DEEPER = {"partition": {"encoder_layers": 5, "decoder_layers": 4}, "masked": {"layers": 5}}
NEW = {  # of these depths, from two layers each: the new layers of each stack, and those that they follow
    "partition": {"encoder.blocks": {1: 0, 3: 2, 4: 2}, "decoder.layers": {1: 0, 3: 2}},
    "masked": {"transformer.layers": {1: 0, 3: 2, 4: 2}},
}


@pytest.fixture(params=DEEPER)
def grown(request, partition, masked, fresh):
    """A random small model, the same grown in depth, inputs for both, and which layers are new."""
    small = {"partition": partition, "masked": masked}[request.param]()
    large = fresh(request.param, **DEEPER[request.param]).eval()
    grow(small, large)
    return small, large, inputs_of(request.param), NEW[request.param]


def test_growing_in_depth_keeps_the_function(grown):
    small, large, inputs, _ = grown
    assert torch.equal(large(*inputs), small(*inputs))


def test_a_new_layer_is_the_one_before_with_closed_gates_that_can_open(grown):
    _, large, inputs, stacks = grown
    large(*inputs).square().sum().backward()
    for stack, new in stacks.items():
        for index, source in new.items():
            layer, before = (dict(large.get_submodule(f"{stack}.{i}").named_parameters()) for i in (index, source))
            for name, value in layer.items():
                if not name.startswith(("adaLN_modulation", "mlp.1.")):
                    assert torch.equal(value, before[name])
                    continue
                own, other = value.unflatten(0, (6, -1)), before[name].unflatten(0, (6, -1))
                assert torch.equal(own[[0, 1, 3, 4]], other[[0, 1, 3, 4]]) and not own[[2, 5]].any()
                slopes = value.grad.unflatten(0, (6, -1))[[2, 5]]
                assert all(slope.abs().sum() > 0 for slope in slopes)


def test_only_depth_may_differ():
    small = PartitionTransformer(CONFIG)
    with pytest.raises(ValueError, match="shrink"):
        grow(small, PartitionTransformer(replace(CONFIG, encoder_layers=1)))
    with pytest.raises(ValueError, match="no place"):
        grow(small, PartitionTransformer(replace(CONFIG, width=16)))
    with pytest.raises(ValueError, match="lacks"):
        grow(small, PartitionTransformer(replace(CONFIG, num_styles=2)))
