"""Models on disk: config.json beside safetensors, in shards that ordinary git can carry.

One sentence is said of every way in which such a folder can be broken.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

import torch
from huggingface_hub import save_torch_state_dict
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

MAX_SHARD = "9MB"
Config = TypeVar("Config")


def save_weights(
    folder: str | Path,
    state: dict[str, Tensor],
    config: dict[str, Any],
    dtype: torch.dtype | None = None,
    max_shard: str | None = None,
) -> None:
    """Write config.json and model*.safetensors into `folder` (made if needed), floating tensors as `dtype` if given.

    max_shard: size of a file, e.g. "2GB"; what ordinary git can carry unless given.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    kept = {
        k: v.detach().cpu().to(dtype) if dtype and v.is_floating_point() else v.detach().cpu() for k, v in state.items()
    }
    save_torch_state_dict(kept, folder, max_shard_size=max_shard or MAX_SHARD)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def read_config(folder: str | Path) -> dict[str, Any]:
    """config.json of a model folder. Raises ValueError naming the file when it is missing or not JSON."""
    path = Path(folder) / "config.json"
    if not path.is_file():
        raise ValueError(f"no model at {str(folder)!r}: config.json is missing")
    return _read_object(path)


def read_weights(folder: str | Path) -> dict[str, Tensor]:
    """All tensors of a model folder, memory-mapped. Raises ValueError naming the file that is missing or broken."""
    folder = Path(folder)
    index = folder / "model.safetensors.index.json"
    names = ["model.safetensors"]
    if index.is_file():
        shards = _read_object(index).get("weight_map")
        if not isinstance(shards, dict):
            raise ValueError(f"{index} lists no weights; download it again")
        names = sorted(set(shards.values()))
    state: dict[str, Tensor] = {}
    for name in names:
        state.update(read_safetensors(folder / name))
    return state


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Tensors of one file; a missing, truncated or foreign file is a ValueError that says what it really is."""
    if not path.is_file():
        raise ValueError(f"weights file {path} is missing; download the model again")
    try:
        with safe_open(path, framework="pt") as file:
            return {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is not a usable weights file: {what_it_is(path)}; download it again") from error


def _read_object(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid JSON ({error}); download it again") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold a JSON object, not a {type(values).__name__}")
    return values


def what_it_is(path: Path) -> str:
    """In a few words, what a file that cannot be read as weights is."""
    head = path.open("rb").read(64)
    if not head:
        return "it is empty"
    if head.startswith(b"version https://git-lfs"):
        return "it is a Git LFS pointer, not the weights themselves"
    if head.lstrip()[:1] == b"<":
        return "it is an HTML page"
    return "it is truncated or damaged"


def config_from_dict(kind: type[Config], values: dict[str, Any], source: str | Path = "config.json") -> Config:
    """Build a config dataclass. Raises ValueError for unknown or missing fields."""
    known = {field.name for field in fields(kind)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(
            f"{source}: unknown field {unknown[0]!r} for {kind.__name__}; known are {', '.join(sorted(known))}"
        )
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"{source}: {error}") from error


def load_into(
    model: nn.Module,
    state: dict[str, Tensor],
    source: str | Path,
    tied: Iterable[str] = (),
    assign: bool = False,
) -> None:
    """Load a state dict completely or not at all.

    tied: keys that share one tensor, of which one is enough; assign: the model takes the tensors as they are, with
    their dtype and memory, instead of copying them into its own (which may then be on the meta device). Raises
    ValueError with the first missing and unexpected key, the counts and the first wrong shape; the model is unchanged
    then.
    """
    own = model.state_dict()
    names = set(tied) & set(own)
    excused = names if names & set(state) else set()
    missing = [key for key in own if key not in state and key not in excused]
    unexpected = [key for key in state if key not in own]
    if missing or unexpected:
        parts = [f"{len(missing)} keys are missing (first: {missing[0]})"] if missing else []
        parts += [f"{len(unexpected)} are unexpected (first: {unexpected[0]})"] if unexpected else []
        raise ValueError(f"{source} does not fit the model its config describes: {' and '.join(parts)} of {len(own)}")
    wrong = [key for key in state if state[key].shape != own[key].shape]
    if wrong:
        key = wrong[0]
        raise ValueError(
            f"{source}: {len(wrong)} tensors have another shape (first: {key} is {tuple(state[key].shape)}, "
            f"should be {tuple(own[key].shape)})"
        )
    stored = [key for key in sorted(names) if key in state]
    if any(not _same_tensor(state[key], state[stored[0]]) for key in stored[1:]):
        raise ValueError(f"{source}: {' and '.join(stored)} differ, but the model has one tensor for both")
    model.load_state_dict(state, strict=False, assign=assign)
    if assign and stored:
        shared = model.get_parameter(stored[0])
        for key in names - {stored[0]}:
            owner, _, name = key.rpartition(".")
            setattr(model.get_submodule(owner), name, shared)


def _same_tensor(a: Tensor, b: Tensor) -> bool:
    return a.data_ptr() == b.data_ptr() or torch.equal(a, b)


def config_dict(config: Any) -> dict[str, Any]:
    """A config dataclass as what is written to config.json."""
    return asdict(config)
