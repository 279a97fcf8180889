"""`evaluate` with a pipeline of coloured squares and an extractor of mean colours, alone or on two processes.

The features of generated pictures are Gaussian with known moments, so FID has a closed form.
"""

import sys
from types import SimpleNamespace

import numpy as np
import torch
from PIL import Image
from torch_fidelity import register_feature_extractor
from torch_fidelity.feature_extractor_base import FeatureExtractorBase
from torch_fidelity.registry import FEATURE_EXTRACTORS_REGISTRY

import pgm_image
from pgm_image.evaluation.command import add_arguments, run

EXTRACTOR = "mean-colour"
SAMPLE_MEAN, SAMPLE_ROOT = np.array([120.0, 110.0, 140.0]), np.diag([12.0, 9.0, 15.0])
REFERENCE_MEAN = np.array([128.0, 128.0, 128.0])
REFERENCE_ROOT = np.array([[10.0, 0.0, 0.0], [6.0, 8.0, 0.0], [0.0, 3.0, 14.0]])


class MeanColour(FeatureExtractorBase):
    """Three features: the mean of each channel; the same as logits."""

    def __init__(self, name, features_list, **kwargs):
        super().__init__(name, features_list)

    @staticmethod
    def get_provided_features_list():
        return ("colour", "logits")

    @staticmethod
    def get_default_feature_layer_for_metric(metric):
        return "logits" if metric == "isc" else "colour"

    @staticmethod
    def can_be_compiled():
        return False

    def forward(self, batch):
        colour = batch.float().mean(dim=(2, 3))
        return tuple(colour if name == "colour" else colour / 20 for name in self.features_list)


def squares(mean: np.ndarray, root: np.ndarray, seeds: range, size: int = 8) -> np.ndarray:
    """(n, size, size, 3) uint8: one colour each, mean + root z, dithered so that rounding does not bias its mean."""
    pictures = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        colour = mean + root @ rng.standard_normal(3)
        pictures.append(np.floor(colour + rng.random((size, size, 3))).clip(0, 255).astype(np.uint8))
    return np.stack(pictures)


class SquarePipeline:
    """Draws by formula; picture i depends on `seed + i` alone, as the real one's. Guidance shifts the mean."""

    classes = [f"class {index}" for index in range(10)]
    styles: list[str] = []
    image_size = 8
    recommended = {"steps": 4, "sampler": "halton", "guidance_scale": 0.0, "temperature": 1.0}
    info = SimpleNamespace(published={"visible_length": "reference"})
    transformer = tokenizer = torch.nn.Linear(1, 1, bias=False).requires_grad_(False)

    def __init__(self):
        self.calls: list[dict] = []
        torch.nn.init.ones_(self.transformer.weight)

    def generate(self, class_id, seed=0, batch_size=16, **settings):
        self.calls.append({"class_id": class_id, "seed": seed, **settings})
        mean = SAMPLE_MEAN + (settings.get("guidance_scale") or 0.0)
        return [Image.fromarray(p) for p in squares(mean, SAMPLE_ROOT, range(seed, seed + len(class_id)))]


def evaluate(words: list[str], pipeline: SquarePipeline) -> int:
    """The command with these words."""
    import argparse

    if EXTRACTOR not in FEATURE_EXTRACTORS_REGISTRY:
        register_feature_extractor(EXTRACTOR, MeanColour)
    pgm_image.load = lambda name, device=None: pipeline
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args([*words, "--extractor", EXTRACTOR, "--device", "cpu"]))


if __name__ == "__main__":
    sys.exit(evaluate(sys.argv[1:], SquarePipeline()))
