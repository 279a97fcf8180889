"""MeanFlow and RMDM closed forms against ../shared/parity/rmdm/closed_form.json."""

import json
from pathlib import Path

import pytest
import torch

from pgm.meanflow import adaptive_loss, identity_target, interpolate, jump
from pgm.meanflow_checks import Mixture, gaussian_average_velocity, gaussian_velocity, symmetric_whitening
from pgm_text.conditional_dependency import total_correlation
from pgm_text.representation import noised_posterior_kl

FIXTURE = Path(__file__).resolve().parents[3] / "shared/parity/rmdm/closed_form.json"
pytestmark = pytest.mark.skipif(not FIXTURE.exists(), reason="parity fixtures (../shared/parity/rmdm) are not here")


def f64(value):
    return torch.tensor(value, dtype=torch.float64)


@pytest.fixture(scope="module")
def closed_form():
    return json.loads(FIXTURE.read_text())


def test_gaussian_average_velocity_jump_and_identity(closed_form):
    case = closed_form["gaussian_1d"]
    mean, std = f64([case["source_mean"]]), f64([case["source_std"]])
    for row in case["rows"]:
        z, r, t = f64([row["z"]]), f64([row["r"]]), f64([row["t"]])
        u, v = gaussian_average_velocity(z, r, t, mean, std), gaussian_velocity(z, t, mean, std)
        assert u.item() == pytest.approx(row["u"], abs=1e-8)
        assert v.item() == pytest.approx(row["v"], abs=1e-8)
        assert jump(z[:, None], u[:, None], r, t).item() == pytest.approx(row["z_r"], abs=1e-8)
        if "dudt" not in row:
            continue
        # The exact u is a fixed point of the identity when v is the marginal velocity.
        prediction, target = identity_target(
            lambda z, r, t: gaussian_average_velocity(z, r[:, None], t[:, None], mean, std),
            z[:, None],
            r,
            t,
            v[:, None],
        )
        assert target.item() == pytest.approx(prediction.item(), abs=1e-8)
        assert ((v - target[:, 0]) / (t - r)).item() == pytest.approx(row["dudt"], abs=1e-8)


def test_three_dimensional_gaussian_is_whitened_by_the_symmetric_root(closed_form):
    case = closed_form["gaussian_3d"]
    z0 = symmetric_whitening(f64(case["z1"]), f64(case["mean"]), f64(case["cov"]))
    torch.testing.assert_close(z0, f64(case["z0"]), atol=1e-8, rtol=0)


@pytest.fixture(scope="module")
def mixture(closed_form):
    parts = closed_form["mixture_1d"]["components"]
    return Mixture(*(tuple(part[key] for part in parts) for key in ("weight", "mean", "std")))


def test_mixture_flow_matches_quantiles_in_one_step(closed_form, mixture):
    for row in closed_form["mixture_1d"]["one_step"]:
        z1 = f64([row["z1"]])
        assert mixture.transport(z1, 0.0, 1.0).item() == pytest.approx(row["z0"], abs=1e-8)
        assert mixture.average_velocity(z1, 0.0, 1.0).item() == pytest.approx(row["u_0_1"], abs=1e-8)
        assert mixture.velocity(z1, 1.0).item() == pytest.approx(row["v_at_1"], abs=1e-8)


def test_mixture_average_velocity_between_two_times(closed_form, mixture):
    for row in closed_form["mixture_1d"]["intermediate"]:
        z = f64([row["z"]])
        assert mixture.average_velocity(z, row["r"], row["t"]).item() == pytest.approx(row["u"], abs=1e-6)
        assert mixture.velocity(z, row["t"]).item() == pytest.approx(row["v"], abs=1e-6)


def test_training_target_of_a_network_known_by_formula(closed_form):
    case = closed_form["target_of_toy_net"]
    data, gaussian = f64([[case["source_sample"]]]), f64([[case["gaussian_sample"]]])
    r, t = f64([case["r"]]), f64([case["t"]])
    z = interpolate(gaussian, data, t)
    assert z.item() == pytest.approx(case["z_t"], abs=1e-8)
    u, target = identity_target(
        lambda z, r, t: case["a"] * z * t[:, None] + case["b"] * r[:, None], z, r, t, data - gaussian
    )
    assert u.item() == pytest.approx(case["u"], abs=1e-8)
    assert target.item() == pytest.approx(case["target"], abs=1e-8)
    squared_error = (u - target).square().sum(1)
    assert squared_error.item() == pytest.approx(case["squared_error"], abs=1e-8)
    for setting, expected in case["adaptive"].items():
        power, constant = (float(part.split("=")[1]) for part in setting.split(","))
        assert adaptive_loss(squared_error, power, constant).item() == pytest.approx(expected, abs=1e-8)


def test_total_correlation_of_small_tables(closed_form):
    case = closed_form["total_correlation"]
    equal_bits = f64([[0.5, 0.0], [0.0, 0.5]])
    assert total_correlation(equal_bits).item() == pytest.approx(case["two_equal_bits"], abs=1e-8)
    given_bit = torch.stack([f64([[1.0, 0.0], [0.0, 0.0]]), f64([[0.0, 0.0], [0.0, 1.0]])])
    assert total_correlation(given_bit, f64([0.5, 0.5])).item() == pytest.approx(
        case["two_equal_bits_given_bit"], abs=1e-8
    )
    assert total_correlation(f64(case["correlated"]["joint"])).item() == pytest.approx(
        case["correlated"]["tc"], abs=1e-8
    )
    xor = case["xor_example"]
    independent = f64([[0.25, 0.25], [0.25, 0.25]])
    assert total_correlation(independent).item() == pytest.approx(xor["tc_without_z"], abs=1e-8)
    given_xor = torch.stack([f64([[0.5, 0.0], [0.0, 0.5]]), f64([[0.0, 0.5], [0.5, 0.0]])])
    assert total_correlation(given_xor, f64([0.5, 0.5])).item() == pytest.approx(xor["tc_given_xor"], abs=1e-8)


def test_kl_of_the_noised_posterior(closed_form):
    for row in closed_form["noised_posterior_kl"]:
        z0 = torch.full((1, row["k"]), (row["norm2"] / row["k"]) ** 0.5, dtype=torch.float64)
        assert noised_posterior_kl(z0, row["s"]).item() == pytest.approx(row["kl"], abs=1e-8)
