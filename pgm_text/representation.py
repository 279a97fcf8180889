"""RMDM's first stage as one object: sentence embedding -> whitening -> MeanFlow -> z_0, distributed as N(0, I_K).

RMDM (arXiv 2609.12382) section 3; z_1 is the (whitened) embedding and z_0 the Gaussian vector that conditions the
masked model. The paper's text leaves dimension, pooling and normalisation open: PCA whitening, added noise, four jumps
instead of one and the final affine correction are our choices. Generation never calls this object: there z_0 is drawn
from N(0, I).
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pgm.meanflow import MeanFlowConfig, MeanFlowNet, to_gaussian, train_meanflow
from pgm.meanflow_checks import GaussianityReport, gaussianity


@dataclass(frozen=True)
class Whitening:
    """Affine map of embeddings to zero mean and unit variance on their leading principal components."""

    mean: Tensor  # (D,)
    basis: Tensor  # (D, K), orthonormal columns, largest variance first
    scales: Tensor  # (K,), standard deviations along the columns

    @classmethod
    def fit(cls, embeddings: Tensor, *, dimension: int | None = None, variance: float = 0.9) -> Whitening:
        """Fit on embeddings (n, D): `dimension` components, or as many as hold the share `variance` of the whole."""
        n, width = embeddings.shape
        if n < 2:
            raise ValueError(f"embeddings must have at least 2 rows, got {n}")
        if dimension is not None and not 1 <= dimension <= min(width, n - 1):
            raise ValueError(f"dimension must be between 1 and {min(width, n - 1)}, got {dimension!r}")
        if not 0 < variance <= 1:
            raise ValueError(f"variance must be in (0, 1], got {variance!r}")
        embeddings = embeddings.double()
        mean = embeddings.mean(0)
        covariance = (embeddings - mean).T @ (embeddings - mean) / (n - 1)
        values, vectors = torch.linalg.eigh(covariance)
        values, vectors = values.flip(0).clamp(min=0), vectors.flip(1)
        if dimension is None:
            share = values.cumsum(0) / values.sum()
            dimension = min(int((share < variance).sum()) + 1, n - 1)
        if values[dimension - 1] <= 1e-12 * values[0]:
            raise ValueError(f"embeddings do not vary in {dimension} directions; ask for a smaller dimension")
        return cls(mean.float(), vectors[:, :dimension].float().contiguous(), values[:dimension].sqrt().float())

    def __call__(self, embeddings: Tensor) -> Tensor:
        """embeddings (n, D) -> (n, K)."""
        return (embeddings - self.mean) @ self.basis / self.scales

    def inverse(self, whitened: Tensor) -> Tensor:
        """whitened (n, K) -> the nearest embeddings (n, D) in the span of the kept components."""
        return (whitened * self.scales) @ self.basis.T + self.mean


@dataclass(frozen=True)
class AffineCorrection:
    """z -> (z - mean) @ matrix: gives the training set exactly zero mean and identity covariance after the flow."""

    mean: Tensor  # (K,)
    matrix: Tensor  # (K, K), symmetric

    @classmethod
    def fit(cls, z: Tensor) -> AffineCorrection:
        """Fit on z (n, K), n > K."""
        z = z.double()
        mean = z.mean(0)
        covariance = (z - mean).T @ (z - mean) / len(z)
        values, vectors = torch.linalg.eigh(covariance)
        return cls(mean.float(), (vectors @ torch.diag(values.rsqrt()) @ vectors.T).float())

    def __call__(self, z: Tensor) -> Tensor:
        return (z - self.mean) @ self.matrix


@dataclass(frozen=True)
class RepresentationConfig:
    encoder: str  # name of the sentence encoder the embeddings came from
    embedding_dimension: int  # D
    dimension: int  # K
    noise: float = 0.2  # of unit variance, added to the whitened embedding before the flow
    flow_steps: int = 4  # jumps from embedding to Gaussian; 1 is the paper's
    flow_width: int = 512
    flow_blocks: int = 4
    model_type: str = "representation"

    def flow_config(self) -> MeanFlowConfig:
        return MeanFlowConfig(dimension=self.dimension, width=self.flow_width, blocks=self.flow_blocks)


class Representation(nn.Module):
    """Whitening, flow and correction; turns embeddings (n, D) into z_0 (n, K)."""

    def __init__(
        self,
        config: RepresentationConfig,
        whitening: Whitening,
        flow: MeanFlowNet,
        correction: AffineCorrection,
    ) -> None:
        super().__init__()
        self.config = config
        self.whitening = whitening
        self.flow = flow
        self.correction = correction

    def forward(self, embeddings: Tensor, *, seed: int | None = None) -> Tensor:
        """embeddings (n, D) -> z_0 (n, K). With a seed, noise as in training is added before the flow."""
        whitened = self.whitening(embeddings.float())
        if seed is not None and self.config.noise:
            fresh = torch.randn(whitened.shape, generator=torch.Generator().manual_seed(seed))
            whitened = whitened + self.config.noise * fresh
        # Unit variance in both cases: without noise the distribution is a little narrower than the flow was trained on.
        whitened = whitened / math.sqrt(1 + self.config.noise**2)
        return self.correction(to_gaussian(self.flow, whitened, self.config.flow_steps))

    def check(self, held_out: Tensor, *, seed: int = 0) -> GaussianityReport:
        """How Gaussian z_0 is on held-out embeddings (n, D), n > K."""
        return gaussianity(self(held_out, seed=seed))

    def save(self, folder: str | Path) -> None:
        """Write representation.json and representation.safetensors into `folder`."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {f"flow.{key}": value.contiguous() for key, value in self.flow.state_dict().items()}
        for part in ("whitening", "correction"):
            values = dataclasses.asdict(getattr(self, part))
            tensors |= {f"{part}.{key}": value.contiguous() for key, value in values.items()}
        save_file(tensors, folder / "representation.safetensors")
        (folder / "representation.json").write_text(json.dumps(dataclasses.asdict(self.config), indent=1) + "\n")

    @classmethod
    def load(cls, folder: str | Path) -> Representation:
        """Read what `save` wrote; ValueError that names the file when weights and configuration disagree."""
        folder = Path(folder)
        for name in ("representation.json", "representation.safetensors"):
            if not (folder / name).is_file():
                raise FileNotFoundError(f"{folder} holds no {name}, so it is not a saved representation")
        config = RepresentationConfig(**json.loads((folder / "representation.json").read_text()))
        tensors = load_file(folder / "representation.safetensors")

        def part(prefix: str) -> dict[str, Tensor]:
            return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}

        flow = MeanFlowNet(config.flow_config())
        try:
            flow.load_state_dict(part("flow."))
            whitening, correction = Whitening(**part("whitening.")), AffineCorrection(**part("correction."))
        except (RuntimeError, TypeError) as error:
            raise ValueError(
                f"{folder / 'representation.safetensors'} does not fit representation.json: {error}"
            ) from error
        shapes = (tuple(whitening.basis.shape), tuple(correction.matrix.shape))
        if shapes != ((config.embedding_dimension, config.dimension), (config.dimension, config.dimension)):
            raise ValueError(
                f"{folder / 'representation.safetensors'} does not fit representation.json: shapes {shapes}"
            )
        return cls(config, whitening, flow.eval().requires_grad_(False), correction)


