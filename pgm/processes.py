"""Which of several processes this one is, under torchrun or accelerate launch, on GPUs or on CPUs."""

import os

import torch
from accelerate import PartialState


def process_state() -> PartialState:
    """accelerate's view of the processes. On its own it takes several processes without a GPU for one alone."""
    asked = os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes")
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    return PartialState(cpu=asked or (several and not torch.cuda.is_available()))
