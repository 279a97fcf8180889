"""Tiny models with random weights, real in all else: pictures of 16 x 16 pixels on a 4 x 4 grid, and short texts."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from fake_text_pipeline import FakeTextPipeline, tokenizer

from pgm.models import build
from pgm.partition_transformer import PartitionTransformer, PartitionTransformerConfig
from pgm.sampling import Step
from pgm_image.model_info import ModelInfo
from pgm_image.pipeline import PGMPipeline
from pgm_text.pipeline import TextPipeline
from pgm_text.recipes import find_recipe
from tokenizer.config import TokenizerConfig
from tokenizer.vqgan import VQGAN


class UnhurriedPipeline(PGMPipeline):
    """A pipeline that waits for `step_seconds` before every step, so that a test can look between two of them."""

    step_seconds = 0.0

    def steps(self, *part: Any) -> Iterator[Step]:
        for step in super().steps(*part):
            time.sleep(self.step_seconds)
            yield step


def tiny_pipeline(**changes: Any) -> UnhurriedPipeline:
    """A partition model; `changes` of its card."""
    torch.manual_seed(0)
    sizes = TokenizerConfig(
        image_size=16, channels=8, multipliers=(1, 1, 1), norm_groups=2, latent_channels=8, codebook_size=32,
        code_dim=4,
    )  # fmt: skip
    transformer = PartitionTransformer(
        PartitionTransformerConfig(
            vocab_size=34,
            length=16,
            width=16,
            heads=2,
            encoder_layers=1,
            decoder_layers=1,
            mask_id=32,
            bos_id=33,
            num_classes=2,
            num_styles=2,
        )  # fmt: skip
    )
    info = ModelInfo(
        name="emoji64", architecture="pgm", title="Tiny", image_size=16, grid=(4, 4), codebook_size=32,
        classes=("bird", "fish"), styles=("flat", "ink"), recommended={"steps": 4}, presets={"Draft": {"steps": 2}},
    )  # fmt: skip
    return UnhurriedPipeline(transformer, VQGAN(sizes), replace(info, **changes))


def tiny_text_pipeline(kind: str = "pgm", **changes: Any) -> TextPipeline:
    """A text model of 24 tokens and one kind ("pgm", "mdlm", "rmdm"); `changes` of its card."""
    bpe = tokenizer()
    latent_width = 4 * (kind == "rmdm")
    manifest = {"vocab_size": bpe.vocab_size, "grid": (1, 26), "mask_id": bpe.mask_id, "bos_id": bpe.bos_id}
    config = find_recipe(f"tiny-{kind}").model_config(manifest, latent_width)
    torch.manual_seed(0)
    info = replace(FakeTextPipeline(kind).info, length=24, latent_width=latent_width)
    return TextPipeline(build({**config, "width": 16}), bpe, replace(info, **changes))
