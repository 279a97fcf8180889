"""MeanFlow: its maths without a network, and small trained flows checked for arrival at N(0, I) on held-out data."""

import dataclasses

import pytest
import torch

from pgm.meanflow import (
    MeanFlowConfig,
    MeanFlowNet,
    from_gaussian,
    identity_target,
    interpolate,
    jump,
    meanflow_loss,
    sample_times,
    to_gaussian,
    train_meanflow,
)
from pgm.meanflow_checks import (
    Mixture,
    cycle_error,
    gaussian_average_velocity,
    gaussianity,
    kolmogorov_distance,
    smallest_singular_value,
    step_difference,
    symmetric_whitening,
)


def exact_velocity(z, r, t, mean=0.5, std=2.0):
    return gaussian_average_velocity(
        z, r[:, None], t[:, None], torch.tensor(mean, dtype=z.dtype), torch.tensor(std, dtype=z.dtype)
    )


def test_times_are_ordered_and_the_asked_share_is_apart():
    r, t = sample_times(20_000, torch.Generator().manual_seed(0), share_apart=0.25)
    assert ((r > 0) & (r <= t) & (t < 1)).all()
    assert (r != t).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert torch.logit(r[r == t].double()).mean() > -0.4  # t is the later of two draws from logit-normal(-0.4, 1)


def test_with_equal_times_the_target_is_plain_flow_matching():
    torch.manual_seed(0)
    data, gaussian, t = torch.randn(6, 3), torch.randn(6, 3), torch.rand(6)
    z = interpolate(gaussian, data, t)
    _, target = identity_target(exact_velocity, z, t, t, data - gaussian)
    torch.testing.assert_close(target, data - gaussian)


def test_the_target_carries_no_gradient_and_the_prediction_does():
    network = MeanFlowNet(MeanFlowConfig(dimension=3, width=8, blocks=1, frequencies=4))
    torch.nn.init.normal_(network.output.weight)
    z, v, r, t = torch.randn(5, 3), torch.randn(5, 3), torch.full((5,), 0.2), torch.full((5,), 0.7)
    u, target = identity_target(network, z, r, t, v)
    assert u.requires_grad and not target.requires_grad
    u.sum().backward()
    assert network.output.weight.grad.abs().sum() > 0


def test_forward_mode_derivative_of_the_network_equals_a_finite_difference():
    torch.manual_seed(1)
    network = MeanFlowNet(MeanFlowConfig(dimension=2, width=8, blocks=2, frequencies=4)).double()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    z, v = torch.randn(4, 2, dtype=torch.float64), torch.randn(4, 2, dtype=torch.float64)
    r, t = torch.full((4,), 0.3, dtype=torch.float64), torch.full((4,), 0.8, dtype=torch.float64)
    _, target = identity_target(network, z, r, t, v)
    h = 1e-5
    with torch.no_grad():
        derivative = (network(z + h * v, r, t + h) - network(z - h * v, r, t - h)) / (2 * h)
    torch.testing.assert_close(target, v - 0.5 * derivative, atol=1e-7, rtol=1e-6)


def test_a_fresh_network_is_the_zero_map():
    network = MeanFlowNet(MeanFlowConfig(dimension=4, width=8, blocks=2, frequencies=3))
    data = torch.randn(5, 4)
    assert torch.equal(to_gaussian(network, data, 3), data)
    assert torch.equal(from_gaussian(network, data, 3), data)


