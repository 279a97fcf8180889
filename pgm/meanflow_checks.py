"""Checks that a flow arrived at N(0, I): closed forms, push-forward statistics, the way back, invertibility.

Conventions of pgm/meanflow.py: t = 0 is the Gaussian, t = 1 the data. The closed forms are our derivations for straight
paths between independent ends; in one dimension the flow keeps the order of points, so it matches quantiles. float64
throughout.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pgm.meanflow import Velocity, from_gaussian, to_gaussian


def gaussian_velocity(z: Tensor, t: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Marginal velocity E[data - gaussian | z_t = z] for data N(mean, std^2), element-wise; shapes broadcast."""
    variance = (1 - t) ** 2 + (t * std) ** 2
    return mean + (t * std**2 - (1 - t)) / variance * (z - t * mean)


def gaussian_average_velocity(z: Tensor, r: Tensor, t: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Exact u(z, r, t) for data N(mean, std^2), element-wise; equals gaussian_velocity where r = t."""

    def spread(time: Tensor) -> Tensor:
        return ((1 - time) ** 2 + (time * std) ** 2).sqrt()

    z_r = r * mean + spread(r) / spread(t) * (z - t * mean)
    apart = t != r
    gap = torch.where(apart, t - r, torch.ones_like(t))
    return torch.where(apart, (z - z_r) / gap, gaussian_velocity(z, t, mean, std))


def symmetric_whitening(data: Tensor, mean: Tensor, covariance: Tensor) -> Tensor:
    """The straight-path flow's end point for Gaussian data: covariance^(-1/2) (data - mean); data (B, K) -> (B, K)."""
    values, vectors = torch.linalg.eigh(covariance)
    root = vectors @ torch.diag(values.rsqrt()) @ vectors.T
    return (data - mean) @ root


@dataclass(frozen=True)
class Mixture:
    """One-dimensional Gaussian mixture used as data; tuples of equal length, weights sum to 1."""

    weights: tuple[float, ...]
    means: tuple[float, ...]
    stds: tuple[float, ...]

    def _at(self, t: float) -> tuple[Tensor, Tensor, Tensor]:
        weights, means, stds = (torch.tensor(x, dtype=torch.float64) for x in (self.weights, self.means, self.stds))
        return weights, t * means, ((1 - t) ** 2 + (t * stds) ** 2).sqrt()

    def cdf(self, z: Tensor, t: float) -> Tensor:
        """P(z_t <= z) for z (...,) float64 -> (...,)."""
        weights, means, stds = self._at(t)
        return (weights * torch.special.ndtr((z[..., None] - means) / stds)).sum(-1)

    def velocity(self, z: Tensor, t: float) -> Tensor:
        """Marginal velocity at z (...,) -> (...,): the components' velocities weighted by their posterior."""
        weights, means, stds = self._at(t)
        offset = (z[..., None] - means) / stds
        posterior = torch.softmax(weights.log() - stds.log() - offset**2 / 2, dim=-1)
        data_means, data_stds = (torch.tensor(x, dtype=torch.float64) for x in (self.means, self.stds))
        each = gaussian_velocity(z[..., None], torch.tensor(t, dtype=torch.float64), data_means, data_stds)
        return (posterior * each).sum(-1)

    def transport(self, z: Tensor, r: float, t: float) -> Tensor:
        """Where the flow carries z (...,) from time t to time r: the point of equal probability mass, by bisection."""
        mass = self.cdf(z, t)
        reach = 40 * (1 + max(map(abs, self.means)) + max(self.stds))
        low, high = torch.full_like(z, -reach), torch.full_like(z, reach)
        for _ in range(80):  # 2^-80 of the interval is below float64 resolution
            middle = (low + high) / 2
            above = self.cdf(middle, r) > mass
            low, high = torch.where(above, low, middle), torch.where(above, middle, high)
        return (low + high) / 2

    def average_velocity(self, z: Tensor, r: float, t: float) -> Tensor:
        """Exact u(z, r, t) for z (...,), r < t."""
        return (z - self.transport(z, r, t)) / (t - r)


def kolmogorov_distance(values: Tensor) -> Tensor:
    """Largest gap between the empirical distribution of each column and N(0, 1): values (n, M) -> (M,)."""
    n = len(values)
    cdf = torch.special.ndtr(values.double().sort(dim=0).values)
    ranks = torch.arange(1, n + 1, dtype=torch.float64, device=values.device)[:, None] / n
    return torch.maximum((ranks - cdf).amax(0), (cdf - ranks + 1 / n).amax(0))


@dataclass(frozen=True)
class GaussianityReport:
    """How far vectors are from N(0, I_K); `ideal_` values are for true Gaussian vectors of the same size."""

    count: int
    dimension: int
    mean_norm: float  # |mean|, about sqrt(K / n) for Gaussian vectors
    smallest_eigenvalue: float
    largest_eigenvalue: float
    squared_norm_mean: float  # of |z|^2 / K; ideal 1
    squared_norm_std: float  # of |z|^2 / K; ideal sqrt(2 / K)
    sliced_distance: float  # Kolmogorov distance averaged over random projections
    ideal_sliced_distance: float
    kurtosis: float  # Mardia's, divided by its ideal value K (K + 2)

    @property
    def passed(self) -> bool:
        """True when the sliced distance is at most twice the ideal plus 0.03."""
        return self.sliced_distance <= 2 * self.ideal_sliced_distance + 0.03


def gaussianity(z: Tensor, *, projections: int = 64, seed: int = 0) -> GaussianityReport:
    """Compare z (n, K), n > K, with N(0, I): moments, norm, Mardia kurtosis, distance over random projections."""
    n, k = z.shape
    if n <= k:
        raise ValueError(f"z must have more rows than dimensions, got shape {tuple(z.shape)}")
    z = z.double().cpu()
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(k, projections, generator=generator, dtype=torch.float64)
    directions = directions / directions.norm(dim=0)
    ideal = torch.randn(n, k, generator=generator, dtype=torch.float64)
    centred = z - z.mean(0)
    covariance = centred.T @ centred / n
    eigenvalues = torch.linalg.eigvalsh(covariance)
    distances = (centred @ torch.linalg.pinv(covariance, hermitian=True) * centred).sum(1)  # Mahalanobis, squared
    squared_norm = z.square().sum(1) / k
    return GaussianityReport(
        count=n,
        dimension=k,
        mean_norm=z.mean(0).norm().item(),
        smallest_eigenvalue=eigenvalues[0].item(),
        largest_eigenvalue=eigenvalues[-1].item(),
        squared_norm_mean=squared_norm.mean().item(),
        squared_norm_std=squared_norm.std().item(),
        sliced_distance=kolmogorov_distance(z @ directions).mean().item(),
        ideal_sliced_distance=kolmogorov_distance(ideal @ directions).mean().item(),
        kurtosis=distances.square().mean().item() / (k * (k + 2)),
    )


def cycle_error(velocity: Velocity, data: Tensor, *, steps: int = 64) -> float:
    """Relative error |data - back(there(data))| / |data| with `steps` jumps there and `steps` midpoint steps back."""
    there = to_gaussian(velocity, data, steps)
    back = from_gaussian(velocity, there, steps)
    return ((back - data).norm() / data.norm()).item()


def step_difference(velocity: Velocity, data: Tensor, few: int = 1, many: int = 64) -> float:
    """Root mean square difference per coordinate between the end points after `few` and `many` jumps."""
    return (to_gaussian(velocity, data, few) - to_gaussian(velocity, data, many)).square().mean().sqrt().item()


def smallest_singular_value(velocity: Velocity, data: Tensor) -> float:
    """Smallest singular value of the one-step map's Jacobian I - du/dz at (data, 0, 1), over the rows of data (B, K).

    A value near 0 says that the map folds: different data reach the same Gaussian point.
    """

    def one_step(row: Tensor) -> Tensor:
        r, t = row.new_zeros(1), row.new_ones(1)
        return row - velocity(row[None], r, t)[0]

    jacobians = torch.func.vmap(torch.func.jacfwd(one_step))(data)  # (B, K, K)
    return torch.linalg.svdvals(jacobians.double()).min().item()
