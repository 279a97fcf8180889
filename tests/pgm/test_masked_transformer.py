"""Masked transformer: loss at the start, labels, patches, and a head that is shared with the token table."""

import math

import pytest
import torch
from torch.testing import assert_close

from pgm.objectives import training_loss


def test_an_untrained_model_is_uniform(fresh):
    model = fresh("masked", codebook_size=64)
    codes = torch.randint(0, 64, (8, 16), generator=torch.Generator().manual_seed(0))
    loss = training_loss(model.eval(), codes, codes % 2 == 0, torch.zeros(8, dtype=torch.int64))
    assert loss.item() == pytest.approx(math.log(65), rel=0.05)


@torch.no_grad()
def test_hidden_codes_are_not_seen(masked):
    """Codes under the mask never reach the network: only the loss knows them."""
    model, classes = masked(), torch.tensor([1, 2])
    codes = torch.randint(0, 12, (2, 16), generator=torch.Generator().manual_seed(0))
    hidden = codes % 3 == 0
    other = torch.where(hidden, (codes + 3) % 12, codes)  # stays hidden: still divisible by three
    seen = []
    model.register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0]))
    losses = [training_loss(model, each, hidden, classes).item() for each in (codes, other)]
    assert torch.equal(*seen) and losses[0] != losses[1]


@torch.no_grad()
@pytest.mark.parametrize("changes", [{}, {"patch": 2}, {"registers": 0}, {"num_styles": 3}, {"width": 20, "heads": 3}])
def test_positions_restrict_the_head_only(masked, changes):
    model, classes = masked(**changes), torch.tensor([1, -1])
    codes = torch.randint(0, 13, (2, 16), generator=torch.Generator().manual_seed(0))
    logits = model(codes, classes)
    assert logits.shape == (2, 16, 13)
    positions = torch.tensor([[5, 0], [15, 3]])
    some = model.predict(codes, model.prepare(model.condition(classes)), positions)
    assert_close(some, logits.gather(1, positions[..., None].expand(-1, -1, 13)), atol=1e-4, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize(("patch", "moved"), [(1, [6]), (2, [2, 3, 6, 7])])
def test_codes_and_patches_keep_their_places(masked, patch, moved):
    """Without blocks between, a change of one code moves the logits of its own patch and no others."""
    model, classes = masked(patch=patch, layers=0), torch.tensor([0])
    codes = torch.zeros(1, 16, dtype=torch.int64)
    changed = codes.clone()
    changed[0, 6] = 3  # row 1, column 2
    difference = (model(codes, classes) - model(changed, classes)).abs().amax(-1)[0]
    assert (difference > 1e-6).nonzero()[:, 0].tolist() == moved


@torch.no_grad()
def test_null_labels(masked):
    model = masked(num_styles=3)
    null = model.condition(torch.tensor([-1]), torch.tensor([-1]))
    assert torch.equal(model.condition(torch.tensor([5]), torch.tensor([3])), null)
    assert torch.equal(model.condition(torch.tensor([-1])), null)
    assert not torch.equal(model.condition(torch.tensor([0])), null)


def test_head_and_token_table_are_one_tensor_under_both_keys(masked):
    model = masked()
    assert model.head.weight is model.tok_emb.weight
    assert {"head.weight", "tok_emb.weight"} <= set(model.state_dict())
    assert model.config.special_ids == (12,) and model.config.length == 16


def test_width_that_heads_do_not_divide_loses_the_rest(masked):
    model = masked(width=20, heads=3)  # as the published "small": 512 over 6 heads is 510
    assert model.transformer.layers[0].attn.wq.weight.shape == (18, 20)
