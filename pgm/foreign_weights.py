"""Weights files of other projects (.pt, .pth, .ckpt, .safetensors) -> plain state dicts, without running their code.

torch's restricted unpickler does the reading. Besides tensors and plain containers it meets only stand-ins for the
configs and callbacks that training frameworks leave in such files; any other name is refused before anything is built.
Tensors are mapped from the file: what is not used, such as an optimizer's state, is never read from the disk.
"""

import pickle
import re
import threading
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

from pgm.weights import read_safetensors, what_it_is

CONTAINERS = ("model_state_dict", "model", "state_dict", "ema")  # where public files keep weights, in this preference
WRAPPERS = ("module.", "_forward_module.")  # put in front by data-parallel training; "_orig_mod." by torch.compile
# Names that reading accepts because a stand-in takes their place; the code behind them is neither imported nor run.
STAND_IN_PACKAGES = (
    "omegaconf",
    "numpy",
    "typing",
    "tokenizers",
    "transformers",
    "pytorch_lightning",
    "lightning",
    "lightning_fabric",
    "lightning_utilities",
    "torchmetrics",
)
# Single names from packages that hold dangerous ones too.
STAND_IN_NAMES = (
    "argparse.Namespace",
    "builtins.object",
    "builtins.int",
    "builtins.float",
    "builtins.bool",
    "builtins.bytes",
    "builtins.str",
    "builtins.tuple",
    "copyreg._reconstructor",
    "_operator.getitem",
    "operator.getitem",
    "pathlib.PosixPath",
    "pathlib.PurePosixPath",
    "pytorch_lightning.callbacks.model_checkpoint.ModelCheckpoint",
    "pytorch_lightning.callbacks.early_stopping.EarlyStopping",
)
PLAIN_CONTAINERS = {
    "builtins.dict": dict,
    "builtins.list": list,
    "builtins.set": set,
    "collections.defaultdict": lambda *_: {},  # the restricted unpickler fills nothing but plain dictionaries
}
# What torch raises for files that are cut off, overwritten or something else.
DAMAGE = (RuntimeError, EOFError, OSError, LookupError, TypeError, AttributeError, AssertionError, ValueError)
_reading = threading.Lock()  # the list of accepted names belongs to the whole process while a file is read


class UnsafeWeightsError(ValueError):
    """The file names something that reading it must not build."""


class StandIn:
    """What is left of an object whose class is not run: its class name, its arguments and its state."""

    class_name = ""

    def __new__(cls, *arguments: Any) -> "StandIn":
        self = super().__new__(cls)
        self.__dict__["arguments"] = arguments
        return self

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.__dict__["state"] = state

    def __repr__(self) -> str:
        return f"<stand-in for {self.class_name}>"


def read_state_dict(path: str | Path) -> dict[str, Tensor]:
    """The weights in a file, found in its container, without wrapper prefixes; tensors are mapped, not copied.

    Raises ValueError in one sentence naming the file when it is missing, is no weights file or holds no weights, and
    `UnsafeWeightsError`, a ValueError, when reading it would build something else than tensors.
    """
    path = Path(path)
    if path.suffix == ".safetensors":
        return strip_prefixes(read_safetensors(path), path.name)
    content = read_torch_file(path)
    while isinstance(content, Mapping):
        inner = next((content[name] for name in CONTAINERS if isinstance(content.get(name), Mapping)), None)
        if inner is None:
            break
        content = inner
    if not isinstance(content, Mapping) or not any(isinstance(value, Tensor) for value in content.values()):
        raise ValueError(f"{path.name} holds no state dict (looked for {', '.join(CONTAINERS)} and a bare one)")
    state = {str(key): value.detach() for key, value in content.items() if isinstance(value, Tensor)}
    return strip_prefixes(state, path.name)


def read_torch_file(path: str | Path, also_accept: Sequence[str] = ()) -> Any:
    """Everything in a torch file, foreign objects as stand-ins; raises as `read_state_dict`.

    also_accept: full names ("package.module.Class") to replace by stand-ins, too; nothing of theirs is run either.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"checkpoint {str(path)!r} does not exist")
    with path.open("rb") as file:
        head = file.read(4)
    mapped = zipfile.is_zipfile(path)
    if not mapped and head[:1] != b"\x80":  # neither a whole zip nor a pickle of torch before 1.6
        raise ValueError(f"{path.name} is not a usable weights file: {what_it_is(path)}; download it again")
    try:
        names = set(get_unsafe_globals_in_checkpoint(path)) if mapped else set()
        refused = sorted(name for name in names if name not in also_accept and not _accepted(name))
        if refused:
            raise _refusal(path, refused)
        accepted = [
            (PLAIN_CONTAINERS.get(name) or type("StandIn", (StandIn,), {"class_name": name}), name)
            for name in sorted(names | set(STAND_IN_NAMES))
        ]
        with _reading, ExitStack() as stack:
            stack.enter_context(safe_globals(accepted))
            return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except UnsafeWeightsError:
        raise
    except pickle.UnpicklingError as error:
        # Of torch's message, which goes on to advise switching its checks off, only the name it met is of use.
        raise _refusal(path, re.findall(r"GLOBAL ([\w.]+)", str(error))[:1]) from error
    except DAMAGE as error:
        raise ValueError(
            f"{path.name} is truncated or not a torch file ({type(error).__name__}); download it again"
        ) from error


def bare_name(key: str, wrappers: Sequence[str] = WRAPPERS) -> str:
    """A key without `_orig_mod.` anywhere and `wrappers` in front, however nested."""
    short = key.replace("_orig_mod.", "")
    while prefix := next((wrapper for wrapper in wrappers if short.startswith(wrapper)), None):
        short = short.removeprefix(prefix)
    return short


def strip_prefixes(
    state: Mapping[str, Tensor], source: str = "the file", wrappers: Sequence[str] = WRAPPERS
) -> dict[str, Tensor]:
    """All keys as `bare_name`; ValueError where two become one."""
    stripped: dict[str, Tensor] = {}
    for key, value in state.items():
        short = bare_name(key, wrappers)
        if short in stripped:
            raise ValueError(f"{source} holds {short!r} twice once wrapper prefixes are removed, the second is {key!r}")
        stripped[short] = value
    return stripped


def submodule(state: Mapping[str, Tensor], prefixes: Sequence[str]) -> tuple[dict[str, Tensor], int]:
    """The part of a state dict under the first of `prefixes` that it has, and how many keys lie outside of it.

    A state dict without any of them comes back whole, with 0.
    """
    for prefix in prefixes:
        part = {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
        if part:
            return part, len(state) - len(part)
    return dict(state), 0


def _accepted(name: str) -> bool:
    return name in STAND_IN_NAMES or name in PLAIN_CONTAINERS or name.split(".")[0] in STAND_IN_PACKAGES


def _refusal(path: Path, names: Sequence[str]) -> UnsafeWeightsError:
    if names:
        return UnsafeWeightsError(
            f"{path.name} is refused: it needs {', '.join(names)}, which reading tensors does not"
        )
    return UnsafeWeightsError(f"{path.name} is refused: it is not a torch file, or holds more than tensors")
