"""Losses of PGM, MDLM and complementary masking against recorded ones, per token and in the mean."""

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from pgm.diffusion_objectives import (
    complementary_token_loss,
    masked_token_loss,
    mean_over_valid,
    partition_bound,
    partition_token_loss,
)

CLOSE = {"atol": 1e-5, "rtol": 1e-4}
MASK = 39


@pytest.fixture(scope="module", autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def recorded(text_parity):
    return load_file(text_parity("losses.safetensors"))


def check(recorded, kind, token_loss):
    assert_close(token_loss, recorded[f"{kind}_token_nll"], **CLOSE)
    valid = recorded["valid_tokens"]
    assert_close(mean_over_valid(token_loss, valid), recorded[f"{kind}_loss"], **CLOSE)
    assert_close((token_loss * valid).sum(), recorded[f"{kind}_nlls"], **CLOSE)
    assert int(valid.sum()) == int(recorded[f"{kind}_num_tokens"])


def test_partition_losses(text_partition, recorded):
    tokens, groups, t = recorded["pgm/x0"], recorded["pgm/group_idxs"], recorded["t"]
    logits = text_partition()(tokens, groups, torch.zeros(3))
    check(recorded, "pgm/train", partition_token_loss(logits, tokens, groups, t, MASK))
    check(recorded, "pgm/eval", partition_bound(logits, tokens, groups, t, MASK))


def test_masked_losses(text_masked, recorded):
    tokens, t = recorded["mdlm/x0"], recorded["t"]
    masked = recorded["mdlm/xt"]
    token_loss = masked_token_loss(text_masked(masked, torch.zeros(3)), tokens, masked == MASK, t, MASK)
    check(recorded, "mdlm/train", token_loss)
    check(recorded, "mdlm/eval", token_loss)


def test_complementary_losses(text_masked, recorded):
    tokens, masked, t = recorded["complement/x0"], recorded["complement/xt"], recorded["t"]
    hidden = masked == MASK
    logits = text_masked(masked, torch.zeros(3))
    complement = text_masked(torch.where(hidden, tokens, MASK), torch.zeros(3))
    check(recorded, "complement/train", complementary_token_loss(logits, complement, tokens, hidden, t, MASK))
    check(recorded, "complement/eval", masked_token_loss(logits, tokens, hidden, t, MASK))
