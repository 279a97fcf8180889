"""Muon takes the matrices inside blocks, AdamW the rest, and nothing is left out or taken twice."""

import pytest
import torch

from pgm.masked_transformer import MaskedTransformer, MaskedTransformerConfig
from pgm.optimizers import build_optimizers
from pgm.partition_transformer import PartitionTransformer, PartitionTransformerConfig

PARTITION = PartitionTransformerConfig(
    vocab_size=10, length=6, width=8, heads=2, encoder_layers=1, decoder_layers=1, mask_id=8, bos_id=9, num_classes=3
)
MASKED = MaskedTransformerConfig(codebook_size=8, grid=2, width=8, layers=1, heads=2, num_classes=3)


@pytest.mark.parametrize("model", [PartitionTransformer(PARTITION), MaskedTransformer(MASKED)], ids=["partition", "masked"])
def test_every_parameter_has_exactly_one_optimiser(model):
    optimizers = build_optimizers(model, "muon", 1e-3, (0.9, 0.98), 0.03)
    taken = [id(p) for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]]
    assert sorted(taken) == sorted(id(p) for p in model.parameters())
    names = {id(p): name for name, p in model.named_parameters()}
    by_muon = {names[id(p)] for group in optimizers[1].param_groups for p in group["params"]}
    assert any("attn" in name for name in by_muon) and any("mlp" in name or "ff" in name for name in by_muon)
    assert not any("embed" in name or "emb." in name or "adaLN" in name or "head" in name for name in by_muon)


def test_muon_lowers_the_loss_of_a_small_problem():
    torch.manual_seed(0)
    model = PartitionTransformer(PARTITION)
    optimizers = build_optimizers(model, "muon", 1e-2, (0.9, 0.98), 0.0)
    tokens = torch.cat((torch.full((8, 1), 9), torch.arange(8)[:, None].expand(-1, 6)), dim=1)
    losses = []
    for step in range(60):
        groups = torch.rand(8, 7, generator=torch.Generator().manual_seed(step)) < 0.5
        logits = model(tokens, groups, torch.zeros(8, dtype=torch.int64))
        loss = torch.nn.functional.cross_entropy(logits[:, 1:].flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_an_unknown_optimiser_is_named():
    with pytest.raises(ValueError, match="sgd"):
        build_optimizers(PartitionTransformer(PARTITION), "sgd", 1e-3, (0.9, 0.98), 0.0)