def fit_representation(
    embeddings: Tensor,
    *,
    encoder: str,
    dimension: int | None = None,
    variance: float = 0.9,
    noise: float = 0.2,
    flow_steps: int = 4,
    flow_width: int = 512,
    flow_blocks: int = 4,
    steps: int = 50_000,
    batch_size: int = 1024,
    learning_rate: float = 1e-3,
    ema_decay: float = 0.999,
    seed: int = 0,
    device: torch.device | str = "cpu",
    report: Callable[[int, float], None] | None = None,
) -> Representation:
    """Fit whitening, flow and correction on training embeddings (n, D); the result lives on the CPU.

    encoder: name of what produced the embeddings. dimension: K; None keeps the share `variance` of the variance.
    noise: standard deviation added to the unit-variance whitened embedding (0.1 to 0.3 helps, 0 is allowed).
    """
    if not math.isfinite(noise) or noise < 0:
        raise ValueError(f"noise must be a finite number >= 0, got {noise!r}")
    whitening = Whitening.fit(embeddings, dimension=dimension, variance=variance)
    config = RepresentationConfig(
        encoder=encoder,
        embedding_dimension=embeddings.shape[1],
        dimension=whitening.basis.shape[1],
        noise=noise,
        flow_steps=flow_steps,
        flow_width=flow_width,
        flow_blocks=flow_blocks,
    )
    flow = train_meanflow(
        whitening(embeddings.float()),
        config.flow_config(),
        steps=steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        ema_decay=ema_decay,
        noise=noise,
        seed=seed,
        device=device,
        report=report,
    )
    identity = AffineCorrection(torch.zeros(config.dimension), torch.eye(config.dimension))
    z0 = Representation(config, whitening, flow, identity)(embeddings, seed=seed)
    return Representation(config, whitening, flow, AffineCorrection.fit(z0))


def smooth(z0: Tensor, strength: float, noise: Tensor) -> Tensor:
    """Posterior smoothing z' = sqrt(1-s^2) z_0 + s noise: z0 and noise (n, K), s = strength in [0, 1]."""
    return math.sqrt(1 - strength**2) * z0 + strength * noise


def noised_posterior_kl(z0: Tensor, strength: float) -> Tensor:
    """KL in nats between N(sqrt(1-s^2) z_0, s^2 I) and N(0, I): z0 (n, K), s = strength in (0, 1] -> (n,).

    The second term of RMDM's valid likelihood bound; it is infinite at s = 0, so that is refused.
    """
    if not 0 < strength <= 1:
        raise ValueError(f"strength must be in (0, 1], got {strength!r}: without noise there is no finite bound")
    k, variance = z0.shape[-1], strength**2
    return (k * (variance - 1 - math.log(variance)) + (1 - variance) * z0.square().sum(-1)) / 2


def slerp(first: Tensor, second: Tensor, share: float) -> Tensor:
    """Walk from z (K,) to another z (K,) along the sphere; share in [0, 1]; norms are interpolated linearly."""
    norms = first.norm(), second.norm()
    cosine = (first @ second / (norms[0] * norms[1])).clamp(-1, 1)
    angle = torch.arccos(cosine)
    if angle < 1e-4 or math.pi - angle < 1e-4:
        return (1 - share) * first + share * second
    direction = (
        torch.sin((1 - share) * angle) * first / norms[0] + torch.sin(share * angle) * second / norms[1]
    ) / torch.sin(angle)
    return direction * ((1 - share) * norms[0] + share * norms[1])
