"""`python -m benchmarks.training_step`: a training step of ours against the plain one, and against the product rate.

Both train copies of one model on the same batches in turn; medians are printed, and the largest difference of their
losses. Both compute in bfloat16 where the device has it in hardware, else in float32; "share" is that of the rate of
a large matrix product in the same format, measured in the same minutes. See `benchmarks.plain_training` for what the
plain one does.
"""

import argparse
import copy
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.floor import product_rate
from benchmarks.network_timing import now
from benchmarks.operations import training_operations
from benchmarks.pgm_vs_maskgit import make
from benchmarks.plain_training import PlainTraining
from pgm.attention import training_backend
from pgm.devices import resolve_device
from pgm.objectives import training_loss
from pgm.partition_transformer import PartitionTransformer, PartitionTransformerConfig
from pgm.partitioning import draw_groups
from pgm.training import Batch, Trainer, TrainingConfig


@dataclass(frozen=True)
class Comparison:
    """Medians over pairs of steps."""

    ours: float  # seconds a picture
    plain: float
    ratio: float  # of the steps of a pair: plain / ours
    difference: float  # largest between the losses of a pair, in nats
    rate: float  # multiply-adds a second of a large product


def random_batch(config: PartitionTransformerConfig, size: int, index: int) -> Batch:
    """A batch of random codes in random groups, a pure function of the index."""
    generator = torch.Generator().manual_seed(index)

    def labels(count: int) -> Tensor:
        return torch.randint(-1, max(1, count), (size,), generator=generator)

    codes = torch.randint(0, min(config.special_ids), (size, config.length), generator=generator)
    hidden = draw_groups(size, config.length, generator)
    return {
        "codes": codes,
        "hidden": hidden,
        "classes": labels(config.num_classes),
        "styles": labels(config.num_styles),
    }


def batch_loss(model: nn.Module, batch: Batch) -> Tensor:
    """The loss that `python -m pgm_image train` minimises."""
    return training_loss(model, batch["codes"], batch["hidden"], batch["classes"], batch["styles"])


def compare(
    model: PartitionTransformer, training: TrainingConfig, pairs: int, discarded: int, cpu_time: bool = False
) -> Comparison:
    """Train copies of the model by both for `discarded + pairs` steps; the first ones compile and warm up.

    cpu_time: seconds of this process's CPU, not of the clock. All of a step counts: making the batch, clipping,
    optimiser and averages, too. That freed memory is kept (`pgm.kept_memory`) serves the plain step as well.
    """
    config, device = model.config, next(model.parameters()).device
    clock = time.process_time if cpu_time else partial(now, device)

    def batch(index: int, process: int) -> Batch:
        return random_batch(config, training.batch_size, index)

    def timed(step: Callable[[], float | None]) -> tuple[float, float]:
        began = clock()
        loss = step()
        return clock() - began, loss

    own = copy.deepcopy(model)
    own.set_attention_backend(training_backend(device))
    rows, rates = [], []
    with tempfile.TemporaryDirectory() as folder:
        plain, trainer = PlainTraining(model, training), Trainer(own, batch_loss, batch, training, folder)
        dtype = torch.bfloat16 if trainer.config.precision == "bf16" else torch.float32
        for index in range(discarded + pairs):
            ours = timed(trainer.train_step)
            rows.append((ours, timed(lambda index=index: plain.step(batch(index, 0)))))
            rates.append(product_rate(device, dtype, clock=clock))
    kept = rows[discarded:]
    return Comparison(
        ours=statistics.median(a for (a, _), _ in kept) / training.batch_size,
        plain=statistics.median(b for _, (b, _) in kept) / training.batch_size,
        ratio=statistics.median(b / a for (a, _), (b, _) in kept),
        difference=max(abs(a - b) for (_, a), (_, b) in rows),
        rate=statistics.median(rates[discarded:]),
    )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training_step", description=__doc__)
    parser.add_argument("--model", default="emoji64", help="bundled model whose codes and labels are trained on")
    parser.add_argument("--recipe", default="emoji64", help="training settings")
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 4], help="of encoder and of decoder")
    parser.add_argument("--width", type=int, help="default: the recipe's")
    parser.add_argument("--batch-size", type=int, help="pictures a step (default: the recipe's)")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--discarded", type=int, default=3, help="pairs before those that count")
    parser.add_argument("--threads", type=int, help="CPU threads")
    parser.add_argument("--cpu-time", action="store_true", help="count CPU seconds, for a busy machine and one thread")
    parser.add_argument("--device")
    args = parser.parse_args(argv)
    if args.threads:
        torch.set_num_threads(args.threads)
    device = resolve_device(args.device)
    from pgm.models import config_from_values
    from pgm.weights import read_config
    from pgm_image.recipes import find_recipe
    from pgm_image.registry import find_folder

    recipe = find_recipe(args.recipe)
    training = replace(recipe.training, batch_size=args.batch_size or recipe.training.batch_size)
    data = config_from_values(read_config(find_folder(args.model) / "transformer"))
    header = f"{'width':>5} {'layers':<7} {'batch':>5} {'G m-adds':>8} {'ours s':>8} {'share':>6}"
    print(f"{header} {'plain s':>8} {'share':>6} {'speed-up':>8} {'rate GFLOP/s':>12} losses differ by")
    for layers in args.layers:
        width = args.width or recipe.sizes["width"]
        config = replace(
            data, width=width, heads=max(1, width // 64), encoder_layers=layers, decoder_layers=layers, dropout=0.0
        )
        model = make(config, device, torch.float32)
        found = compare(model, training, args.pairs, args.discarded, args.cpu_time)
        work = training_operations(config)
        ours, plain = (work / seconds / found.rate for seconds in (found.ours, found.plain))
        line = f"{width:>5} {f'{layers}+{layers}':<7} {training.batch_size:>5} {work / 1e9:>8.2f} {found.ours:>8.4f}"
        line += f" {ours:>6.0%} {found.plain:>8.4f} {plain:>6.0%} {found.ratio:>7.2f}x {2e-9 * found.rate:>12.0f}"
        print(f"{line} {found.difference:.1e}", flush=True)


if __name__ == "__main__":
    main()
