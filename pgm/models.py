"""The architectures by the `model_type` that their config.json carries: build, save, load."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pgm.causal_transformer import CausalTransformer, CausalTransformerConfig
from pgm.diffusion_transformer import DiffusionTransformer, DiffusionTransformerConfig
from pgm.group_swap import GroupSwap
from pgm.masked_transformer import MaskedTransformer, MaskedTransformerConfig
from pgm.partition_transformer import PartitionTransformer, PartitionTransformerConfig
from pgm.positions import sinusoid
from pgm.predictors import MaskedPredictor, PartitionPredictor, Predictor, VisibleLength
from pgm.weights import config_dict, config_from_dict, load_into, read_config, read_weights, save_weights

ARCHITECTURES: dict[str, tuple[type, type[nn.Module]]] = {
    "partition-transformer": (PartitionTransformerConfig, PartitionTransformer),
    "masked-transformer": (MaskedTransformerConfig, MaskedTransformer),
    "diffusion-transformer": (DiffusionTransformerConfig, DiffusionTransformer),
    "causal-transformer": (CausalTransformerConfig, CausalTransformer),
}
TIED = ("head.weight", "tok_emb.weight")  # one tensor under two names in the masked transformer


def build(values: dict[str, Any], source: str | Path = "config") -> nn.Module:
    """A fresh model from the values of a config. Raises ValueError for an unknown `model_type` or field."""
    config = config_from_values(values, source)
    return ARCHITECTURES[config.model_type][1](config)


def config_from_values(values: dict[str, Any], source: str | Path = "config") -> Any:
    """The config dataclass that the values of a config.json describe; raises as `build`."""
    kind = values.get("model_type")
    if kind not in ARCHITECTURES:
        raise ValueError(f"{source}: model_type must be one of {', '.join(ARCHITECTURES)}, got {kind!r}")
    return config_from_dict(ARCHITECTURES[kind][0], values, source)


def build_empty(config: Any) -> nn.Module:
    """A model of a config dataclass without memory for weights (meta device), to be filled by `load_into(assign=True)`.

    Half a billion parameters are not drawn at random only to be overwritten.
    """
    with torch.device("meta"):
        model = ARCHITECTURES[config.model_type][1](config)
    for module in model.modules():
        if isinstance(module, GroupSwap):  # its table of positions is in no file
            module.pos_freqs = sinusoid(*module.pos_freqs.shape)
    return model


def unwrapped(model: nn.Module) -> nn.Module:
    """The model inside a distributed or compiled wrapper, to ask it for its config."""
    inner = getattr(model, "module", model)
    return getattr(inner, "_orig_mod", inner)


def save_model(
    model: nn.Module, folder: str | Path, dtype: torch.dtype | None = None, max_shard: str | None = None
) -> None:
    """Write config.json and safetensors; `dtype` (e.g. float16) halves the file, `max_shard` as in `save_weights`."""
    save_weights(folder, model.state_dict(), config_dict(model.config), dtype, max_shard)


def load_model(folder: str | Path, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> nn.Module:
    """A model in eval mode from a folder of ours. Raises ValueError when config and weights do not fit together.

    Weights are mapped from the file where it has the wanted dtype and the device is the CPU.
    """
    model = build_empty(config_from_values(read_config(folder), Path(folder) / "config.json"))
    load_into(model, read_weights(folder), folder, TIED, assign=True)
    return model.to(device, dtype).eval()


def make_predictor(
    model: nn.Module,
    condition: Tensor,
    null_condition: Tensor | None = None,
    visible_length: VisibleLength = "full",
) -> Predictor:
    """The sampling loop's view of either architecture; see `PartitionPredictor` for `visible_length`."""
    if isinstance(model, PartitionTransformer):
        return PartitionPredictor(model, condition, null_condition, visible_length)
    return MaskedPredictor(model, condition, null_condition)
