"""Published models in miniature: files in the public containers and key layouts, and table entries for them."""

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from pgm.masked_transformer import MaskedTransformerConfig
from pgm.partition_transformer import PartitionTransformerConfig
from pgm_image.public_models import PublicModel, PublicTokenizer
from tokenizer import TokenizerConfig

# The tokenizer of the recorded numbers: 16 pixels, 4x4 codes out of 32.
TOKENIZER = PublicTokenizer(
    "tiny-vq", "VQ", "vq_tiny.pt",
    TokenizerConfig(
        image_size=16, channels=32, multipliers=(1, 1, 2), blocks=2, low_attention=True, middle_attention=True,
        norm_groups=32, latent_channels=16, codebook_size=32, code_dim=8, distance="cosine",
    ),
    1_050_000, "someone/tokenizers",
)  # fmt: skip
SETTINGS = {"steps": 4, "sampler": "halton", "guidance_scale": 1.0}


def _entry(name: str, config: PartitionTransformerConfig | MaskedTransformerConfig) -> PublicModel:
    return PublicModel(name, "Tiny", "someone/models", f"{name}.ckpt", config, TOKENIZER, 1, 16, SETTINGS)


TINY_PGM = _entry(
    "tiny-pgm",
    PartitionTransformerConfig(
        vocab_size=34, length=16, width=64, heads=4, encoder_layers=3, decoder_layers=2, mask_id=32, bos_id=33,
        num_classes=10,
    ),
)  # fmt: skip
TINY_MASKGIT = _entry(
    "tiny-maskgit", MaskedTransformerConfig(codebook_size=32, grid=4, width=64, layers=3, heads=4, num_classes=10)
)


def weights(path: Path) -> dict[str, Tensor]:
    """Recorded weights; those of tokenizers carry a prefix of their own."""
    return {key.removeprefix("w."): value for key, value in load_file(path).items()}


def write_transformer(path: Path, state: dict[str, Tensor], prefix: str = "", container: str = "model_state_dict"):
    """A training checkpoint as published: step, epoch, weights, and the optimizer's moments that nobody needs."""
    moments = {i: {"step": 5, "exp_avg": v.clone(), "exp_avg_sq": v**2} for i, v in enumerate(state.values())}
    content = {
        "iter": 500_000,
        "global_epoch": 100,
        container: {prefix + key: value for key, value in state.items()},
        "optimizer_state_dict": {"state": moments, "param_groups": [{"lr": 1e-4, "params": list(moments)}]},
    }
    torch.save(content, path)


def write_tokenizer(path: Path, state: dict[str, Tensor]) -> None:
    """LlamaGen's container, with the buffer of code counts that its files carry."""
    torch.save({"model": {**state, "quantize.codebook_used": torch.zeros(65536)}}, path)
