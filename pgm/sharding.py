"""Training state split over processes (FSDP, arXiv 2304.11277): parameters, gradients, moments and averages.

A checkpoint is a folder that every process writes its part of; it is read back by any number of processes. The file
checkpoint.json names the folder that is complete.
"""

import json
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from diffusers.training_utils import EMAModel
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

POINTER = "checkpoint.json"
# Layers of a block that compute its modulation before the block itself runs, and so are gathered on their own.
MODULATIONS = ("adaLN_modulation", "mlp")


def shard(model: nn.Module, device: torch.device) -> None:
    """Split the parameters of a model over all processes, in place, block by block."""
    if not dist.is_initialized():  # one process alone, say to go on with a checkpoint that many wrote
        backend = "nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for blocks in (module for module in model.modules() if isinstance(module, nn.ModuleList)):
        for block in blocks:
            for name in MODULATIONS:
                if hasattr(block, name):
                    fully_shard(getattr(block, name), mesh=mesh)
            fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)


def whole(value: Tensor) -> Tensor:
    """A tensor put together again from all processes, which must all ask; an ordinary tensor as it is."""
    return value.full_tensor() if isinstance(value, DTensor) else value


def whole_weights(model: nn.Module, ema: EMAModel | None) -> dict[str, Tensor]:
    """All weights on the CPU of the first process (averaged ones if there are), nothing on the others."""
    state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    for index, parameter in enumerate(model.parameters()):
        tensor = whole(ema.shadow_params[index]).cpu() if ema else state.get(names[id(parameter)][0])
        if state:  # copied: what was gathered may be a view of something larger, which no file can hold
            state.update(dict.fromkeys(names[id(parameter)], tensor.clone()))
    return state


def save_shards(
    folder: Path, model: nn.Module, optimizer: Optimizer, ema: EMAModel | None, progress: dict[str, Any]
) -> None:
    """Write a sharded checkpoint and point to it once it is whole. progress: JSON values, "step" among them."""
    target = folder / f"checkpoint-{progress['step']:08d}"
    if (folder / POINTER).exists() and json.loads((folder / POINTER).read_text())["folder"] == target.name:
        return  # this step is saved already
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that it overwrites what a killed run left
        dcp.save(_state(model, optimizer, ema), checkpoint_id=target)
    dist.barrier()
    if dist.get_rank() == 0:
        values = {"folder": target.name, "averages": ema.optimization_step if ema else 0, **progress}
        partial = folder / f"{POINTER}.tmp"
        partial.write_text(json.dumps(values) + "\n")
        os.replace(partial, folder / POINTER)
        for older in folder.glob("checkpoint-*"):
            if older != target:
                shutil.rmtree(older)
    dist.barrier()


def read_progress(folder: Path) -> dict[str, Any] | None:
    """The progress of the last whole checkpoint, or None."""
    path = folder / POINTER
    return json.loads(path.read_text()) if path.exists() else None


def load_shards(folder: Path, model: nn.Module, optimizer: Optimizer, ema: EMAModel | None) -> None:
    """Fill model, optimiser and averages, already sharded over however many processes, from the last checkpoint."""
    progress = read_progress(folder)
    state = _state(model, optimizer, ema)
    dcp.load(state, checkpoint_id=folder / progress["folder"])
    set_state_dict(
        model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
    )  # the averages are filled in place
    if ema:
        ema.optimization_step = progress["averages"]


def _state(model: nn.Module, optimizer: Optimizer, ema: EMAModel | None) -> dict[str, Any]:
    weights, moments = get_state_dict(model, optimizer)
    averages = {f"{index:05d}": average for index, average in enumerate(ema.shadow_params)} if ema else {}
    return {"model": weights, "optimizer": moments, "averages": averages}
