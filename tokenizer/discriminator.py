"""Patch discriminator and hinge losses for adversarial training of the decoder (Esser et al. 2021, eqs. 5 to 7)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WEIGHTINGS = ("adaptive", "fixed")
MAX_ADAPTIVE = 1e4


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
