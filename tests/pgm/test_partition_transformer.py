"""Partition Transformer: what a position may and may not depend on, and that both of its modes are one function."""

import math
import re

import pytest
import torch
from torch.testing import assert_close

from pgm.objectives import training_loss
from pgm.partition_transformer import decoder_layer_kinds

VARIANTS = [
    {},
    {"query_mode": "learn"},
    {"query_mode": "learn+freqs+mean"},
    {"query_mode": "learn+freqs+logsumexp"},
    {"query_processor": "mlp4"},
    {"decoder_mode": "interleave", "decoder_layers": 3},
    {"decoder_mode": "interleave", "self_attention_first": True},
    {"decoder_mode": "interleave-2-self", "decoder_layers": 3},
    {"decoder_mode": "1-cross-first", "query_mode": "learn+freqs+mean"},
    {"registers": 0},
    {"registers": 0, "decoder_mode": "interleave", "query_mode": "learn+freqs+logsumexp"},
    {"registers": 4},
    {"num_styles": 3},
]
NAMES = [",".join(f"{k}={v}" for k, v in variant.items()) or "default" for variant in VARIANTS]


@pytest.fixture(scope="module", params=VARIANTS, ids=NAMES)
def model(request, partition):
    return partition(**request.param)


@pytest.fixture
def batch():
    """Tokens (2, 17) with BOS, groups (2, 17), class labels (2,)."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 12, (2, 17), generator=generator)
    tokens[:, 0] = 13
    groups = torch.zeros(2, 17, dtype=torch.int64)
    groups[0, [1, 4, 5, 9, 16]] = 1
    groups[1, [2, 3, 7, 8, 12]] = 1
    return tokens, groups, torch.tensor([1, -1])


@pytest.mark.parametrize("group", [0, 1])
@torch.no_grad()
def test_a_group_does_not_see_its_own_tokens_but_those_of_the_other(model, batch, group):
    tokens, groups, classes = batch
    before = model(tokens, groups, classes)
    changed = tokens.clone()
    changed[:, 1:] = torch.where(groups[:, 1:] == group, (tokens[:, 1:] + 5) % 12, tokens[:, 1:])
    after = model(changed, groups, classes)
    own, other = groups == group, groups != group
    assert torch.equal(before[own], after[own])
    assert ((before - after)[other].abs().amax(-1) > 1e-4).all()


def positions_of(groups, group):
    return torch.stack([(row == group).nonzero()[:, 0] for row in groups])


@torch.no_grad()
def test_generation_gives_what_training_learned(model, batch):
    tokens, groups, classes = batch
    trained = model(tokens, groups, classes)
    clean, queries = positions_of(groups, 0), positions_of(groups, 1)
    prepared = model.prepare(model.condition(classes))
    logits = model.decode(model.encode(tokens.gather(1, clean), clean, prepared), queries, prepared)
    assert_close(logits, trained.gather(1, queries[..., None].expand_as(logits)), atol=1e-4, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("registers", [0, 2])
def test_staged_rows_see_earlier_stages_only_and_leave_split_rows_alone(partition, batch, registers):
    model, (tokens, groups, classes) = partition(registers=registers, encoder_layers=2, decoder_layers=2), batch
    stages = torch.zeros_like(tokens)
    stages[0, 1:] = torch.arange(1, 17) % 4 + 1
    before = model(tokens, groups, classes, stages=stages)
    assert_close(before[1], model(tokens, groups, classes)[1])
    changed = tokens.clone()
    changed[0] = torch.where(stages[0] == 2, (tokens[0] + 5) % 12, tokens[0])
    moved = (before - model(changed, groups, classes, stages=stages)).abs().amax(-1)
    assert (moved[1] == 0).all() and (moved[0, stages[0] <= 2] == 0).all() and (moved[0, stages[0] > 2] > 1e-4).all()


@torch.no_grad()
@pytest.mark.parametrize("registers", [0, 2])
def test_a_staged_beginning_is_what_it_is_in_the_whole_row(partition, registers):
    model = partition(registers=registers, encoder_layers=2, decoder_layers=2)
    generator = torch.Generator().manual_seed(5)
    codes, order = torch.randint(0, 12, (2, 16), generator=generator), torch.randperm(16, generator=generator)
    stages = torch.stack([torch.arange(16).div(size, rounding_mode="floor")[order.argsort()] + 1 for size in (1, 4)])
    first, bos = order[:8], torch.full((2, 1), 13)

    def logits(where: torch.Tensor, positions: torch.Tensor | None) -> torch.Tensor:
        tokens, stage = (torch.cat((begin, t[:, where]), 1) for begin, t in ((bos, codes), (0 * bos, stages)))
        return model(tokens, torch.zeros_like(tokens), torch.tensor([1, -1]), stages=stage, positions=positions)

    whole, beginning = logits(torch.arange(16), None), logits(first, torch.cat((torch.tensor([0]), first + 1)))
    assert_close(beginning[:, 1:], whole[:, 1 + first])
    assert_close(logits(torch.arange(16), torch.arange(17)), whole)


def test_a_staged_loss_has_finite_gradients(partition):
    model, codes = partition(encoder_layers=2), torch.arange(16)[None].expand(2, -1) % 12
    stages = torch.stack((torch.arange(1, 17), torch.zeros(16, dtype=torch.int64)))
    training_loss(model, codes, codes % 2 == 0, torch.tensor([0, -1]), stages=stages).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("mixing", [{"decoder_mode": "interleave"}, {"query_mode": "learn+freqs+mean"}])
def test_stages_are_refused_where_more_is_mixed(partition, batch, mixing):
    got = re.escape(repr(next(iter(mixing.values()))))
    with pytest.raises(ValueError, match=f"stages need .* got a model with .*{got}"):
        partition(**mixing)(*batch, stages=torch.zeros_like(batch[0]))


@torch.no_grad()
def test_clean_tokens_may_come_in_any_order(model, batch):
    tokens, groups, classes = batch
    clean, queries = positions_of(groups, 0), positions_of(groups, 1)
    prepared = model.prepare(model.condition(classes))
    logits = model.decode(model.encode(tokens.gather(1, clean), clean, prepared), queries, prepared)
    shuffled = clean[:, torch.randperm(clean.shape[1], generator=torch.Generator().manual_seed(0))]
    again = model.decode(model.encode(tokens.gather(1, shuffled), shuffled, prepared), queries, prepared)
    assert_close(again, logits, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_padding_of_ragged_rows_changes_nothing(model, batch):
    tokens, groups, classes = batch
    clean, queries = positions_of(groups, 0), positions_of(groups, 1)
    prepared = model.prepare(model.condition(classes[:1]))
    short, few = clean[:1, :7], queries[:1, :3]
    alone = model.decode(model.encode(tokens[:1].gather(1, short), short, prepared), few, prepared)
    prepared = model.prepare(model.condition(classes))
    known = tokens.gather(1, clean)
    known[0, 7:] = 0
    memory = model.encode(known, clean, prepared, torch.tensor([7, clean.shape[1]]))
    padded = model.decode(memory, queries, prepared, torch.tensor([3, queries.shape[1]]))
    assert_close(padded[:1, :3], alone, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("group", [0, 1])
def test_a_group_without_visible_tokens_gets_finite_logits_and_gradients(partition, group):
    model = partition(registers=0).train()
    tokens = torch.randint(0, 12, (2, 17), generator=torch.Generator().manual_seed(0))
    groups = torch.full((2, 17), group)
    logits = model(tokens, groups, torch.tensor([0, -1]))
    assert logits.isfinite().all()
    logits.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def test_an_untrained_model_is_uniform(fresh):
    model = fresh("partition", vocab_size=66, mask_id=64, bos_id=65)
    codes = torch.randint(0, 64, (8, 16), generator=torch.Generator().manual_seed(0))
    loss = training_loss(model, codes, codes % 2 == 0, torch.zeros(8, dtype=torch.int64))
    assert loss.item() == pytest.approx(math.log(66), rel=0.05)


@torch.no_grad()
def test_null_labels(partition):
    model = partition(num_styles=3)
    null = model.condition(torch.tensor([-1]), torch.tensor([-1]))
    assert torch.equal(model.condition(torch.tensor([5]), torch.tensor([3])), null)
    assert torch.equal(model.condition(torch.tensor([-1])), null)
    assert not torch.equal(model.condition(torch.tensor([-1]), torch.tensor([0])), null)


def test_without_classes_the_condition_is_a_timestep(partition):
    model = partition(num_classes=0, condition_width=8)
    assert model.condition(torch.zeros(3)).shape == (3, 8)
    assert "sigma_map.mlp.0.weight" in model.state_dict()


@pytest.mark.parametrize(
    ("mode", "first", "kinds"),
    [
        ("cross-only", False, "cross cross cross"),
        ("interleave", False, "cross self cross"),
        ("interleave", True, "self cross self"),
        ("interleave-2-cross", False, "cross cross self"),
        ("interleave-2-self", False, "cross self self"),
        ("2-cross-first", False, "cross cross self"),
    ],
)
def test_decoder_modes(mode, first, kinds):
    assert decoder_layer_kinds(mode, 3, first) == kinds.split()


@pytest.mark.parametrize("mode", ["", "cross", "interleave-cross", "first-cross"])
def test_unknown_decoder_modes_are_refused(mode):
    with pytest.raises(ValueError, match=f"decoder_mode must be .*, got '{mode}'"):
        decoder_layer_kinds(mode, 2)


def test_special_ids_are_the_mask_and_a_bos_behind_it(partition):
    assert partition().config.special_ids == (12, 13)
    assert partition(mask_id=13, bos_id=12).config.special_ids == (13,)
