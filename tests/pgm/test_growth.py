"""A grown model computes what the small one computed."""

from dataclasses import replace

import pytest
import torch

from pgm.growth import grow
from pgm.partition_transformer import PartitionTransformer, PartitionTransformerConfig

CONFIG = PartitionTransformerConfig(
    vocab_size=10, length=6, width=8, heads=2, encoder_layers=2, decoder_layers=1, mask_id=8, bos_id=9, num_classes=3
)


def test_growing_in_depth_keeps_the_function_and_the_new_layers_learn():
    torch.manual_seed(0)
    small = PartitionTransformer(CONFIG).eval()
    for parameter in small.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    large = PartitionTransformer(replace(CONFIG, encoder_layers=4, decoder_layers=3)).eval()
    grow(small, large)
    tokens = torch.cat((torch.full((2, 1), 9), torch.randint(0, 8, (2, 6))), dim=1)
    groups = torch.rand(2, 7) < 0.5
    inputs = tokens, groups, torch.tensor([0, 2])
    assert torch.equal(large(*inputs), small(*inputs))
    large(*inputs).square().sum().backward()
    assert large.encoder.blocks[1].adaLN_modulation.weight.grad.abs().sum() > 0


def test_only_depth_may_differ():
    small = PartitionTransformer(CONFIG)
    with pytest.raises(ValueError, match="shrink"):
        grow(small, PartitionTransformer(replace(CONFIG, encoder_layers=1)))
    with pytest.raises(ValueError, match="no place"):
        grow(small, PartitionTransformer(replace(CONFIG, width=16)))
    with pytest.raises(ValueError, match="lacks"):
        grow(small, PartitionTransformer(replace(CONFIG, num_styles=2)))
