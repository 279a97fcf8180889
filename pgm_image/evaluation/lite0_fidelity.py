"""EfficientNet-lite0 as an extractor of torch-fidelity: the published protocols without a download.

Its weights come with a Python package, so the whole path runs where Inception's file cannot be had. Scores are for
comparing models with one another; they are not those of Inception.
"""

from torch import Tensor
from torch_fidelity.feature_extractor_base import FeatureExtractorBase
from torch_fidelity.registry import FEATURE_EXTRACTORS_REGISTRY

from pgm_image.evaluation.efficientnet import FEATURES, IMAGENET_CLASSES, load_efficientnet_lite0
from pgm_image.evaluation.features import LITE0_SIZE, resized

LITE0 = "efficientnet-lite0"
POOLED, LOGITS = str(FEATURES), f"logits_{IMAGENET_CLASSES}"


class Lite0Features(FeatureExtractorBase):
    """Pooled features (B, 1280) for FID, KID, precision and recall, ImageNet logits (B, 1000) for the inception score.

    Images of any size are looked at in 128 px.
    """

    def __init__(self, name: str, features_list: list[str], **_: object):
        super().__init__(name, features_list)
        self.network = load_efficientnet_lite0()

    @staticmethod
    def get_provided_features_list() -> tuple[str, ...]:
        return POOLED, LOGITS

    @staticmethod
    def get_default_feature_layer_for_metric(metric: str) -> str:
        return LOGITS if metric == "isc" else POOLED

    @staticmethod
    def can_be_compiled() -> bool:
        return False

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """images: (B, 3, H, W) uint8."""
        pooled = self.network.features(resized(images, LITE0_SIZE))
        found = {POOLED: pooled, LOGITS: self.network.fc(pooled)}
        return tuple(found[layer] for layer in self.features_list)


def register() -> None:
    """Make it known to torch-fidelity; done again it changes nothing."""
    FEATURE_EXTRACTORS_REGISTRY.setdefault(LITE0, Lite0Features)

