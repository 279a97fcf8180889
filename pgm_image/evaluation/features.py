"""Pooled features of frozen ImageNet networks: EfficientNet-lite0 for distances, MobileNetV2 for recognition.

The distances look through a network that no part of training has seen: the tokenizer's perceptual loss is
MobileNetV2.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pgm_image.evaluation.efficientnet import load_efficientnet_lite0
from tokenizer.mobilenet import load_mobilenet

LITE0_SIZE = 128
MOBILENET_SIZE = 96


@dataclass(frozen=True)
class Extractor:
    """A network that turns images into vectors, and the size it looks at them in."""

    name: str
    size: int  # what images are resized to
    network: Callable[[Tensor], Tensor]  # (B, 3, size, size) float in [0, 255] -> (B, width)

    def __str__(self) -> str:
        return f"{self.name} (ImageNet), pooled features, images resized to {self.size} px"

    def __call__(self, images: Tensor) -> Tensor:
        """Features (B, width) float32 of images (B, 3, H, W) uint8."""
        return self.network(resized(images, self.size))


def resized(images: Tensor, size: int) -> Tensor:
    """(B, 3, H, W) uint8 -> (B, 3, size, size) float32 in [0, 255], bilinear with antialias, channels last."""
    x = images.float()
    if x.shape[2:] != (size, size):
        x = F.interpolate(x, size=(size, size), mode="bilinear", antialias=True)
    return x.contiguous(memory_format=torch.channels_last)


def lite0_extractor(device: torch.device | str = "cpu") -> Extractor:
    """EfficientNet-lite0, 1280 features at 128 px."""
    model = load_efficientnet_lite0().to(device, memory_format=torch.channels_last)
    return Extractor("EfficientNet-lite0", LITE0_SIZE, model.features)


def mobilenet_extractor(device: torch.device | str = "cpu") -> Extractor:
    """MobileNetV2, 1280 features at 96 px."""
    model = load_mobilenet(device).to(memory_format=torch.channels_last)
    return Extractor("MobileNetV2", MOBILENET_SIZE, lambda images: model.pooled(images / 127.5 - 1))


@torch.inference_mode()
def extract(
    images: np.ndarray, extractor: Extractor, batch_size: int = 64, device: torch.device | str = "cpu"
) -> np.ndarray:
    """Features (n, width) float32 of images (n, S, S, 3) uint8."""
    rows = []
    for start in range(0, len(images), batch_size):
        batch = torch.from_numpy(images[start : start + batch_size]).to(device)
        rows.append(extractor(batch.permute(0, 3, 1, 2)).float().cpu().numpy())
    return np.concatenate(rows)


def cached_features(
    folder: str | Path, images: np.ndarray, extractor: Extractor, device: torch.device | str = "cpu"
) -> np.ndarray:
    """Features (n, width) float32 of real images (n, S, S, 3) uint8, kept under `folder/cache` for the next time.

    The key is the extractor and the pixels themselves, so changed data or another selection is never mistaken.
    """
    key = hashlib.sha256(repr(images.shape).encode() + images.tobytes()).hexdigest()[:16]
    path = Path(folder) / "cache" / f"{extractor.name.lower()}-{extractor.size}-{key}.npy"
    if path.is_file():
        return np.load(path, allow_pickle=False)
    features = extract(images, extractor, device=device)
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    with partial.open("wb") as file:
        np.save(file, features)
    partial.replace(path)  # a killed run leaves no half-written cache
    return features
