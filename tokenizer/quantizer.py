"""Vector quantiser: nearest code, straight-through, commitment loss, EMA codebook (van den Oord et al. 2017, eq. 3
and appendix A.1; cosine variant: Yu et al. 2022, ViT-VQGAN, section 3.2)."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Quantizer(nn.Module):
    """Replaces each latent vector by its nearest codebook row.

    With distance "cosine" latents are put on the unit sphere first and codebook rows are unit vectors, so the largest
    inner product is the nearest row. The codebook is a buffer: it learns by `EMACodebook`, never by gradient.
    """

    def __init__(self, codebook_size: int, code_dim: int, distance: str = "cosine") -> None:
        super().__init__()
        self.distance = distance
        rows = torch.randn(codebook_size, code_dim) * code_dim**-0.5
        self.register_buffer("codebook", F.normalize(rows, dim=-1) if distance == "cosine" else rows)

    def nearest(self, latents: Tensor) -> Tensor:
        """Index of the nearest codebook row.

        latents: (..., code_dim) any float dtype; returns (...) int64. The search runs in float32.
        """
        flat = self.project(latents).reshape(-1, latents.shape[-1])  # (N, code_dim)
        codebook = self.codebook.float()
        # Same argmin as the squared distance: the term of the latent alone is constant over the rows.
        bias = codebook.square().sum(-1) / -2  # (V,)
        with torch.autocast(latents.device.type, enabled=False):
            return torch.addmm(bias, flat, codebook.t()).argmax(-1).reshape(latents.shape[:-1])

    def project(self, latents: Tensor) -> Tensor:
        """float32 latents as they are compared: on the unit sphere for cosine, unchanged for Euclidean."""
        latents = latents.float()
        return F.normalize(latents, dim=-1) if self.distance == "cosine" else latents

    def lookup(self, codes: Tensor) -> Tensor:
        """codes: (...) int64 -> (..., code_dim), what the decoder reads."""
        return F.embedding(codes, self.codebook)

    def forward(self, latents: Tensor, bypass: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """latents: (B, code_dim, h, w); bypass: (B,) bool, images whose latents pass unquantised (none if not given).

        What the codebook rounds off cannot be learned from: where it bypasses the codebook the decoder sees it, learns
        to use it, and the codebook follows (Defossez et al. 2024, Moshi, section 3.3.2).

        Returns quantised (B, code_dim, h, w) float32 whose gradient passes straight to the latents,
        codes (B, h, w) int64, and the commitment term, a scalar that pulls the encoder to the codebook and not back.
        """
        z = self.project(latents.permute(0, 2, 3, 1))  # (B, h, w, code_dim)
        codes = self.nearest(z.detach())  # (B, h, w)
        rows = self.lookup(codes).float()
        commitment = F.mse_loss(z, rows.detach())
        quantised = z + (rows - z).detach()  # straight-through
        if bypass is not None:
            quantised = torch.where(bypass[:, None, None, None], z, quantised)
        return quantised.permute(0, 3, 1, 2).contiguous(), codes, commitment


class EMACodebook:
    """Training state of a codebook: running counts and sums per code, and revival of dead codes.

    A code whose running count falls below `revive_below` times the uniform share is moved to a latent of the current
    batch, drawn with probability proportional to its squared distance to its code (as in k-means++), so revived codes
    go where the codebook is poor.
    """

    def __init__(self, quantizer: Quantizer, decay: float = 0.99, revive_below: float = 0.05, revive_every: int = 10):
        self.quantizer = quantizer
        self.decay, self.revive_below, self.revive_every = decay, revive_below, revive_every
        size, dim = quantizer.codebook.shape
        self.counts = torch.full((size,), 1.0, device=quantizer.codebook.device)  # (V,)
        self.sums = quantizer.codebook.detach().clone().float()  # (V, code_dim)
        self.updates = 0
        self.revived = 0  # codes moved at the last revival

    @torch.no_grad()
    def update(
        self,
        latents: Tensor,
        codes: Tensor,
        generator: torch.Generator,
        reduce: Callable[[Tensor], Tensor] = lambda x: x,
        broadcast: Callable[[Tensor], Tensor] = lambda x: x,
    ) -> None:
        """Move the codebook towards the latents assigned to it.

        latents: (B, code_dim, h, w) before quantisation; codes: (B, h, w). `reduce` sums a tensor over processes and
        `broadcast` copies one from the first process, so every process ends with the same codebook.
        """
        flat = self.quantizer.project(latents.detach().permute(0, 2, 3, 1)).flatten(0, 2)  # (N, code_dim)
        flat_codes = codes.flatten()  # (N,)
        counts = reduce(torch.bincount(flat_codes, minlength=len(self.counts)).float())
        sums = reduce(torch.zeros_like(self.sums).index_add_(0, flat_codes, flat))
        self.counts.lerp_(counts, 1 - self.decay)
        self.sums.lerp_(sums, 1 - self.decay)
        self.updates += 1
        if self.updates % self.revive_every == 0:
            self._revive(flat, flat_codes, generator, broadcast)
        means = self.sums / self.counts.clamp_min(1e-6)[:, None]
        self.quantizer.codebook.copy_(F.normalize(means, dim=-1) if self.quantizer.distance == "cosine" else means)

    def _revive(self, flat: Tensor, flat_codes: Tensor, generator: torch.Generator, broadcast: Callable) -> None:
        share = self.counts.sum() / len(self.counts)
        dead = (self.counts < self.revive_below * share).nonzero().flatten()
        dead = dead[: len(flat)]
        self.revived = len(dead)
        if not len(dead):
            return
        errors = (flat - self.quantizer.lookup(flat_codes).float()).square().sum(-1)  # (N,)
        # The small constant keeps a draw possible when fewer latents than dead codes have any error.
        weights = (errors / errors.sum().clamp_min(1e-12)).double().cpu() + 1e-9
        chosen = torch.multinomial(weights, len(dead), generator=generator).to(flat.device)
        rows = broadcast(flat[chosen].contiguous())
        self.counts[dead] = share  # a full share: time to win latents before the next check
        self.sums[dead] = rows * share

    def state_dict(self) -> dict:
        """For a training checkpoint; the codebook itself is in the model."""
        return {"counts": self.counts, "sums": self.sums, "updates": self.updates}

    def load_state_dict(self, state: dict) -> None:
        """Restore `state_dict`."""
        self.counts.copy_(state["counts"])
        self.sums.copy_(state["sums"])
        self.updates = int(state["updates"])


class CodeUsage:
    """Counts codes over a window (an epoch, an evaluation): per-batch figures understate the use of a codebook."""

    def __init__(self, codebook_size: int) -> None:
        self.histogram = torch.zeros(codebook_size, dtype=torch.int64)  # (V,)

    def add(self, codes: Tensor) -> None:
        """codes: any shape, int."""
        self.histogram += torch.bincount(codes.flatten().cpu().long(), minlength=len(self.histogram))

    @property
    def usage(self) -> float:
        """Share of the codebook seen at least once, 0..1."""
        return (self.histogram > 0).double().mean().item()

    @property
    def perplexity(self) -> float:
        """exp of the entropy of the code histogram, in codes: 1 .. codebook size."""
        p = self.histogram.double() / self.histogram.sum().clamp_min(1)
        return torch.special.entr(p).sum().exp().item()

    def reset(self) -> None:
        """Start a new window."""
        self.histogram.zero_()
