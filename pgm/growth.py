"""Growing a trained model in depth: new blocks have zero gates, so the deeper model starts as the same function.

Training a shallow model first and deepening it later spends little compute on what a few layers can learn.
"""

import re

import torch
from torch import nn

_LAYER = re.compile(r"^(encoder\.blocks|decoder\.layers|transformer\.layers)\.(\d+)\.(.*)$")


def grow(small: nn.Module, large: nn.Module) -> None:
    """Copy `small` into `large`, a freshly built model that may have more layers in each stack.

    The small model's layers are spread evenly over the stack; those between stay as initialised, which is the
    identity (adaLN-zero). Afterwards both compute the same function. Raises ValueError when anything but the numbers
    of layers differs.
    """
    source, target = small.state_dict(), large.state_dict()
    depth = {stack: (_depth(source, stack), _depth(target, stack)) for stack in _stacks(target)}
    for stack, (few, many) in depth.items():
        if few > many:
            raise ValueError(f"cannot shrink {stack} from {few} to {many} layers")
    copied = {}
    for key, value in source.items():
        if match := _LAYER.match(key):
            stack, index, rest = match[1], int(match[2]), match[3]
            few, many = depth[stack]
            key = f"{stack}.{index * many // few}.{rest}"
        if key not in target or target[key].shape != value.shape:
            raise ValueError(f"{key} of shape {tuple(value.shape)} has no place in the larger model")
        copied[key] = value
    missing = [key for key in target if key not in copied and not _LAYER.match(key)]
    if missing:
        raise ValueError(f"the smaller model lacks {missing[0]}")
    with torch.no_grad():
        large.load_state_dict({**target, **copied})


def _stacks(state: dict) -> set[str]:
    return {match[1] for key in state if (match := _LAYER.match(key))}


def _depth(state: dict, stack: str) -> int:
    return len({m[2] for key in state if (m := _LAYER.match(key)) and m[1] == stack})
