"""A tokenizer small enough for a test, pictures it can learn from, and shards of them."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from tokenizer import VQGAN, TokenizerConfig
from tokenizer.shards import ImageSplit

TINY = TokenizerConfig(
    image_size=16,
    channels=8,
    multipliers=(1, 1, 2),
    norm_groups=4,
    latent_channels=8,
    codebook_size=16,
    code_dim=4,
)


def blocks(count: int, size: int = 16, seed: int = 0) -> np.ndarray:
    """Pictures of coloured squares, (count, size, size, 3) uint8."""
    colours = np.random.default_rng(seed).integers(0, 256, (count, 4, 4, 3))
    return np.kron(colours, np.ones((1, size // 4, size // 4, 1))).astype(np.uint8)


def labels(count: int) -> np.ndarray:
    """(count, 4): three classes, two styles, a concept per pair, one in four toned."""
    n = np.arange(count)
    return np.stack([n % 3, n % 2, n // 2, (n % 4 == 3) * 2], axis=1).astype(np.int32)


@pytest.fixture
def config() -> TokenizerConfig:
    return TINY


@pytest.fixture
def model() -> VQGAN:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return VQGAN(TINY).eval()


@pytest.fixture
def images() -> np.ndarray:
    return blocks(24)


@pytest.fixture
def split(images: np.ndarray) -> ImageSplit:
    return ImageSplit(images, labels(len(images)))


@pytest.fixture
def shard_folder(tmp_path: Path) -> Path:
    """Image shards: 24 training pictures in two files, 8 held-out ones."""
    folder = tmp_path / "images"
    folder.mkdir()
    names = {"train": ["train-00000.npz", "train-00001.npz"], "heldout": ["heldout-00000.npz"]}
    for seed, name in enumerate([*names["train"], *names["heldout"]]):
        count = 8 if name.startswith("heldout") else 12
        columns = dict(zip(("class_id", "style_id", "concept_id", "tone"), labels(count).T, strict=True))
        np.savez_compressed(folder / name, images=blocks(count, seed=seed), **columns)
    manifest = {"name": "squares", "size": 16, "splits": names, "classes": ["a", "b", "c"], "styles": ["s", "t"]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder
