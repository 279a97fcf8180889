"""Log-linear noise schedule: probabilities, time sampling and the two weights of the bound."""

import pytest
import torch

from pgm.noise_schedule import (
    alpha,
    alpha_derivative,
    complement_weight,
    hidden_mask,
    masked_weight,
    partition_weights,
    sample_times,
)


def test_masking_probability_runs_from_zero_to_just_below_one():
    t = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    torch.testing.assert_close(1 - alpha(t), torch.tensor([0.0, 0.4995, 0.999], dtype=torch.float64))
    assert torch.equal(alpha_derivative(t), torch.full((3,), -0.999, dtype=torch.float64))


def test_masked_weight_is_the_ratio_of_derivative_and_masking_probability():
    t = torch.linspace(0.001, 1, 50, dtype=torch.float64)
    torch.testing.assert_close(masked_weight(t), -alpha_derivative(t) / (1 - alpha(t)))


def test_complement_weight_mirrors_the_masked_weight_until_its_cap():
    t = torch.linspace(0.01, 0.99, 50, dtype=torch.float64)
    torch.testing.assert_close(complement_weight(t), masked_weight(1 - t))
    assert complement_weight(torch.tensor([0.9999, 1.0])).tolist() == [
        pytest.approx(1000),
        pytest.approx(1000),
    ]


def test_partition_weights_follow_the_side_of_each_token():
    weights = partition_weights(torch.tensor([[0, 1, 1], [1, 0, 0]]), torch.tensor([0.2, 0.5]))
    torch.testing.assert_close(weights, torch.tensor([[1.25, 5.0, 5.0], [2.0, 2.0, 2.0]]))


def test_stratified_times_put_one_sample_in_every_bin():
    u = torch.rand(64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    t = sample_times(u)
    assert t.min() >= 1e-3 and t.max() < 1
    assert sorted(((t - 1e-3) / 0.999 * 64).long().tolist()) == list(range(64))
    torch.testing.assert_close(sample_times(u, stratified=False), 0.999 * u + 0.001)


def test_the_hidden_share_follows_t():
    u = torch.rand(3, 20_000, generator=torch.Generator().manual_seed(0))
    share = hidden_mask(u, torch.tensor([0.1, 0.5, 1.0])).float().mean(1)
    torch.testing.assert_close(share, torch.tensor([0.0999, 0.4995, 0.999]), atol=0.01, rtol=0)
