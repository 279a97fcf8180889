"""Perceptual distances for training: "perceptual (MobileNetV2)", built like LPIPS (Zhang et al. 2018, eq. 1) without
learned heads, and LPIPS itself where its package and weights are installed."""

import torch.nn.functional as F
from torch import Tensor, nn

from tokenizer.mobilenet import load_mobilenet

TAPS = (1, 3, 6, 10)  # strides 2, 4, 8, 16
NETWORKS = ("mobilenet", "lpips", "none")


class MobileNetPerceptual(nn.Module):
    """Squared distance of channel-normalised features, summed over channels and taps, averaged over space."""

    def __init__(self) -> None:
        super().__init__()
        self.network = load_mobilenet()

    def forward(self, images: Tensor, targets: Tensor) -> Tensor:
        """images, targets: (B, 3, H, W) in [-1, 1] -> scalar mean over the batch; gradient flows to `images`."""
        distances = []
        for a, b in zip(self.network.taps(images, TAPS), self.network.taps(targets.detach(), TAPS), strict=True):
            difference = F.normalize(a.float(), dim=1, eps=1e-6) - F.normalize(b.float(), dim=1, eps=1e-6)
            distances.append(difference.square().sum(1).mean())
        return sum(distances)


class LPIPS(nn.Module):
    """The `lpips` package with its VGG backbone (torchvision downloads the backbone on first use)."""

    def __init__(self) -> None:
        super().__init__()
        try:
            import lpips
        except ImportError as error:
            raise ModuleNotFoundError("perceptual='lpips' needs the lpips package: pip install lpips") from error
        try:
            self.network = lpips.LPIPS(net="vgg", verbose=False).eval().requires_grad_(False)
        except OSError as error:
            raise RuntimeError(
                "LPIPS could not get its VGG weights; put vgg16-397923af.pth into torch's checkpoint cache"
            ) from error

    def forward(self, images: Tensor, targets: Tensor) -> Tensor:
        """images, targets: (B, 3, H, W) in [-1, 1] -> scalar mean over the batch."""
        return self.network(images, targets).mean()


def perceptual_loss(network: str) -> nn.Module | None:
    """`network`: "mobilenet", "lpips" or "none" (returns None); ValueError for another name."""
    if network not in NETWORKS:
        raise ValueError(f"perceptual must be one of {NETWORKS}, got {network!r}")
    return {"mobilenet": MobileNetPerceptual, "lpips": LPIPS, "none": lambda: None}[network]()
