"""`python -m benchmarks.floor`: how close a generation comes to what its operation counts allow on this machine.

The floor is the time that the multiply-adds of the transformer would take at the rate of a large matrix product,
measured in the same run; MB are those of the weights, read once per pass.
"""

import argparse
import statistics

import torch

from benchmarks.network_timing import now, time_whole
from benchmarks.operations import generation_operations
from benchmarks.pgm_vs_maskgit import FULL, make, narrowed
from pgm.devices import resolve_device, resolve_dtype
from pgm.partition_transformer import PartitionTransformer
from pgm.sampling import SamplingConfig


def product_rate(device: torch.device, dtype: torch.dtype, size: int = 2048, repeats: int = 5) -> float:
    """Multiply-adds a second of a size x size matrix product, the best of `repeats`."""
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    seconds = []
    for _ in range(repeats + 1):
        began = now(device)
        a @ b
        seconds.append(now(device) - began)
    return size**3 / min(seconds[1:])


def achieved(
    model: PartitionTransformer, batch: int, config: SamplingConfig, device: torch.device, rate: float, runs: int
) -> tuple[float, float, float]:
    """(seconds of a batch, seconds at the floor, share of the floor reached)."""
    length = model.config.length
    side = round(length**0.5)
    seconds = time_whole(model, batch, config, side, device, runs, discarded=1)
    floor = batch * generation_operations(model.config, config, length) / rate
    return seconds, floor, floor / seconds


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.floor", description=__doc__)
    parser.add_argument("--model", default="emoji64")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--full-batch-sizes", type=int, nargs="*", default=[1, 4], help="at full width; none: skip")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--device")
    args = parser.parse_args(argv)
    device = resolve_device(args.device)
    from pgm_image.pipeline import PGMPipeline

    bundled = PGMPipeline.from_pretrained(args.model, device=device, dtype="float32").transformer
    print(f"{'model':<24} {'dtype':<9} {'batch':>5} {'G products':>10} {'MB':>7} {'s':>8} {'floor s':>8} reached")
    for name in args.dtypes:
        dtype = resolve_dtype(name, device, 0)
        rate = statistics.median(product_rate(device, dtype) for _ in range(3))
        print(f"a large product runs at {2e-9 * rate:.0f} GFLOP/s in {name}")
        cases = [
            (args.model, bundled.to(dtype), b, SamplingConfig(steps=16, guidance_scale=2.0)) for b in args.batch_sizes
        ]
        if args.full_batch_sizes:
            config = narrowed(FULL["PGM 12-12"], 1024, encoder_layers=2, decoder_layers=2)
            wide = make(config, device, dtype)
            sampling = SamplingConfig(steps=32, guidance_scale=3.0)
            cases += [("width 1024, 2+2 layers", wide, b, sampling) for b in args.full_batch_sizes]
        for label, model, batch, sampling in cases:
            seconds, floor, share = achieved(model, batch, sampling, device, rate, args.runs)
            work = batch * generation_operations(model.config, sampling, model.config.length)
            size = sum(p.numel() * p.element_size() for p in model.parameters())
            line = (
                f"{label:<24} {name:<9} {batch:>5} {work / 1e9:>10.1f} {size / 1e6:>7.1f} {seconds:>8.3f} {floor:>8.3f}"
            )
            print(f"{line} {share:>7.0%}", flush=True)


if __name__ == "__main__":
    main()
