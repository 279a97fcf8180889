"""Reads the public PGM and MDLM text checkpoints: Lightning files with pickled configs and a nameless EMA list.

`pgm.foreign_weights` does the reading: foreign classes become inert stand-ins, tensors are mapped from the file, so a
multi-gigabyte checkpoint costs memory only for the tensors that are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from pgm.foreign_weights import WRAPPERS, StandIn, bare_name, read_torch_file, strip_prefixes

NETWORK_PREFIXES = (*WRAPPERS, "backbone.")  # the network is a part of the Lightning module
_BUFFERS = ("rotary_emb",)  # stored with the weights but not averaged


def read_container(path: str | Path, *, also_accept: Sequence[str] = ()) -> dict[str, Any]:
    """The whole dictionary of a checkpoint file; arguments and errors are those of `read_torch_file`."""
    content = read_torch_file(path, also_accept)
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, not the dictionary of a checkpoint")
    return content


def plain_config(value: Any) -> Any:
    """A pickled omegaconf tree of stand-ins -> dictionaries, lists and values; other stand-ins become their repr."""
    if isinstance(value, StandIn):
        state = getattr(value, "state", None)
        if isinstance(state, dict) and "_content" in state:
            return plain_config(state["_content"])
        if isinstance(state, dict) and "_val" in state:
            return plain_config(state["_val"])
        return repr(value)
    if isinstance(value, Mapping):
        return {str(key): plain_config(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_config(item) for item in value]
    return value


@dataclass(frozen=True)
class LightningCheckpoint:
    """Parameters by name, without the `backbone.` prefix; the config as plain values."""

    raw: dict[str, Tensor]  # the weights after the last step
    ema: dict[str, Tensor] | None  # averaged weights, to sample and evaluate with; buffers are those of `raw`
    config: dict[str, Any]  # hyper_parameters["config"], plain
    vocab_size: int | None
    global_step: int | None
    ema_updates: int | None

    @property
    def weights(self) -> dict[str, Tensor]:
        """Averaged weights where the file has them, else the raw ones."""
        return self.raw if self.ema is None else self.ema


def name_ema(raw: Mapping[str, Tensor], averages: Sequence[Tensor], order: Sequence[str]) -> dict[str, Tensor]:
    """Names for the nameless EMA list, given the parameters in registration order; checks length and shapes."""
    order = [bare_name(name, NETWORK_PREFIXES) for name in order]
    if len(averages) != len(order):
        raise ValueError(f"the EMA list holds {len(averages)} tensors, the network has {len(order)} parameters")
    for name, tensor in zip(order, averages, strict=True):
        if name not in raw:
            raise ValueError(f"the EMA list is in the order of another network: there is no parameter {name}")
        if tensor.shape != raw[name].shape:
            raise ValueError(
                f"EMA tensor for {name} has shape {tuple(tensor.shape)}, the parameter has {tuple(raw[name].shape)}"
            )
    buffers = {name: tensor for name, tensor in raw.items() if name not in set(order)}
    return {**dict(zip(order, averages, strict=True)), **buffers}


def ema_param_order(raw: Mapping[str, Tensor]) -> list[str]:
    """Names of the parameters in registration order: a state dict keeps it, so only the buffers have to go."""
    return [name for name in raw if name.split(".")[0] not in _BUFFERS]


def read_lightning_checkpoint(path: str | Path, *, also_accept: Sequence[str] = ()) -> LightningCheckpoint:
    """Read a public text checkpoint: raw weights, EMA weights by name (length and shapes checked), plain config.

    Raises what `read_container` raises, and ValueError naming the file where its parts do not fit together.
    """
    content = read_container(path, also_accept=also_accept)
    state_dict = content.get("state_dict")
    if not isinstance(state_dict, dict) or not state_dict:
        raise ValueError(f"{path} has no state_dict, it is not a Lightning checkpoint")
    if not all(isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in state_dict.items()):
        raise ValueError(f"{path}: state_dict must map names to tensors")
    hyper_parameters = plain_config(content.get("hyper_parameters") or {})
    average = content.get("ema")
    try:
        raw = strip_prefixes(state_dict, "it", NETWORK_PREFIXES)
        ema = None
        if isinstance(average, dict):
            shadows = average.get("shadow_params")
            if not isinstance(shadows, list) or not all(isinstance(shadow, Tensor) for shadow in shadows):
                raise ValueError("its EMA entry has no list of tensors")
            ema = name_ema(raw, shadows, ema_param_order(raw))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return LightningCheckpoint(
        raw=raw,
        ema=ema,
        config=hyper_parameters.get("config") or {},
        vocab_size=hyper_parameters.get("vocab_size"),
        global_step=content.get("global_step"),
        ema_updates=average.get("num_updates") if isinstance(average, dict) else None,
    )
