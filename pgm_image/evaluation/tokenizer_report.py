"""How faithful is a tokenizer? PSNR, L1, codebook use and reconstruction KID on images new to it.

And how much of what images show survives it: a generator of these codes can hardly be expected to be recognised more
often than reconstructions of the concepts that it was trained on.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from pgm_image.evaluation.distances import Distances, distances
from pgm_image.evaluation.evaluate import RealSide
from pgm_image.evaluation.features import extract
from pgm_image.evaluation.image_set import ImageSet
from pgm_image.evaluation.probe import accuracy
from tokenizer.pixels import from_uint8, to_uint8
from tokenizer.quantizer import CodeUsage


class Tokenizer(Protocol):
    """What the report needs of a tokenizer."""

    def encode(self, images: Tensor) -> Tensor: ...  # (B, 3, H, W) in [-1, 1] -> codes

    def decode(self, codes: Tensor) -> Tensor: ...  # codes -> (B, 3, H, W) in [-1, 1]


@dataclass(frozen=True)
class Recognition:
    """Top-1 shares in [0, 1] of `n` images that the probes recognise, as they are and reconstructed."""

    images: str
    n: int
    class_original: float
    class_reconstructed: float
    style_original: float
    style_reconstructed: float

    def line(self) -> str:
        return (
            f"class {self.class_reconstructed:.1%} (originals {self.class_original:.1%}), style "
            f"{self.style_reconstructed:.1%} ({self.style_original:.1%}), of {self.n} reconstructions of {self.images}"
        )


@dataclass(frozen=True)
class TokenizerReport:
    """Reconstruction of `n` images."""

    data: str
    n: int
    resolution: int
    psnr: float  # dB, mean over images, on 8-bit values
    l1: float  # mean absolute difference, grey levels of 255
    codebook_size: int
    usage: float  # share of the codebook seen over all images
    perplexity: float  # over all images, of at most codebook_size
    distances: Distances  # reconstructions against the same images
    recognition: tuple[Recognition, ...] = ()

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    def table(self) -> str:
        used = round(self.usage * self.codebook_size)
        rows = {
            "Images": f"{self.n} of {self.data}, {self.resolution} px",
            "PSNR": f"{self.psnr:.2f} dB",
            "L1": f"{self.l1:.2f} of 255",
            "Codebook": f"{used} of {self.codebook_size} codes used ({self.usage:.1%})",
            "Perplexity": f"{self.perplexity:.0f}",
            "KID x1000": f"{self.distances.kid:.2f} +- {self.distances.kid_std:.2f}",
            "FID": f"{self.distances.fid:.1f} ({self.distances.fid_note})",
        }
        lines = [f"{name:<10} {value}" for name, value in rows.items()]
        return "\n".join([*lines, *(f"Recognised {found.line()}" for found in self.recognition)])


def psnr(images: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Peak signal-to-noise ratio (n,) in dB between images (n, S, S, 3) uint8; 100 where they are equal."""
    error = (images.astype(np.float64) - others.astype(np.float64)) ** 2
    return 10 * np.log10(255.0**2 / np.maximum(error.mean(axis=(1, 2, 3)), 255.0**2 * 1e-10))


@torch.inference_mode()
def reconstruct(tokenizer: Tokenizer, images: np.ndarray, batch_size: int = 32) -> Iterator[tuple[np.ndarray, Tensor]]:
    """Batches of (reconstructions (B, S, S, 3) uint8, codes) of images (n, S, S, 3) uint8."""
    for start in range(0, len(images), batch_size):
        codes = tokenizer.encode(from_uint8(torch.from_numpy(images[start : start + batch_size])))
        yield to_uint8(tokenizer.decode(codes)).cpu().numpy(), codes


def evaluate_tokenizer(
    tokenizer: Tokenizer,
    codebook_size: int,
    images: np.ndarray,
    data: str,
    device: torch.device | str = "cpu",
) -> TokenizerReport:
    """Report on images (n, S, S, 3) uint8; `data` says where they come from."""
    usage = CodeUsage(codebook_size)
    parts = []
    for reconstructions, codes in reconstruct(tokenizer, images):
        parts.append(reconstructions)
        usage.add(codes)
    reconstructions = np.concatenate(parts)
    return TokenizerReport(
        data=data,
        n=len(images),
        resolution=images.shape[1],
        psnr=float(psnr(images, reconstructions).mean()),
        l1=float(np.abs(images.astype(np.int16) - reconstructions.astype(np.int16)).mean()),
        codebook_size=codebook_size,
        usage=usage.usage,
        perplexity=usage.perplexity,
        distances=distances(reconstructions, images, device=device),
    )


def with_recognition(report: TokenizerReport, tokenizer: Tokenizer, real: RealSide) -> TokenizerReport:
    """The report with how often reconstructions are recognised: of the reference's concepts and of held-out ones."""
    found = (
        _recognition("training concepts", tokenizer, real.reference, real),
        _recognition("held-out concepts", tokenizer, real.heldout, real),
    )
    return replace(report, recognition=found)


def _recognition(name: str, tokenizer: Tokenizer, images: ImageSet, real: RealSide) -> Recognition:
    reconstructions = np.concatenate([part for part, _ in reconstruct(tokenizer, images.images)])
    both = [extract(pictures, real.mobilenet, device=real.device) for pictures in (images.images, reconstructions)]
    shares = [
        accuracy(probe.logits(features), labels).top1
        for probe, labels in ((real.class_probe, images.class_id), (real.style_probe, images.style_id))
        for features in both
    ]
    return Recognition(name, len(reconstructions), *shares)
