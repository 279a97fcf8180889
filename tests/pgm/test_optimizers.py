"""Optimisers: which parameters Muon takes, and that two optimisers together are what they are alone."""

import copy

import pytest
import torch
from torch import nn

from pgm.causal_transformer import CausalTransformer, CausalTransformerConfig
from pgm.diffusion_transformer import DiffusionTransformer, DiffusionTransformerConfig
from pgm.optimizers import hidden_matrices, make_optimizer

RATE = {"lr": 0.02, "betas": (0.9, 0.98), "weight_decay": 0.03}
KINDS = ["partition", "masked"]


def with_gradients(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    return model


TEXT = {"vocab_size": 12, "length": 8, "width": 16, "heads": 2, "mask_id": 11, "bos_id": 10}
OTHERS = {
    "diffusion": lambda: DiffusionTransformer(DiffusionTransformerConfig(**TEXT, layers=2, condition_width=16)),
    "causal": lambda: CausalTransformer(CausalTransformerConfig(**TEXT, layers=2)),
}


@pytest.mark.parametrize(("kind", "count"), [("partition", 21), ("masked", 14), ("diffusion", 8), ("causal", 8)])
def test_muon_takes_the_matrices_of_the_layers_alone(fresh, kind, count):
    model = OTHERS[kind]() if kind in OTHERS else fresh(kind)
    taken = {id(matrix) for matrix in hidden_matrices(model)}
    assert len(taken) == count
    left = [name for name, parameter in model.named_parameters() if id(parameter) not in taken and parameter.ndim == 2]
    # What AdamW keeps: embeddings, the output layer (`head`), times and modulations (of the masked one `mlp.1`).
    own = ("emb", "reg_tokens", "output_layer", "head", "sigma_map", "adaLN", "mlp.1")
    assert left and all(any(part in name for part in own) for name in left)


@pytest.mark.parametrize("kind", KINDS)
def test_each_part_does_what_it_would_do_alone(fresh, kind):
    together, alone = fresh(kind), fresh(kind)
    optimizer = make_optimizer(together, "muon", **RATE)
    matrices = hidden_matrices(alone)
    rest = [p for p in alone.parameters() if not any(p is matrix for matrix in matrices)]
    muon = torch.optim.Muon(matrices, lr=0.02, weight_decay=0.03, adjust_lr_fn="match_rms_adamw")
    adamw = torch.optim.AdamW(rest, **RATE)
    for seed in range(3):
        for model in (together, alone):
            with_gradients(model, seed)
        for group in optimizer.param_groups:
            group["lr"] = 0.02
        optimizer.step()
        muon.step()
        adamw.step()
    for a, b in zip(together.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_a_matrix_moves_along_an_orthogonal_direction_of_adamws_size():
    torch.manual_seed(0)
    model = nn.Module()
    model.attn_out = nn.Linear(32, 128)
    before = model.attn_out.weight.detach().clone()
    optimizer = make_optimizer(model, "muon", lr=1.0, betas=(0.9, 0.98), weight_decay=0.0)
    with_gradients(model, 0)
    optimizer.step()
    moved = before - model.attn_out.weight.detach()
    stretch = torch.linalg.svdvals(moved)
    assert stretch.min() > 0.6 * stretch.max() > 0  # of a random gradient it would be a third
    assert moved.square().mean().sqrt().item() == pytest.approx(0.2, rel=0.2)  # AdamW's updates, by the paper


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_state_goes_on_as_the_saved_one(fresh, kind):
    first, second = fresh(kind), fresh(kind)
    saved, loaded = (make_optimizer(model, "muon", **RATE) for model in (first, second))
    with_gradients(first, 0)
    saved.step()
    second.load_state_dict(first.state_dict())
    loaded.load_state_dict(copy.deepcopy(saved.state_dict()))
    for model, optimizer in ((first, saved), (second, loaded)):
        with_gradients(model, 1)
        optimizer.step()
        optimizer.zero_grad()
    assert all(p.grad is None for p in second.parameters())
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_closure_is_refused(fresh):
    with pytest.raises(ValueError, match="closure must be None"):
        make_optimizer(fresh("partition"), "muon", **RATE).step(lambda: torch.zeros(()))
