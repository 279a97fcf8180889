"""Held-out reconstruction quality: PSNR on 8-bit pixels, usage and perplexity of the codebook."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tokenizer import pixels
from tokenizer.quantizer import CodeUsage
from tokenizer.vqgan import VQGAN


class Quality(NamedTuple):
    """Means over a set of images."""

    psnr: float  # dB, mean of the per-image values
    l1: float  # mean absolute error, [-1, 1] scale
    usage: float  # share of the codebook seen, 0..1
    perplexity: float  # codes


def psnr(images: Tensor, references: Tensor) -> Tensor:
    """Two uint8 tensors (B, H, W, 3) -> (B,) dB; 99 for identical pictures."""
    error = (images.double() - references.double()).square().flatten(1).mean(1)  # (B,)
    return 10 * torch.log10(255**2 / error.clamp_min(255**2 * 10**-9.9))


@torch.no_grad()
def evaluate(model: VQGAN, images: np.ndarray, batch_size: int = 32) -> Quality:
    """images: (N, S, S, 3) uint8. The model's train/eval mode is left as found."""
    device = next(model.parameters()).device
    usage = CodeUsage(model.config.codebook_size)
    decibels, errors = [], []
    for start in range(0, len(images), batch_size):
        reference = torch.from_numpy(images[start : start + batch_size])
        codes = model.encode(pixels.from_uint8(reference).to(device))
        decoded = model.decode(codes).cpu()
        usage.add(codes)
        decibels.append(psnr(pixels.to_uint8(decoded), reference))
        errors.append((decoded - pixels.from_uint8(reference)).abs().mean((1, 2, 3)))
    return Quality(torch.cat(decibels).mean().item(), torch.cat(errors).mean().item(), usage.usage, usage.perplexity)
