"""Reads the public PGM and MDLM text checkpoints: Lightning files with pickled configs.

Such a file names classes to be built while it is read. We let torch's restricted unpickler (weights_only=True) do the
reading and admit, besides tensors and plain containers, only the names listed here; each of them becomes an inert
stand-in that keeps what it was given and can do nothing. Any other name is refused before a single object is built.
Tensors are mapped from the file, so a multi-gigabyte checkpoint costs memory only for the tensors that are used.
"""

from __future__ import annotations

import re
import threading
import zipfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

# Packages whose classes appear in the public files: their names are admitted, their code is never imported.
STAND_IN_PACKAGES = frozenset(
    {
        "omegaconf",
        "transformers",
        "tokenizers",
        "typing",
        "numpy",
        "pytorch_lightning",
        "lightning",
        "lightning_fabric",
        "lightning_utilities",
        "torchmetrics",
    }
)
# Single names from packages that hold dangerous ones too. All become stand-ins except the plain containers below.
STAND_IN_NAMES = frozenset(
    {
        "builtins.object",
        "builtins.int",
        "builtins.float",
        "builtins.str",
        "builtins.bool",
        "builtins.bytes",
        "builtins.tuple",
        "copyreg._reconstructor",
        "_operator.getitem",
        "operator.getitem",
        "pathlib.PosixPath",
        "pathlib.PurePosixPath",
    }
)
CONTAINERS = {
    "builtins.dict": dict,
    "builtins.list": list,
    "builtins.set": set,
    "collections.defaultdict": defaultdict,
}

_PREFIXES = re.compile(r"^(?:_forward_module\.|module\.|backbone\.)*")
_BUFFERS = ("rotary_emb",)  # stored with the weights but not averaged
_reading = threading.Lock()  # the list of admitted names belongs to the whole process while a file is read


class UnsafeCheckpointError(ValueError):
    """The file names something that reading it must not build."""


class StandIn:
    """What is left of an object of a class we do not run: its class name, its arguments and its state."""

    class_name = ""

    def __new__(cls, *arguments: Any) -> StandIn:
        self = super().__new__(cls)
        self.__dict__["arguments"] = arguments
        return self

    def __init__(self, *arguments: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.__dict__["state"] = state

    def __repr__(self) -> str:
        return f"<stand-in for {self.class_name}>"


def read_container(path: str | Path, *, also_admit: Sequence[str] = ()) -> dict[str, Any]:
    """The whole dictionary of a checkpoint file, foreign objects replaced by stand-ins, tensors mapped from the file.

    also_admit: further full names ("package.module.Class") to accept as stand-ins; nothing of theirs is run either.
    Raises FileNotFoundError, ValueError for a file that is not a readable checkpoint, UnsafeCheckpointError for a name
    not admitted.
    """
    path = Path(path)
    _check_file(path)
    try:
        names = sorted(get_unsafe_globals_in_checkpoint(path))
        refused = [name for name in names if not _admitted(name) and name not in also_admit]
        if refused:
            raise UnsafeCheckpointError(
                f"{path} is refused: reading it would build {', '.join(refused)}. If you know these to be harmless, "
                "pass their names as also_admit (they are then replaced by stand-ins)"
            )
        admitted = [(CONTAINERS.get(name) or type("StandIn", (StandIn,), {"class_name": name}), name) for name in names]
        with _reading, ExitStack() as stack:
            stack.enter_context(safe_globals(admitted))
            content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except UnsafeCheckpointError:
        raise
    except UnpicklingError as error:
        raise UnsafeCheckpointError(f"{path} is refused: {str(error).splitlines()[0]}") from error
    except (
        RuntimeError,
        EOFError,
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
        AssertionError,
        UnicodeError,
    ) as error:
        raise ValueError(
            f"{path} cannot be read as a checkpoint, download it again ({type(error).__name__})"
        ) from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, not the dictionary of a checkpoint")
    return content


def _admitted(name: str) -> bool:
    package = name.split(".")[0]
    return name in CONTAINERS or name in STAND_IN_NAMES or package in STAND_IN_PACKAGES


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint at {path}")
    with open(path, "rb") as file:
        head = file.read(64)
    if not head:
        raise ValueError(f"{path} is empty, download it again")
    if head.startswith(b"version https://git-lfs"):
        raise ValueError(f"{path} is a Git LFS pointer, not the checkpoint itself, download it again")
    if head.lstrip().startswith((b"<", b"{")):
        raise ValueError(f"{path} is a web page or a text file, not a checkpoint, download it again")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not a (whole) zip-format PyTorch checkpoint, download it again")


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


def strip_prefixes(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Names without `_orig_mod.` and any leading `module.` and `backbone.`; two equal names are refused."""
    stripped: dict[str, Tensor] = {}
    for name, tensor in state_dict.items():
        short = _PREFIXES.sub("", name.replace("_orig_mod.", ""))
        if short in stripped:
            raise ValueError(f"two tensors are called {short} once prefixes are removed, the second is {name}")
        stripped[short] = tensor
    return stripped


def name_ema(raw: Mapping[str, Tensor], averages: Sequence[Tensor], order: Sequence[str]) -> dict[str, Tensor]:
    """Names for the nameless EMA list, given the parameters in registration order; checks length and shapes."""
    order = [_PREFIXES.sub("", name) for name in order]
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


def read_lightning_checkpoint(path: str | Path, *, also_admit: Sequence[str] = ()) -> LightningCheckpoint:
    """Read a public text checkpoint: raw weights, EMA weights by name (length and shapes checked), plain config.

    Raises what read_container raises, and ValueError naming the file where its parts do not fit together.
    """
    content = read_container(path, also_admit=also_admit)
    state_dict = content.get("state_dict")
    if not isinstance(state_dict, dict) or not state_dict:
        raise ValueError(f"{path} has no state_dict, it is not a Lightning checkpoint")
    if not all(isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in state_dict.items()):
        raise ValueError(f"{path}: state_dict must map names to tensors")
    hyper_parameters = plain_config(content.get("hyper_parameters") or {})
    average = content.get("ema")
    try:
        raw = strip_prefixes(state_dict)
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
