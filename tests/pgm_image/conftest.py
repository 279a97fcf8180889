"""A pipeline small enough for a test, as a folder on disk: random weights, 4x4 codes, 8-pixel pictures."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from pgm.masked_transformer import MaskedTransformer, MaskedTransformerConfig
from pgm.partition_transformer import PartitionTransformer, PartitionTransformerConfig
from pgm_image.model_info import ModelInfo
from pgm_image.pipeline import PGMPipeline
from tokenizer import VQGAN, TokenizerConfig

CODEBOOK = 16
CLASSES = ("bird", "cat or monkey face", "goldfish")
STYLES = ("noto", "flat")
TINY_TOKENIZER = TokenizerConfig(
    image_size=8, channels=4, multipliers=(1, 2), norm_groups=2, latent_channels=4, codebook_size=CODEBOOK, code_dim=4
)


def tiny_info(architecture: str = "pgm") -> ModelInfo:
    return ModelInfo(
        name="tiny",
        architecture=architecture,
        title="Random weights",
        image_size=8,
        grid=(4, 4),
        codebook_size=CODEBOOK,
        classes=CLASSES,
        styles=STYLES,
        recommended={"steps": 4, "sampler": "halton", "guidance_scale": 1.5},
        presets={"Draft": {"steps": 2}},
        parameters=1,
        words={"bird": ("eagle", "owl")},
    )


def tiny_pipeline(architecture: str = "pgm") -> PGMPipeline:
    labels = {"num_classes": len(CLASSES), "num_styles": len(STYLES)}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if architecture == "pgm":
            special = {"mask_id": CODEBOOK, "bos_id": CODEBOOK + 1, "vocab_size": CODEBOOK + 2}
            sizes = {"length": 16, "width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
            network = PartitionTransformer(PartitionTransformerConfig(**special, **sizes, **labels))
        else:
            network = MaskedTransformer(
                MaskedTransformerConfig(codebook_size=CODEBOOK, grid=4, width=16, layers=2, heads=2, **labels)
            )
        for parameter in network.parameters():  # a fresh model predicts the same everywhere
            torch.nn.init.normal_(parameter, std=0.3)
        tokenizer = VQGAN(TINY_TOKENIZER)
    return PGMPipeline(network, tokenizer, tiny_info(architecture))


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny_pipeline().save_pretrained(folder)
    return folder


@pytest.fixture
def pipeline() -> PGMPipeline:
    return tiny_pipeline()


@pytest.fixture
def masked_pipeline() -> PGMPipeline:
    return tiny_pipeline("maskgit")


@pytest.fixture
def code_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "codes"
    folder.mkdir()
    rng = np.random.default_rng(0)
    splits = {}
    for split, count in (("train", 24), ("heldout", 8)):
        labels = np.stack([np.arange(count) % 3, np.arange(count) % 2, np.arange(count) // 2, np.zeros(count)], axis=1)
        np.save(folder / f"{split}.codes.npy", rng.integers(0, 16, (count, 16)).astype(np.uint16))
        np.save(folder / f"{split}.labels.npy", labels.astype(np.int32))
        splits[split] = [{"codes": f"{split}.codes.npy", "labels": f"{split}.labels.npy", "count": count}]
    manifest = {
        "grid": [4, 4],
        "codebook_size": 16,
        "classes": ["a", "b", "c"],
        "styles": ["s", "t", "u"],
        "splits": splits,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder
