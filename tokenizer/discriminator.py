"""Discriminators and hinge losses for adversarial training of the decoder (Esser et al. 2021, eqs. 5 to 7)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from tokenizer.mobilenet import load_mobilenet

WEIGHTINGS = ("adaptive", "fixed")
NETWORKS = ("patch", "mobilenet")
MAX_ADAPTIVE = 1e4
TAPS = {3: 24, 6: 32, 10: 64, 13: 96}  # feature block: its channels; strides 4, 8, 16, 16
ENLARGED = 128  # pixels a side; ImageNet networks see little in smaller pictures


def patch_discriminator(image_size: int, width: int = 64, layers: int = 3) -> nn.Module:
    """taming-transformers' NLayerDiscriminator: (B, 3, S, S) in [-1, 1] -> a map of realness scores.

    Raises ValueError when images of `image_size` pixels are too small for so many strided layers.
    """
    if image_size < 3 * 2**layers:
        raise ValueError(f"gan_layers={layers} needs images of at least {3 * 2**layers} pixels, got {image_size}")
    try:
        from taming.modules.discriminator.model import NLayerDiscriminator, weights_init
    except ImportError as error:
        raise ModuleNotFoundError("adversarial training needs taming: pip install taming-transformers") from error
    return NLayerDiscriminator(input_nc=3, ndf=width, n_layers=layers).apply(weights_init)


class FeatureDiscriminator(nn.Module):
    """Judges pictures by the features of a fixed MobileNetV2 at four depths (Projected GANs, arXiv 2111.01007).

    It learns from few pictures and few steps, for what a picture shows is given and only its realness has to be learnt.
    """

    def __init__(self, width: int = 64) -> None:
        """width: channels of the heads."""
        super().__init__()
        self.network = load_mobilenet()
        self.heads = nn.ModuleList(_head(channels, width) for channels in TAPS.values())

    def forward(self, images: Tensor) -> Tensor:
        """images: (B, 3, S, S) in [-1, 1] -> (B, N) scores of all places at all depths."""
        if images.shape[-1] < ENLARGED:
            images = F.interpolate(images, ENLARGED, mode="bilinear", antialias=False)
        maps = self.network.taps(images, tuple(TAPS))
        return torch.cat([head(x).flatten(1) for head, x in zip(self.heads, maps, strict=True)], dim=1)

    def train(self, mode: bool = True) -> "FeatureDiscriminator":
        """The features stay those of evaluation mode."""
        super().train(mode)
        self.network.eval()
        return self


def _head(channels: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        spectral_norm(nn.Conv2d(channels, width, 3, padding=1)),
        nn.LeakyReLU(0.2),
        spectral_norm(nn.Conv2d(width, width, 3, stride=2, padding=1)),
        nn.LeakyReLU(0.2),
        spectral_norm(nn.Conv2d(width, 1, 1)),
    )


def make_discriminator(network: str, image_size: int, width: int, layers: int) -> nn.Module:
    """By name: "patch" (see `patch_discriminator`) or "mobilenet". ValueError for another name."""
    if network == "patch":
        return patch_discriminator(image_size, width, layers)
    if network == "mobilenet":
        return FeatureDiscriminator(width)
    raise ValueError(f"gan_network must be one of {NETWORKS}, got {network!r}")


def discriminator_loss(real: Tensor, fake: Tensor) -> Tensor:
    """Hinge loss over score maps of any equal shape: real above 1, fake below -1."""
    return 0.5 * (F.relu(1 - real).mean() + F.relu(1 + fake).mean())


def generator_loss(fake: Tensor) -> Tensor:
    """The decoder wants its pictures scored as real."""
    return -fake.mean()


def adaptive_weight(reconstruction: Tensor, adversarial: Tensor, last_layer: Tensor) -> Tensor:
    """Weight that gives the adversarial term the same gradient norm as the reconstruction term at the last layer.

    Two scalar losses and the decoder's last weight -> scalar, clipped to 0..1e4, no gradient.
    """
    (wanted,) = torch.autograd.grad(reconstruction, last_layer, retain_graph=True)
    (given,) = torch.autograd.grad(adversarial, last_layer, retain_graph=True)
    return (wanted.norm() / (given.norm() + 1e-4)).clamp(0, MAX_ADAPTIVE).detach()
