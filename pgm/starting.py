"""Starting a run from trained weights, with a fresh optimiser and with batches that those weights have not met.

A batch is a function of a seed and its number. Under the seed of the run that made the weights, a new run would meet
that run's batches once more, examples, groups and all, and learn them by heart instead of the data.
"""

import json
import zlib
from collections.abc import Callable
from pathlib import Path

from torch import nn

from pgm.models import load_model
from pgm.processes import process_state
from pgm.sharding import POINTER
from pgm.training import CHECKPOINT, TrainingConfig

FILE = "start.json"  # in a run's folder: the seed of its batches, for when it goes on


def start(
    model: nn.Module,
    weights: Path | None,
    run: Path,
    training: TrainingConfig,
    take: Callable[[nn.Module, nn.Module], None],
) -> int:
    """Give `model` the weights of a model folder, unless there are none or the run in folder `run` has a checkpoint.

    take(trained, model) copies them. Returns the seed to draw batches with: the config's, or, for a run that started
    from weights, one that follows from both. Raises what `load_model` and `take` raise.
    """
    record = run / FILE
    if (run / (POINTER if training.shard else CHECKPOINT)).exists():
        return json.loads(record.read_text())["batch_seed"] if record.exists() else training.seed
    first = process_state().is_main_process
    if weights is None:
        if first:
            record.unlink(missing_ok=True)
        return training.seed
    trained = load_model(weights)
    take(trained, model)
    seed = (training.seed + checksum(trained)) % 2**31
    if first:
        run.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps({"batch_seed": seed}) + "\n")
        print(f"started from {weights} with a fresh optimiser")
    return seed


def checksum(model: nn.Module) -> int:
    """CRC-32 of all weights in float32, in order of their names."""
    total = 0
    for _, value in sorted(model.state_dict().items()):
        total = zlib.crc32(value.float().cpu().contiguous().numpy(), total)
    return total
