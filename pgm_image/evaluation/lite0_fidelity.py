"""EfficientNet-lite0 as an extractor of torch-fidelity: metrics without a download, its weights come in a package.

Scores are for comparing models with one another; they are not those of Inception.
"""

from functools import cached_property

import torch
from torch import Tensor
from torch_fidelity.feature_extractor_base import FeatureExtractorBase
from torch_fidelity.registry import FEATURE_EXTRACTORS_REGISTRY

from pgm_image.evaluation.efficientnet import EfficientNetLite0, load_efficientnet_lite0
from pgm_image.evaluation.features import LITE0_SIZE, resized

LITE0 = "efficientnet-lite0"


class Lite0FeatureExtractor(FeatureExtractorBase):
    """Pooled features (B, 1280) for FID, KID, precision and recall, ImageNet logits (B, 1000) for the inception score.

    Images of any size are looked at in 128 px. Rows of pooled features pass through: they are computed once.
    """

    def __init__(self, name: str, features_list: list[str], **_: object):
        super().__init__(name, features_list)

    @staticmethod
    def get_provided_features_list() -> tuple[str, ...]:
        return "pooled", "logits"

    @staticmethod
    def get_default_feature_layer_for_metric(metric: str) -> str:
        return "logits" if metric == "isc" else "pooled"

    @staticmethod
    def can_be_compiled() -> bool:
        return False

    @cached_property
    def network(self) -> EfficientNetLite0:
        """Loaded when pictures come: rows of features do not need it."""
        return load_efficientnet_lite0().to(memory_format=torch.channels_last)

    def forward(self, batch: Tensor) -> tuple[Tensor, ...]:
        """(B, 3, H, W) uint8 images, or their pooled features (B, 1280) float -> the features asked for, float32."""
        pooled = batch
        if batch.dtype == torch.uint8:
            pooled = self.network.to(batch.device).features(resized(batch, LITE0_SIZE))
        return tuple(pooled if layer == "pooled" else self.network.fc(pooled) for layer in self.features_list)


def register() -> None:
    """Make it known to torch-fidelity; done again it changes nothing."""
    FEATURE_EXTRACTORS_REGISTRY.setdefault(LITE0, Lite0FeatureExtractor)
