"""MeanFlow (arXiv 2505.13447): a map between data and N(0, I) that takes one network evaluation, or a few.

Time runs from the Gaussian (t = 0) to the data (t = 1), RMDM's naming (arXiv 2609.12382): z_t = (1-t) gaussian + t data
and v_t = data - gaussian. The network u(z, r, t) is the average velocity between r and t, so that z_r = z_t - (t-r)
u(z_t, r, t) and z_0 = z_1 - u(z_1, 0, 1). Sizes: B batch, K dimensions of the vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

Velocity = Callable[[Tensor, Tensor, Tensor], Tensor]  # (z (B, K), r (B,), t (B,)) -> u (B, K)


def interpolate(gaussian: Tensor, data: Tensor, t: Tensor) -> Tensor:
    """Point on the straight path at time t: gaussian (B, K), data (B, K), t (B,) -> z_t (B, K)."""
    return (1 - t)[:, None] * gaussian + t[:, None] * data


def jump(z: Tensor, u: Tensor, r: Tensor, t: Tensor) -> Tensor:
    """Move from time t to time r with average velocity u: z (B, K), u (B, K), r (B,), t (B,) -> z_r (B, K)."""
    return z - (t - r)[:, None] * u


def identity_target(velocity: Velocity, z: Tensor, r: Tensor, t: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Prediction and target of the MeanFlow identity u = v - (t-r) du/dt (eq. 6 and 9).

    du/dt = v . grad_z u + d_t u comes from one forward-mode derivative along (v, 0, 1).
    Returns u (B, K), differentiable in the network's parameters, and the target (B, K), which carries no gradient.
    """
    tangents = (v, torch.zeros_like(r), torch.ones_like(t))
    u, derivative = torch.func.jvp(velocity, (z, r, t), tangents)
    return u, (v - (t - r)[:, None] * derivative).detach()


def sample_times(
    count: int,
    generator: torch.Generator | None = None,
    *,
    share_apart: float = 0.5,
    mean: float = -0.4,
    std: float = 1.0,
    device: torch.device | str = "cpu",
) -> tuple[Tensor, Tensor]:
    """Draw r <= t, each (count,) in (0, 1), from two logit-normals; r = t except in a share `share_apart`."""
    logits = mean + std * torch.randn(2, count, generator=generator, device=device)
    times = torch.sigmoid(logits)
    t, r = times.amax(0), times.amin(0)
    apart = torch.rand(count, generator=generator, device=device) < share_apart
    return torch.where(apart, r, t), t


def adaptive_loss(squared_error: Tensor, power: float = 0.0, constant: float = 1e-3) -> Tensor:
    """Per-sample loss D / sg(D + constant)^power for D (B,); power 0 is the plain squared error.

    The image paper uses 0.75 to 1. For vectors of few dimensions keep 0: down-weighting large errors moves the
    prediction from the conditional mean towards a mode and the result is visibly not Gaussian.
    """
    return squared_error / (squared_error.detach() + constant) ** power


def meanflow_loss(
    velocity: Velocity,
    data: Tensor,
    gaussian: Tensor,
    r: Tensor,
    t: Tensor,
    *,
    power: float = 0.0,
    constant: float = 1e-3,
) -> Tensor:
    """Mean loss of a batch: data (B, K), gaussian (B, K), r (B,), t (B,) -> scalar."""
    z = interpolate(gaussian, data, t)
    u, target = identity_target(velocity, z, r, t, data - gaussian)
    squared_error = (u - target).square().sum(1)  # (B,)
    return adaptive_loss(squared_error, power, constant).mean()


@torch.no_grad()
def to_gaussian(velocity: Velocity, data: Tensor, steps: int = 4) -> Tensor:
    """Carry data (B, K) at t = 1 to the Gaussian end in `steps` equal jumps; 1 is the paper's single evaluation."""
    times = torch.linspace(1, 0, steps + 1, dtype=data.dtype, device=data.device)
    z = data
    for t, r in zip(times[:-1], times[1:], strict=True):
        t, r = t.expand(len(z)), r.expand(len(z))
        z = jump(z, velocity(z, r, t), r, t)
    return z


@torch.no_grad()
def from_gaussian(velocity: Velocity, gaussian: Tensor, steps: int = 64) -> Tensor:
    """Carry Gaussian vectors (B, K) at t = 0 back to data by integrating v = u(z, t, t) with the midpoint rule."""
    z, h = gaussian, 1 / steps
    for i in range(steps):
        start = torch.full((len(z),), i * h, dtype=z.dtype, device=z.device)
        middle = start + h / 2
        half_way = z + h / 2 * velocity(z, start, start)
        z = z + h * velocity(half_way, middle, middle)
    return z


