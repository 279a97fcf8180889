"""`python -m benchmarks.baseline`: our sampler against the plain one, which is also its correctness oracle.

Runs of both alternate; medians are printed. See `benchmarks.plain_sampler` for what the plain one does.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from benchmarks.network_timing import now
from benchmarks.pgm_vs_maskgit import FULL, make, narrowed
from benchmarks.plain_sampler import plain_sample
from pgm.devices import resolve_device
from pgm.models import make_predictor
from pgm.noise import Noise
from pgm.partition_transformer import PartitionTransformer
from pgm.refinement import noise_for
from pgm.sampling import SamplingConfig, sample


def our_sample(
    model: PartitionTransformer,
    classes: Tensor,
    styles: Tensor | None,
    noise: Noise,
    grid: tuple[int, int],
    config: SamplingConfig,
) -> Tensor:
    """As `plain_sample`."""
    nulls = torch.full_like(classes, -1)
    with torch.no_grad():
        condition = model.condition(classes, styles)
        null = model.condition(nulls, None if styles is None else nulls) if config.guidance_scale else None
    *_, last = sample(make_predictor(model, condition, null), noise, grid, config, classes.device)
    return last.codes


def noise_of(batch: int, length: int, config: SamplingConfig) -> Noise:
    """Noise of seeds 0..batch-1."""
    return noise_for(config, list(range(batch)), length)


def compare(
    ours: PartitionTransformer,
    plain: PartitionTransformer,
    batch: int,
    side: int,
    config: SamplingConfig,
    device: torch.device,
    pairs: int,
    cpu_time: bool = False,
) -> tuple[float, float, float]:
    """Median seconds of ours and of the plain one, and the median of the ratios of paired runs.

    The models have the same weights; `ours` may have another dtype. Raises AssertionError when the likeliest codes of
    both differ in float32; of drawn ones a few may, which fall on the edge between two codes. Conditions and noise are
    included in the seconds: what a caller waits for. cpu_time: seconds of this process's CPU, not of the clock.
    """
    clock = time.process_time if cpu_time else partial(now, device)
    classes = torch.arange(batch, device=device) % max(1, ours.config.num_classes)
    styles = torch.zeros_like(classes) if ours.config.num_styles else None

    def timed(
        sampler: Callable[..., Tensor], model: PartitionTransformer, config: SamplingConfig
    ) -> tuple[float, Tensor]:
        began = clock()
        codes = sampler(model, classes, styles, noise_of(batch, side * side, config), (side, side), config)
        return clock() - began, codes

    likeliest = replace(config, temperature=0.0)
    codes = timed(our_sample, ours, likeliest)[1], timed(plain_sample, plain, likeliest)[1]  # this warms up, too
    if next(ours.parameters()).dtype == torch.float32:
        assert torch.equal(*codes), "the exact savings changed the codes"
    kept = [(timed(our_sample, ours, config)[0], timed(plain_sample, plain, config)[0]) for _ in range(pairs)]
    return (
        statistics.median(a for a, _ in kept),
        statistics.median(b for _, b in kept),
        statistics.median(b / a for a, b in kept),
    )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baseline", description=__doc__)
    parser.add_argument("--model", default="emoji64", help="bundled model to compare on")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--guidance", type=float, default=2.0)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--full-layers", type=int, default=1, help="encoder and decoder layers at full width, 0: skip")
    parser.add_argument("--full-steps", type=int, default=32)
    parser.add_argument("--cpu-time", action="store_true", help="count CPU seconds, for a busy machine and one thread")
    parser.add_argument("--device")
    args = parser.parse_args(argv)
    device = resolve_device(args.device)
    from pgm_image.pipeline import PGMPipeline

    print(f"{'model':<24} {'dtype':<9} {'batch':>5} {'ours s':>8} {'plain s':>8} {'speed-up':>8}")

    def show(name: str, dtype: str, batch: int, found: tuple[float, float, float]) -> None:
        print(f"{name:<24} {dtype:<9} {batch:>5} {found[0]:>8.2f} {found[1]:>8.2f} {found[2]:>7.2f}x", flush=True)

    model = PGMPipeline.from_pretrained(args.model, device=device, dtype="float32").transformer
    config = SamplingConfig(steps=args.steps, guidance_scale=args.guidance)
    for batch in args.batch_sizes:
        side = round(model.config.length**0.5)
        show(
            args.model, "float32", batch, compare(model, model, batch, side, config, device, args.pairs, args.cpu_time)
        )
    if args.full_layers:
        layers = {"encoder_layers": args.full_layers, "decoder_layers": args.full_layers}
        wide = make(narrowed(FULL["PGM 12-12"], 1024, **layers), device, torch.float32)
        config = SamplingConfig(steps=args.full_steps, guidance_scale=3.0)
        side, name = round(wide.config.length**0.5), f"width 1024, {args.full_layers}+{args.full_layers} layers"
        show(name, "float32", 1, compare(wide, wide, 1, side, config, device, max(1, args.pairs // 2), args.cpu_time))
        half = make(narrowed(FULL["PGM 12-12"], 1024, **layers), device, torch.bfloat16)
        show(name, "bfloat16", 1, compare(half, wide, 1, side, config, device, max(1, args.pairs // 2), args.cpu_time))


if __name__ == "__main__":
    main()
