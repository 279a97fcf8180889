"""Seconds of one generation by part of the network, of models with random weights (cost does not depend on weights)."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from pgm.masked_transformer import MaskedTransformer
from pgm.models import make_predictor
from pgm.refinement import noise_for
from pgm.sampling import SamplingConfig, sample


@dataclass(frozen=True)
class Parts:
    """Seconds of one batch, by part; encoder and decoder are all their layers together."""

    encoder: float  # with the embedding; of a masked transformer: all layers
    swap: float
    decoder: float
    head: float
    rest: float  # choosing codes, modulations

    @property
    def whole(self) -> float:
        return self.encoder + self.swap + self.decoder + self.head + self.rest

    def deeper(self, encoder: float, decoder: float) -> "Parts":
        """The same with so many times the layers: every layer of a kind does the same work."""
        return Parts(self.encoder * encoder, self.swap, self.decoder * decoder, self.head, self.rest)


PARTS = {  # methods of a Partition Transformer by the part they are timed as
    "embed": "encoder",
    "encode_embedded": "encoder",
    "_swap": "swap",
    "_decode_layers": "decoder",
    "_head": "head",
}


def now(device: torch.device) -> float:
    """Seconds on the clock, once the device has done what it was asked."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


@contextmanager
def timed(model: nn.Module, device: torch.device) -> Iterator[dict[str, float]]:
    """Seconds spent in each part of the model meanwhile; on a GPU waiting for each part costs some itself."""
    spent = {"encoder": 0.0, "swap": 0.0, "decoder": 0.0, "head": 0.0}

    def counted(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **settings: Any) -> Any:
            began = now(device)
            result = function(*arguments, **settings)
            spent[part] += now(device) - began
            return result

        return run

    if isinstance(model, MaskedTransformer):
        timed_calls = [(layer, "forward", "encoder") for layer in model.transformer.layers]
        timed_calls.append((model.head, "forward", "head"))
    else:
        timed_calls = [(model, name, part) for name, part in PARTS.items()]
    for owner, name, part in timed_calls:
        setattr(owner, name, counted(part, getattr(owner, name)))
    try:
        yield spent
    finally:
        for owner, name, _ in timed_calls:
            delattr(owner, name)  # uncovers the method of the class


def generate(model: nn.Module, batch: int, config: SamplingConfig, side: int, device: torch.device) -> None:
    """One generation of `batch` pictures of side x side codes, without decoding."""
    labels = torch.zeros(batch, dtype=torch.int64, device=device)
    with torch.no_grad():
        condition = model.condition(labels)
        null = model.condition(torch.full_like(labels, -1)) if config.guidance_scale else None
    length = side * side
    noise = noise_for(config, list(range(batch)), length)
    for _ in sample(make_predictor(model, condition, null), noise, (side, side), config, device):
        pass


def time_whole(
    model: nn.Module, batch: int, config: SamplingConfig, side: int, device: torch.device, runs: int, discarded: int
) -> float:
    """Median seconds of a batch over `runs` generations after `discarded` ones."""
    seconds = []
    for _ in range(discarded + runs):
        began = now(device)
        generate(model, batch, config, side, device)
        seconds.append(now(device) - began)
    return statistics.median(seconds[discarded:])


def time_parts(
    model: nn.Module, batch: int, config: SamplingConfig, side: int, device: torch.device, runs: int = 1
) -> Parts:
    """Median over `runs` of the seconds of each part."""
    rows = []
    for _ in range(runs):
        with timed(model, device) as spent:
            began = now(device)
            generate(model, batch, config, side, device)
            whole = now(device) - began
        rows.append({**spent, "rest": whole - sum(spent.values())})
    return Parts(**{name: statistics.median(row[name] for row in rows) for name in rows[0]})