@dataclass(frozen=True)
class MeanFlowConfig:
    dimension: int  # K
    width: int = 512
    blocks: int = 4
    frequencies: int = 32  # Fourier features per time input; the highest turns about 2 pi times over [0, 1]

    def __post_init__(self) -> None:
        for name in ("dimension", "width", "blocks", "frequencies"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be an integer >= 1, got {value!r}")


class ResidualBlock(nn.Module):
    """x + gate * MLP(modulate(LayerNorm(x))), shift, scale and gate read from the time conditioning (adaLN-zero)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.modulation = nn.Linear(width, 3 * width)
        nn.init.zeros_(self.modulation.weight)  # each block starts as the identity
        nn.init.zeros_(self.modulation.bias)

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        shift, scale, gate = self.modulation(c).chunk(3, dim=-1)  # each (B, W)
        return x + gate * self.mlp(self.norm(x) * (1 + scale) + shift)


class MeanFlowNet(nn.Module):
    """Average velocity u(z, r, t): a residual MLP with adaLN conditioning on t and t - r; starts as the zero map."""

    def __init__(self, config: MeanFlowConfig) -> None:
        super().__init__()
        self.config = config
        self.input = nn.Linear(config.dimension, config.width)
        self.time = nn.Sequential(
            nn.Linear(4 * config.frequencies, config.width),
            nn.SiLU(),
            nn.Linear(config.width, config.width),
            nn.SiLU(),
        )
        self.blocks = nn.ModuleList(ResidualBlock(config.width) for _ in range(config.blocks))
        # No norm before the output: u must be able to grow with z, or the tails never arrive.
        self.output = nn.Linear(config.width, config.dimension)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, z: Tensor, r: Tensor, t: Tensor) -> Tensor:
        """z (B, K), r (B,), t (B,) with 0 <= r <= t <= 1 -> u (B, K)."""
        c = self.time(torch.cat([self._fourier(t), self._fourier(t - r)], dim=-1))  # (B, W)
        x = self.input(z)  # (B, W)
        for block in self.blocks:
            x = block(x, c)
        return self.output(x)

    def _fourier(self, time: Tensor) -> Tensor:
        # Low frequencies only: du/dt multiplies every frequency by itself, high ones make the target noisy.
        n = self.config.frequencies
        rates = torch.linspace(0.25, 2 * math.pi, n, dtype=time.dtype, device=time.device)
        angles = time[:, None] * rates  # (B, F)
        return torch.cat([angles.cos(), angles.sin()], dim=-1)  # (B, 2F)


def train_meanflow(
    data: Tensor,
    config: MeanFlowConfig,
    *,
    steps: int = 50_000,
    batch_size: int = 1024,
    learning_rate: float = 1e-3,
    ema_decay: float = 0.999,
    power: float = 0.0,
    share_apart: float = 0.5,
    noise: float = 0.0,
    seed: int = 0,
    device: torch.device | str = "cpu",
    report: Callable[[int, float], None] | None = None,
) -> MeanFlowNet:
    """Train a network that carries standardised data (n, K) to N(0, I).

    Returns the averaged (EMA) network on the CPU, in eval mode.

    noise: standard deviation of fresh Gaussian noise added to each batch, followed by division by sqrt(1 + noise^2).
    report: called with (step, mean loss since the last call) twenty times during the run.
    AdamW with a cosine decay to zero; gradients clipped at norm 1; everything random comes from `seed`.
    """
    if data.ndim != 2 or data.shape[1] != config.dimension or not len(data):
        raise ValueError(f"data must have shape (n, {config.dimension}) with n >= 1, got {tuple(data.shape)}")
    if steps < 1 or batch_size < 1:
        raise ValueError(f"steps and batch_size must be >= 1, got {steps!r} and {batch_size!r}")
    generator = torch.Generator(device).manual_seed(seed)
    with torch.random.fork_rng(
        devices=[]
    ):  # initial weights depend on the seed alone, the caller's generator is untouched
        torch.manual_seed(seed)
        network = MeanFlowNet(config).to(device)
    average = AveragedModel(
        network, avg_fn=lambda mean, new, n: mean + (1 - min(ema_decay, (1 + n) / (10 + n))) * (new - mean)
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=learning_rate)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    data = data.to(device, torch.float32)
    every, losses = max(1, steps // 20), []
    for step in range(1, steps + 1):
        rows = torch.randint(len(data), (batch_size,), generator=generator, device=device)
        batch = data[rows]  # (B, K)
        if noise:
            fresh = torch.randn(batch.shape, generator=generator, device=device)
            batch = (batch + noise * fresh) / math.sqrt(1 + noise**2)
        gaussian = torch.randn(batch.shape, generator=generator, device=device)
        r, t = sample_times(batch_size, generator, share_apart=share_apart, device=device)
        loss = meanflow_loss(network, batch, gaussian, r, t, power=power)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        average.update_parameters(network)
        losses.append(loss.detach())
        if report and step % every == 0:
            report(step, torch.stack(losses).mean().item())
            losses.clear()
    return average.module.cpu().eval().requires_grad_(False)
