"""`python -m benchmarks.floor`: how close a generation comes to what its operation counts allow on this machine.

The floor is the time that the multiply-adds of the transformer would take at the rate of a large matrix product,
measured in the same run; MB are those of the weights, read once per pass. Pictures of the bundled model, of one at the
published width with fewer layers, and texts of the bundled models at their recommended settings.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from benchmarks.network_timing import generate, now
from benchmarks.operations import generation_operations
from benchmarks.pgm_vs_maskgit import FULL, make, narrowed
from pgm.devices import resolve_device, resolve_dtype
from pgm.partition_transformer import PartitionTransformer
from pgm.sampling import SamplingConfig


def product_rate(
    device: torch.device,
    dtype: torch.dtype,
    size: int = 2048,
    repeats: int = 5,
    clock: Callable[[], float] | None = None,
) -> float:
    """Multiply-adds a second of a size x size matrix product, the best of `repeats`; clock: None = that on the wall."""
    clock = clock or partial(now, device)
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    seconds = []
    for _ in range(repeats + 1):
        began = clock()
        a @ b
        seconds.append(clock() - began)
    return size**3 / min(seconds[1:])


def achieved(
    model: PartitionTransformer,
    batch: int,
    config: SamplingConfig,
    device: torch.device,
    rate: float,
    runs: int,
    clock: Callable[[], float] | None = None,
) -> tuple[float, float, float]:
    """(seconds of a batch of pictures, seconds at the floor, share of the floor reached)."""
    length = model.config.length
    side = round(length**0.5)
    seconds = _median(lambda: generate(model, batch, config, side, device), runs, clock or partial(now, device))
    floor = batch * generation_operations(model.config, config, length) / rate
    return seconds, floor, floor / seconds


def achieved_text(
    pipeline: Any, batch: int, rate: float, runs: int, clock: Callable[[], float] | None = None
) -> tuple[float, float, float]:
    """As `achieved` for whole texts of a `TextPipeline`, without a prompt and at its recommended settings."""
    request = pipeline.request(num_texts=batch)

    def run() -> None:
        for _ in pipeline.steps(request):
            pass

    seconds = _median(run, runs, clock or partial(now, pipeline.device))
    config, length = pipeline.transformer.config, len(request.layout)
    given = config.length - length  # the end of the text behind its last cell
    floor = batch * generation_operations(config, request.sampling, length, given) / rate
    return seconds, floor, floor / seconds


def _median(run: Callable[[], None], runs: int, clock: Callable[[], float]) -> float:
    """Median seconds over `runs` calls after one that is discarded."""
    seconds = []
    for _ in range(runs + 1):
        began = clock()
        run()
        seconds.append(clock() - began)
    return statistics.median(seconds[1:])


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.floor", description=__doc__)
    parser.add_argument("--model", default="emoji64")
    parser.add_argument("--batch-sizes", type=int, nargs="*", default=[1, 4, 16], help="of the model; none: skip")
    parser.add_argument("--full-batch-sizes", type=int, nargs="*", default=[1, 4], help="at full width; none: skip")
    parser.add_argument("--text", nargs="*", default=["dictionary-pgm", "dictionary-mdlm"], help="text models")
    parser.add_argument("--text-batch-sizes", type=int, nargs="*", default=[1, 16], help="of those; none: skip")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cpu-time", action="store_true", help="count CPU seconds, for a busy machine and one thread")
    parser.add_argument("--device")
    args = parser.parse_args(argv)
    device = resolve_device(args.device)
    clock = time.process_time if args.cpu_time else partial(now, device)
    from pgm_image.pipeline import PGMPipeline
    from pgm_text.pipeline import TextPipeline

    print(f"{'model':<24} {'dtype':<9} {'batch':>5} {'G products':>10} {'MB':>7} {'s':>8} {'floor s':>8} reached")
    for name in args.dtypes:
        dtype = resolve_dtype(name, device, 0)
        rate = statistics.median(product_rate(device, dtype, clock=clock) for _ in range(3))
        print(f"a large product runs at {2e-9 * rate:.0f} GFLOP/s in {name}")

        def show(
            label: str,
            model: nn.Module,
            batch: int,
            found: tuple[float, float, float],
            name: str = name,
            rate: float = rate,
        ) -> None:
            seconds, floor, share = found
            size = sum(p.numel() * p.element_size() for p in model.parameters())
            line = f"{label:<24} {name:<9} {batch:>5} {floor * rate / 1e9:>10.1f} {size / 1e6:>7.1f}"
            print(f"{line} {seconds:>8.3f} {floor:>8.3f} {share:>7.0%}", flush=True)

        if args.batch_sizes:
            model = PGMPipeline.from_pretrained(args.model, device=device, dtype=dtype).transformer
            sampling = SamplingConfig(steps=16, guidance_scale=2.0)
            for batch in args.batch_sizes:
                show(args.model, model, batch, achieved(model, batch, sampling, device, rate, args.runs, clock))
        if args.full_batch_sizes:
            model = make(narrowed(FULL["PGM 12-12"], 1024, encoder_layers=2, decoder_layers=2), device, dtype)
            sampling = SamplingConfig(steps=32, guidance_scale=3.0)
            for batch in args.full_batch_sizes:
                found = achieved(model, batch, sampling, device, rate, args.runs, clock)
                show("width 1024, 2+2 layers", model, batch, found)
        for text in args.text:
            pipeline = TextPipeline.from_pretrained(text, device=device, dtype=dtype)
            for batch in args.text_batch_sizes:
                show(text, pipeline.transformer, batch, achieved_text(pipeline, batch, rate, args.runs, clock))


if __name__ == "__main__":
    main()
