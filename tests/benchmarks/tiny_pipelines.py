"""A pipeline of either kind, small enough for tests of whole benchmarks."""

import torch

from pgm.masked_transformer import MaskedTransformer, MaskedTransformerConfig
from pgm.partition_transformer import PartitionTransformer, PartitionTransformerConfig
from pgm_image.model_info import ModelInfo
from pgm_image.pipeline import PGMPipeline
from tests.pgm_image.evaluation_data import CLASSES, SIZE, STYLES
from tokenizer import VQGAN, TokenizerConfig

LENGTH, CODES = 16, 24


def tiny(architecture: str) -> PGMPipeline:
    """Random weights over 4x4 codes and 16-pixel pictures; both kinds have one tokenizer."""
    labels = {"num_classes": len(CLASSES), "num_styles": len(STYLES), "width": 16, "heads": 2, "dropout": 0.0}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        sizes = TokenizerConfig(
            image_size=SIZE, channels=4, multipliers=(1, 1, 1), norm_groups=2, latent_channels=4, codebook_size=CODES,
            code_dim=4,
        )  # fmt: skip
        tokenizer = VQGAN(sizes)
        if architecture == "pgm":
            special = {"vocab_size": CODES + 2, "mask_id": CODES, "bos_id": CODES + 1}
            layers = {"encoder_layers": 1, "decoder_layers": 1, "registers": 2}
            network = PartitionTransformer(PartitionTransformerConfig(length=LENGTH, **special, **layers, **labels))
        else:
            network = MaskedTransformer(MaskedTransformerConfig(codebook_size=CODES, grid=4, layers=2, **labels))
        for parameter in network.parameters():  # a fresh model predicts the same everywhere
            torch.nn.init.normal_(parameter, std=0.3)
    info = ModelInfo(
        name=f"tiny-{architecture}", architecture=architecture, title="Tiny", image_size=SIZE, grid=(4, 4),
        codebook_size=CODES, classes=tuple(CLASSES), styles=tuple(STYLES),
        recommended={"steps": 4, "guidance_scale": 1.5, "guidance_schedule": "constant", "temperature": 0.8},
    )  # fmt: skip
    return PGMPipeline(network, tokenizer, info)
