"""Losses: what counts, what does not, and gradients through both groups."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from pgm.objectives import drop_labels, partition_cross_entropy, training_loss


def test_every_content_position_counts_and_bos_does_not():
    logits = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    tokens = torch.randint(0, 6, (2, 5), generator=torch.Generator().manual_seed(0))
    possible = [0, 1, 2, 3, 4, 5, 7]  # without the mask id 6
    log_p = logits[:, 1:, possible].log_softmax(-1)
    expected = -log_p.gather(-1, tokens[:, 1:, None]).mean()
    torch.testing.assert_close(partition_cross_entropy(logits, tokens, mask_id=6), expected)
    logits[:, 0] += 100 * torch.randn(2, 8)
    torch.testing.assert_close(partition_cross_entropy(logits, tokens, mask_id=6), expected)


def test_half_precision_logits_give_a_float32_loss():
    logits = torch.randn(2, 5, 8).bfloat16()
    assert partition_cross_entropy(logits, torch.zeros(2, 5, dtype=torch.int64), 6).dtype == torch.float32


@pytest.mark.parametrize("kind", ["partition", "masked"])
def test_both_architectures_learn_from_the_same_batch(partition, masked, kind):
    model = {"partition": partition, "masked": masked}[kind]()
    codes = torch.randint(0, 12, (4, 16), generator=torch.Generator().manual_seed(0))
    arguments = codes, codes % 2 == 0, torch.tensor([0, 1, 2, -1])
    optimizer = torch.optim.Adam(model.parameters(), 0.03)
    losses = []
    for _ in range(25):
        losses.append(training_loss(model, *arguments))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < 0.6 * losses[0]


def test_masked_loss_counts_all_positions(masked):
    model, codes = masked(), torch.arange(16)[None] % 12
    nothing_hidden = torch.zeros(1, 16, dtype=torch.bool)
    loss = training_loss(model, codes, nothing_hidden, torch.tensor([0]))
    torch.testing.assert_close(loss, F.cross_entropy(model(codes, torch.tensor([0]))[0], codes[0]))


@pytest.mark.parametrize("what", ["stages", "positions"])
def test_stages_and_positions_are_for_partition_transformers(what, masked):
    codes = torch.arange(16)[None] % 12
    with pytest.raises(ValueError, match=f"{what} are for partition transformers"):
        training_loss(masked(), codes, codes % 2 == 0, torch.tensor([0]), **{what: torch.ones_like(codes)})


@torch.no_grad()
def test_the_loss_of_some_codes_is_theirs_in_the_whole_row(partition):
    model, codes, stages = partition(), torch.arange(16)[None] % 12, torch.arange(16, 0, -1)[None]
    hidden, first = codes % 2 == 0, torch.arange(15, 9, -1)  # codes of the last positions are known first
    begun = training_loss(
        model, codes[:, first], hidden[:, first], torch.tensor([2]), stages=stages[:, first], positions=first
    )
    tokens = torch.cat((torch.tensor([[13]]), codes), 1)
    logits = model(tokens, torch.zeros_like(tokens), torch.tensor([2]), stages=F.pad(stages, (1, 0)))[0, 1 + first]
    logits[:, model.config.mask_id] = -torch.inf
    torch.testing.assert_close(begun, F.cross_entropy(logits, codes[0, first]))


def test_wrapped_models_are_seen_through(partition):
    class Wrapper(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def forward(self, *arguments):
            return self.module(*arguments)

    model, codes = partition(), torch.arange(16)[None] % 12
    arguments = codes, codes % 2 == 0, torch.tensor([0])
    assert torch.equal(training_loss(Wrapper(model), *arguments), training_loss(model, *arguments))


def test_other_models_are_refused():
    with pytest.raises(TypeError, match="no objective for Linear"):
        training_loss(nn.Linear(2, 2), torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1))


def test_labels_are_dropped_at_the_given_probability():
    labels = torch.arange(10_000) % 7
    before = labels.clone()
    dropped = drop_labels(labels, 0.1, torch.Generator().manual_seed(0))
    assert (dropped == -1).float().mean().item() == pytest.approx(0.1, abs=0.01)
    assert torch.equal(dropped[dropped >= 0], labels[dropped >= 0]) and torch.equal(labels, before)
    assert torch.equal(drop_labels(labels, 0.0, torch.Generator()), labels)
    assert (drop_labels(labels, 1.0, torch.Generator()) == -1).all()
