"""Are generated images recognised as their class and style? A linear probe on frozen MobileNetV2 features.

The probe learns from training concepts. Pictures of concepts it never saw give the ceiling, what real images
reach; generated images are read against that, not against 100%. They may exceed it, because they depict
training concepts, which the probe knows: whether they are copies is the question of `nearest.py`.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

WEIGHT_DECAY = 1e-2
ITERATIONS = 80  # the held-out scores no longer move after about fifty


@dataclass(frozen=True)
class LinearProbe:
    """Multinomial logistic regression on standardised features."""

    mean: Tensor  # (D,)
    scale: Tensor  # (D,)
    weight: Tensor  # (K, D)
    bias: Tensor  # (K,)

    def logits(self, features: np.ndarray) -> Tensor:
        """(n, D) float32 -> (n, K)."""
        x = (torch.from_numpy(features) - self.mean) / self.scale
        return F.linear(x, self.weight, self.bias)


@dataclass(frozen=True)
class Accuracy:
    """Shares in [0, 1]; the mean over classes is the one to compare between sets of unequal class balance."""

    top1: float
    top5: float
    top1_class_mean: float
    top5_class_mean: float
    n: int


@dataclass(frozen=True)
class ProbeReport:
    """Accuracy of generated images beside real held-out ones."""

    class_generated: Accuracy | None  # None when the samples carry no labels
    class_heldout: Accuracy
    style_generated: Accuracy | None
    style_heldout: Accuracy
    fitted_on: int  # images


def fit_linear_probe(
    features: np.ndarray, labels: np.ndarray, num_labels: int, weights: np.ndarray | None = None
) -> LinearProbe:
    """Fit by L-BFGS from zero, so the same input gives the same probe.

    features (n, D) float32; labels (n,) int in [0, num_labels); weights (n,) float, how much each counts.
    """
    x = torch.from_numpy(features)
    y = torch.from_numpy(labels)
    mean, scale = x.mean(dim=0), x.std(dim=0).clamp_min(1e-6)
    x = (x - mean) / scale
    sample_weight = torch.ones(len(x)) if weights is None else torch.from_numpy(weights).float()
    sample_weight = sample_weight / sample_weight.sum()
    weight = torch.zeros(num_labels, x.shape[1], requires_grad=True)
    bias = torch.zeros(num_labels, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        losses = F.cross_entropy(F.linear(x, weight, bias), y, reduction="none")
        loss = (losses * sample_weight).sum() + 0.5 * WEIGHT_DECAY * weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return LinearProbe(mean, scale, weight.detach(), bias.detach())


def accuracy(logits: Tensor, labels: np.ndarray) -> Accuracy:
    """Top-1 and top-5 of logits (n, K) against labels (n,)."""
    target = torch.from_numpy(labels)
    ranked = logits.topk(min(5, logits.shape[1]), dim=1).indices  # (n, 5)
    hits = ranked == target[:, None]
    top1, top5 = hits[:, 0].float(), hits.any(dim=1).float()
    classes = target.unique()
    per_class = [(top1[target == label].mean(), top5[target == label].mean()) for label in classes]
    mean1, mean5 = (float(torch.stack(values).mean()) for values in zip(*per_class, strict=True))
    return Accuracy(float(top1.mean()), float(top5.mean()), mean1, mean5, len(target))


def class_balanced_weights(labels: np.ndarray, num_labels: int) -> np.ndarray:
    """Weights (n,) that let every label count the same, whatever its number of images."""
    counts = np.bincount(labels, minlength=num_labels)
    return (1.0 / counts[labels]).astype(np.float32)
