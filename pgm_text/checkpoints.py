"""The published text models: Lightning checkpoints of jdeschena/pgm and kuleshov-group/mdlm-owt, as our transformers.

Sizes are read off the shapes of the tensors; the pickled config adds only what shapes do not tell (heads, context
length, query mode). The averaged (EMA) weights are used where a file has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from pgm.diffusion_transformer import DiffusionTransformer, DiffusionTransformerConfig
from pgm.foreign_weights import read_state_dict, strip_prefixes
from pgm.partition_transformer import PartitionTransformer, PartitionTransformerConfig
from pgm.weights import load_into
from pgm_text.lightning_checkpoint import NETWORK_PREFIXES, read_lightning_checkpoint

CONTEXT = 1024  # positions of the OpenWebText models, BOS included
HEAD_WIDTH = 64  # of every published model


@dataclass(frozen=True)
class PublicCheckpoint:
    """Where a published model lies on the Hugging Face hub and what it is."""

    repo: str
    files: tuple[str, ...]  # the first that the repository has
    title: str
    licence: str = "Apache-2.0"


def _pgm(file: str, title: str) -> PublicCheckpoint:
    return PublicCheckpoint("jdeschena/pgm", (file,), title)


PUBLIC_CHECKPOINTS: dict[str, PublicCheckpoint] = {
    "pgm_8_8.ckpt": _pgm("pgm_8_8.ckpt", "PGM 8/8, OpenWebText, 1M steps"),
    "pgm_6_6_dim1024.ckpt": _pgm("pgm_6_6_dim1024.ckpt", "PGM 6/6 of width 1024, OpenWebText, 1M steps"),
    "mdlm.ckpt": _pgm("mdlm.ckpt", "MDLM, OpenWebText, 1M steps, trained beside the PGMs"),
    "pgm_8_8_sdtt_fp32_50k.ckpt": _pgm("pgm_8_8_sdtt_fp32_50k.ckpt", "PGM 8/8 distilled for few steps (SDTT)"),
    "pgm_6_6_dim1024_sdtt_fp32_50k.ckpt": _pgm(
        "pgm_6_6_dim1024_sdtt_fp32_50k.ckpt", "PGM 6/6 of width 1024 distilled for few steps (SDTT)"
    ),
    "mdlm_sdtt_50k.ckpt": _pgm("mdlm_sdtt_50k.ckpt", "MDLM distilled for few steps (SDTT)"),
    "kuleshov-group/mdlm-owt": PublicCheckpoint(
        "kuleshov-group/mdlm-owt", ("model.safetensors", "pytorch_model.bin"), "MDLM of its authors, OpenWebText"
    ),
}


def read_checkpoint(path: str | Path, *, use_ema: bool = True, mask_id: int | None = None) -> nn.Module:
    """A published file (Lightning .ckpt, safetensors, or a bare .bin) as a transformer of ours in eval mode.

    mask_id: the last id of the vocabulary unless given; BOS is the one before it, as in GPT-2's tokenizer. Raises
    ValueError naming the file, one that must not be read included.
    """
    path = Path(path)
    if path.suffix in (".safetensors", ".bin"):  # a bare state dict
        state = strip_prefixes(read_state_dict(path), path.name, NETWORK_PREFIXES)
        return transformer_from_state(state, source=path, mask_id=mask_id)
    checkpoint = read_lightning_checkpoint(path)
    state = checkpoint.weights if use_ema else checkpoint.raw
    return transformer_from_state(state, checkpoint.config.get("model") or {}, source=path, mask_id=mask_id)


def transformer_from_state(
    state: Mapping[str, Tensor],
    sizes: Mapping[str, Any] | None = None,
    *,
    source: str | Path = "checkpoint",
    mask_id: int | None = None,
) -> nn.Module:
    """A PGM or MDLM with these weights (public names without prefix).

    sizes: entries of the published config, of which `n_heads`, `length` and `swap` are read.
    """
    config = config_from_state(state, sizes or {}, source=source, mask_id=mask_id)
    partition = isinstance(config, PartitionTransformerConfig)
    model: nn.Module = PartitionTransformer(config) if partition else DiffusionTransformer(config)
    own = model.state_dict()
    load_into(model, {"rotary_emb.inv_freq": own["rotary_emb.inv_freq"], **state}, source)  # not in every file
    return model.eval()


def config_from_state(
    state: Mapping[str, Tensor],
    sizes: Mapping[str, Any],
    *,
    source: str | Path = "checkpoint",
    mask_id: int | None = None,
) -> PartitionTransformerConfig | DiffusionTransformerConfig:
    """Sizes of the network whose tensors these are; the tensors may be on the meta device."""
    if "vocab_embed.embedding" not in state or "sigma_map.mlp.0.bias" not in state:
        raise ValueError(f"{source} holds no text PGM or MDLM: vocab_embed.embedding or sigma_map is missing")
    vocab_size, width = state["vocab_embed.embedding"].shape
    mask = vocab_size - 1 if mask_id is None else mask_id
    shared = {
        "vocab_size": vocab_size,
        "length": int(sizes.get("length", CONTEXT)) - 1,
        "width": width,
        "heads": int(sizes.get("n_heads", width // HEAD_WIDTH)),
        "mask_id": mask,
        "bos_id": mask - 1,
        "condition_width": len(state["sigma_map.mlp.0.bias"]),
    }
    if "decoder.group_swap.base_embedding" in state:
        swap = sizes.get("swap") or {}
        wide = "decoder.group_swap.query_processor.0.weight" in state
        return PartitionTransformerConfig(
            **shared,
            encoder_layers=_count(state, "encoder.blocks."),
            decoder_layers=_count(state, "decoder.layers."),
            registers=0,
            query_mode=swap.get("pre_query_mode", "learn+freqs"),
            query_processor="mlp4" if wide else "linear",
        )
    return DiffusionTransformerConfig(**shared, layers=_count(state, "blocks."))


def download_checkpoint(name: str, **download: Any) -> Path:
    """The file of a published model, from the hub or its cache (arguments `download` as in huggingface_hub).

    Raises ValueError that names the file and says how to get it where there is no network.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

    public = PUBLIC_CHECKPOINTS[name]
    for file in public.files:
        try:
            return Path(hf_hub_download(public.repo, file, **download))
        except LocalEntryNotFoundError as error:
            raise ValueError(
                f"{file} of the hub repository {public.repo} is not in the cache and the hub cannot be reached; go "
                "online once, or download the file elsewhere and give its path as the model"
            ) from error
        except EntryNotFoundError:
            continue
        except (HfHubHTTPError, OSError) as error:
            raise ValueError(f"{file} of {public.repo} could not be downloaded: {error}") from error
    raise ValueError(f"the hub repository {public.repo} has none of the files {', '.join(public.files)}")


def _count(state: Mapping[str, Tensor], prefix: str) -> int:
    return len({name[len(prefix) :].split(".")[0] for name in state if name.startswith(prefix)})
