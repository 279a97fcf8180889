"""Public VQ checkpoints -> our VQGAN: LlamaGen VQ-8/VQ-16 (arXiv 2406.06525) and taming-transformers f16.

Files are read by `pgm.foreign_weights`: tensors only, without running anything that a file brings along.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from pgm.foreign_weights import read_state_dict, strip_prefixes, submodule
from pgm.weights import load_into
from tokenizer.config import TokenizerConfig
from tokenizer.vqgan import VQGAN

DROPPED = ("loss.", "quantize.codebook_used", "ema.", "model_ema.")  # training-only entries
NORM_GROUPS = 32  # both families; not visible in the shapes
LEAVES = {
    "nin_shortcut": "conv_shortcut",
    "norm": "group_norm",
    "q": "to_q",
    "k": "to_k",
    "v": "to_v",
    "proj_out": "to_out.0",
}


def read_checkpoint(path: str | Path) -> dict[str, Tensor]:
    """State dict of a .pt, .ckpt, .pth or .safetensors file, prefixes removed and training-only entries dropped.

    Raises ValueError when the file is missing, damaged, needs unsafe classes or holds no tensors.
    """
    return clean(read_state_dict(path))


def clean(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Without wrapper prefixes and training-only entries; of a larger model only its first stage, with a warning."""
    part, others = submodule(strip_prefixes(state), ("first_stage_model.",))
    if others:
        warnings.warn(f"{others} tensors outside first_stage_model. are ignored", stacklevel=2)
    return {key: value for key, value in part.items() if not key.startswith(DROPPED)}


def family(state: Mapping[str, Tensor]) -> str:
    """ "llamagen" or "taming" by the key layout; ValueError for anything else."""
    if "quantize.proj.weight" in state:
        raise ValueError("Gumbel-quantised taming models are not supported: their encoder draws codes at random")
    if any(key.startswith("encoder.conv_blocks.") for key in state):
        return "llamagen"
    if any(key.startswith("encoder.down.") for key in state):
        return "taming"
    raise ValueError(f"neither a LlamaGen nor a taming VQ state dict; first key is {next(iter(state), None)!r}")


def infer_config(state: Mapping[str, Tensor], image_size: int = 256) -> TokenizerConfig:
    """The sizes, read from the shapes of a cleaned state dict in either layout."""
    kind = family(state)
    level, block, attention = {
        "llamagen": ("encoder.conv_blocks", "res", "attn"),
        "taming": ("encoder.down", "block", "attn"),
    }[kind]
    levels = 1 + max(int(key.split(".")[2]) for key in state if key.startswith(f"{level}."))
    blocks = 1 + max(int(key.split(".")[4]) for key in state if key.startswith(f"{level}.0.{block}."))
    attended = {int(key.split(".")[2]) for key in state if key.startswith(level) and f".{attention}." in key}
    if attended - {levels - 1}:
        raise ValueError(f"attention at levels {sorted(attended)} of {levels}; only the lowest resolution can have it")
    base = state["encoder.conv_in.weight"].shape[0]
    widths = [state[f"{level}.{i}.{block}.0.conv1.weight"].shape[0] for i in range(levels)]
    size, dim = state["quantize.embedding.weight"].shape
    middle = "encoder.mid.1.norm.weight" if kind == "llamagen" else "encoder.mid.attn_1.norm.weight"
    return TokenizerConfig(
        image_size=image_size,
        channels=base,
        multipliers=tuple(width // base for width in widths),
        blocks=blocks,
        low_attention=bool(attended),
        middle_attention=middle in state,
        norm_groups=NORM_GROUPS,
        latent_channels=state["encoder.conv_out.weight"].shape[0],
        codebook_size=size,
        code_dim=dim,
        distance="cosine" if kind == "llamagen" else "euclidean",
    )


def convert_key(key: str, kind: str, levels: int) -> str:
    """One key of the reference layout -> the name of the same tensor in our VQGAN."""
    if key == "quantize.embedding.weight":
        return "quantizer.codebook"
    parts = key.split(".")
    if parts[0] not in ("encoder", "decoder"):
        return key  # quant_conv, post_quant_conv
    side, rest = parts[0], parts[1:]
    if rest[0] == "norm_out":
        return ".".join([side, "conv_norm_out", *rest[1:]])
    if rest[0] == "mid":
        place = {
            "0": "resnets.0",
            "1": "attentions.0",
            "2": "resnets.1",
            "block_1": "resnets.0",
            "attn_1": "attentions.0",
            "block_2": "resnets.1",
        }[rest[1]]
        return ".".join([side, "mid_block", place, *_leaf(rest[2:])])
    if rest[0] in ("conv_blocks", "down", "up"):
        index = int(rest[1])
        if rest[0] == "up":
            index = levels - 1 - index  # taming numbers decoder levels from the highest resolution
        blocks = "down_blocks" if side == "encoder" else "up_blocks"
        part = {
            "res": "resnets",
            "block": "resnets",
            "attn": "attentions",
            "downsample": "downsamplers.0",
            "upsample": "upsamplers.0",
        }[rest[2]]
        return ".".join([side, blocks, str(index), part, *_leaf(rest[3:])])
    return key  # conv_in, conv_out


def _leaf(parts: list[str]) -> list[str]:
    return [LEAVES.get(part, part) for part in parts]


def convert_state(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A cleaned reference state dict -> keys and shapes of our VQGAN."""
    config, kind = infer_config(state), family(state)
    converted = {}
    for key, value in state.items():
        name = convert_key(key, kind, len(config.multipliers))
        if ".attentions." in name and value.ndim == 4:
            value = value[:, :, 0, 0]  # 1x1 convolution -> matrix
        converted[name] = value
    if config.distance == "cosine":
        converted["quantizer.codebook"] = F.normalize(converted["quantizer.codebook"].float(), dim=-1)
    return converted


def convert(state: Mapping[str, Tensor], image_size: int = 256) -> VQGAN:
    """A reference state dict (prefixes and training entries allowed) -> VQGAN in eval mode.

    Raises ValueError naming how many keys are missing or unexpected, and the first of each.
    """
    state = clean(state)
    with torch.device("meta"):
        model = VQGAN(infer_config(state, image_size))
    load_into(model, convert_state(state), "the converted checkpoint", assign=True)
    return model.eval()


def convert_file(path: str | Path, image_size: int = 256) -> VQGAN:
    """A published checkpoint file -> VQGAN in eval mode."""
    return convert(read_checkpoint(path), image_size)