def test_jumps_with_the_exact_velocity_agree_for_any_number_of_steps():
    data = 0.5 + 2 * torch.randn(50, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for steps in (1, 2, 7, 64):
        torch.testing.assert_close(to_gaussian(exact_velocity, data, steps), (data - 0.5) / 2)
    assert cycle_error(exact_velocity, data, steps=64) < 1e-3
    assert step_difference(exact_velocity, data) < 1e-10


def test_jump_keeps_points_where_the_times_agree():
    z, u, t = torch.randn(3, 2), torch.randn(3, 2), torch.rand(3)
    assert torch.equal(jump(z, u, t, t), z)


def test_loss_of_a_batch_is_the_mean_of_its_rows():
    torch.manual_seed(0)
    data, gaussian = torch.randn(8, 3), torch.randn(8, 3)
    r, t = sample_times(8)
    for power in (0.0, 0.75):
        rows = [
            meanflow_loss(exact_velocity, data[i : i + 1], gaussian[i : i + 1], r[i : i + 1], t[i : i + 1], power=power)
            for i in range(8)
        ]
        whole = meanflow_loss(exact_velocity, data, gaussian, r, t, power=power)
        torch.testing.assert_close(whole, torch.stack(rows).mean())


def test_one_dimensional_flow_learns_the_quantile_map():
    mixture = Mixture((0.3, 0.7), (-1.5, 1.0), (0.4, 0.6))
    generator = torch.Generator().manual_seed(0)

    def draw(n):
        component = (torch.rand(n, generator=generator) < 0.7).long()
        mean, std = torch.tensor([-1.5, 1.0])[component], torch.tensor([0.4, 0.6])[component]
        return (mean + std * torch.randn(n, generator=generator))[:, None]

    config = MeanFlowConfig(dimension=1, width=48, blocks=1, frequencies=8)
    network = train_meanflow(draw(20_000), config, steps=400, batch_size=256, learning_rate=5e-3, ema_decay=0.99)
    held_out = draw(4000)
    exact = mixture.transport(held_out[:, 0].double(), 0.0, 1.0).float()
    arrived = to_gaussian(network, held_out, 4)[:, 0]
    assert kolmogorov_distance(held_out).item() > 0.15  # the data itself is far from N(0, 1)
    assert kolmogorov_distance(arrived[:, None]).item() < 0.07
    assert (arrived - exact).abs().mean().item() < 0.15
    assert cycle_error(network, held_out) < 0.1


def test_correlated_vectors_arrive_at_the_gaussian_on_held_out_data():
    generator = torch.Generator().manual_seed(0)
    mean = torch.tensor([0.4, -0.2, 1.0])
    covariance = torch.tensor([[2.0, 0.5, 0.2], [0.5, 1.0, -0.3], [0.2, -0.3, 0.6]])
    root = torch.linalg.cholesky(covariance)

    def draw(n):
        return mean + torch.randn(n, 3, generator=generator) @ root.T

    config = MeanFlowConfig(dimension=3, width=48, blocks=1, frequencies=8)
    network = train_meanflow(draw(20_000), config, steps=300, batch_size=256, learning_rate=5e-3, ema_decay=0.99)
    held_out = draw(2000)
    z0 = to_gaussian(network, held_out, 4)
    assert not gaussianity(held_out).passed
    report = gaussianity(z0)
    assert report.passed, report
    assert report.smallest_eigenvalue > 0.8 and report.largest_eigenvalue < 1.2
    assert abs(report.squared_norm_mean - 1) < 0.1
    # Gaussian data: the flow is the symmetric whitening.
    assert (z0 - symmetric_whitening(held_out, mean, covariance)).square().mean().sqrt() < 0.2
    assert step_difference(network, held_out, few=4, many=64) < 0.15
    assert smallest_singular_value(network, held_out[:64]) > 0.1


def test_gaussianity_accepts_gaussian_vectors_and_refuses_others():
    generator = torch.Generator().manual_seed(3)
    normal = torch.randn(1500, 8, generator=generator)
    report = gaussianity(normal)
    assert report.passed
    assert report.kurtosis == pytest.approx(1, abs=0.05)
    assert report.squared_norm_std == pytest.approx((2 / 8) ** 0.5, rel=0.1)
    assert not gaussianity(1.4 * normal).passed
    assert not gaussianity(normal + 0.5).passed
    assert gaussianity(normal / normal.norm(dim=1, keepdim=True) * 8**0.5).squared_norm_std < 1e-5
    with pytest.raises(ValueError, match="more rows than dimensions"):
        gaussianity(normal[:8])


def test_a_folding_map_has_a_vanishing_singular_value():
    # u = z at t = 1 sends everything to 0: the Jacobian I - du/dz is zero.
    assert smallest_singular_value(lambda z, r, t: z * (t - r)[:, None], torch.randn(4, 3)) == pytest.approx(
        0, abs=1e-6
    )
    assert smallest_singular_value(lambda z, r, t: 0 * z, torch.randn(4, 3)) == pytest.approx(1, abs=1e-6)


def test_training_repeats_itself_and_leaves_the_global_generator_alone():
    data, config = torch.randn(64, 2), MeanFlowConfig(dimension=2, width=8, blocks=1, frequencies=2)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    losses = []
    first = train_meanflow(data, config, steps=20, batch_size=16, noise=0.2, seed=3, report=lambda *x: losses.append(x))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    second = train_meanflow(data, config, steps=20, batch_size=16, noise=0.2, seed=3)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
    assert [step for step, _ in losses] == list(range(1, 21))
    other = train_meanflow(data, config, steps=20, batch_size=16, noise=0.2, seed=4)
    assert not torch.equal(first.output.weight, other.output.weight)


@pytest.mark.parametrize("field", ["dimension", "width", "blocks", "frequencies"])
@pytest.mark.parametrize("value", [0, -3, 2.5])
def test_configuration_refuses_impossible_sizes(field, value):
    with pytest.raises(ValueError, match=f"{field} must be an integer >= 1"):
        dataclasses.replace(MeanFlowConfig(dimension=2), **{field: value})


def test_training_refuses_data_of_another_dimension():
    with pytest.raises(ValueError, match=r"data must have shape \(n, 2\)"):
        train_meanflow(torch.randn(10, 3), MeanFlowConfig(dimension=2), steps=1)
