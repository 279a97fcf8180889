"""Noise schedule, time sampling and partition weights against ../shared/parity/text/losses.safetensors."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from pgm.noise_schedule import alpha, alpha_derivative, hidden_mask, partition_weights, sample_times

FIXTURE = Path(__file__).resolve().parents[3] / "shared/parity/text/losses.safetensors"
pytestmark = pytest.mark.skipif(not FIXTURE.exists(), reason="parity fixtures (../shared/parity/text) are not here")


@pytest.fixture(scope="module")
def losses():
    return load_file(FIXTURE)


def test_alpha_and_its_derivative(losses):
    torch.testing.assert_close(alpha(losses["t"]), losses["alpha_t"])
    torch.testing.assert_close(alpha_derivative(losses["t"]), losses["dalpha_t"])


def test_times_from_uniforms(losses):
    u = losses["sample_t/u"]
    torch.testing.assert_close(sample_times(u, stratified=False), losses["sample_t/plain"])
    torch.testing.assert_close(sample_times(u), losses["sample_t/antithetic"])


def test_partition_from_uniforms(losses):
    hidden = hidden_mask(losses["partition/u"], losses["t"])
    assert torch.equal(hidden.long(), losses["partition/group_idxs"])


def test_weights_of_both_sides(losses):
    weights = partition_weights(losses["pgm/group_idxs"], losses["t"])
    torch.testing.assert_close(weights, losses["pgm/weights"], rtol=1e-4, atol=0)
