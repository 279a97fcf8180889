"""`python -m benchmarks.pgm_vs_maskgit`: PGM 12-12 and 14-10 against MaskGIT 24, random weights, one precision for all.

On a GPU the full models are timed. On a CPU one layer of each kind is, and counted as often as the full model has it;
the width is halved until all rows fit into --minutes. Beside the measured speed-up stands the one that the operation
counts predict, for this width and for the published one, and below it where the time went.
"""

import argparse
import itertools
from dataclasses import dataclass, replace

import torch

from benchmarks.network_timing import Parts, now, time_parts, time_whole
from benchmarks.operations import Config, generation_operations, step_operations
from pgm.devices import resolve_device, resolve_dtype
from pgm.models import build
from pgm.sampling import SamplingConfig
from pgm.weights import config_dict
from pgm_image.public_models import masked, partition

SIDE = 32
FULL: dict[str, Config] = {
    "MaskGIT 24": masked("large", SIDE),
    "PGM 12-12": partition(12, 12),
    "PGM 14-10": partition(14, 10),
}
GPU_RUNS, GPU_DISCARDED = 10, 2  # as in the published code
CLAIM = "The paper claims 7.5x and 3.9x; its code runs MaskGIT in float32 but PGM in bf16, here all have one precision."


@dataclass(frozen=True)
class Case:
    """One row of settings."""

    batch: int
    sampling: SamplingConfig

    def __str__(self) -> str:
        guided = "guided" if self.sampling.guidance_scale else "-"
        return f"{self.batch:>5} {self.sampling.order:<10} {self.sampling.steps:>5} {guided:>8}"


def cases(batches: list[int], steps: list[int]) -> list[Case]:
    """All combinations of order, steps and guidance; guided passes run at all steps but the first."""
    grid = itertools.product(batches, ("halton", "confidence"), steps, (0.0, 3.0))
    return [
        Case(batch, SamplingConfig(steps=count, order=order, guidance_scale=scale))
        for batch, order, count, scale in grid
    ]


def narrowed(config: Config, width: int, **layers: int) -> Config:
    """The config at another width with heads of 64, and so many layers where given."""
    return replace(config, width=width, heads=max(1, width // 64), **layers)


def shallow(config: Config, width: int) -> Config:
    """One layer of each kind."""
    if hasattr(config, "encoder_layers"):
        return narrowed(config, width, encoder_layers=1, decoder_layers=1)
    return narrowed(config, width, layers=1)


def make(config: Config, device: torch.device, dtype: torch.dtype) -> torch.nn.Module:
    """A model with random weights, gates and heads that start at zero included."""
    torch.manual_seed(0)
    model = build(config_dict(config)).to(device, dtype).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.02)
    return model


def fitting_width(rows: list[Case], minutes: float, device: torch.device, dtype: torch.dtype) -> tuple[int, float]:
    """(width, multiply-adds a second): the largest of 1024, 512 and 256 at which all rows are expected to fit."""
    side = SIDE * SIDE
    config = shallow(FULL["MaskGIT 24"], 512)
    model = make(config, device, dtype)
    codes = torch.zeros(1, side, dtype=torch.int64)
    with torch.no_grad():
        prepared = model.prepare(model.condition(torch.zeros(1, dtype=torch.int64)))
        model.predict(codes, prepared)
        began = now(device)
        model.predict(codes, prepared)
        speed = step_operations(config, 0, side) / (now(device) - began)
    for width in (1024, 512, 256):
        models = [shallow(FULL[name], width) for name in ("MaskGIT 24", "PGM 12-12")]
        work = sum(case.batch * generation_operations(m, case.sampling, side) for m in models for case in rows)
        if work / speed < 60 * minutes:
            break
    return width, speed


def time_case(
    models: dict[str, torch.nn.Module], case: Case, device: torch.device, extrapolate: bool
) -> dict[str, tuple[float, Parts]]:
    """Seconds of a batch, and their parts, of each full model."""
    found: dict[str, tuple[float, Parts]] = {}
    if not extrapolate:
        for name, model in models.items():
            whole = time_whole(model, case.batch, case.sampling, SIDE, device, GPU_RUNS, GPU_DISCARDED)
            found[name] = whole, time_parts(model, case.batch, case.sampling, SIDE, device)
        return found
    masked_parts = time_parts(models["MaskGIT 24"], case.batch, case.sampling, SIDE, device)
    pgm_parts = time_parts(models["PGM 12-12"], case.batch, case.sampling, SIDE, device)
    for name, config in FULL.items():
        if name == "MaskGIT 24":
            parts = masked_parts.deeper(config.layers, 1)
        else:
            parts = pgm_parts.deeper(config.encoder_layers, config.decoder_layers)
        found[name] = parts.whole, parts
    return found


def predicted(name: str, configs: dict[str, Config], case: Case) -> float:
    """The speed-up over MaskGIT that the operation counts give."""
    work = [generation_operations(configs[which], case.sampling, SIDE * SIDE) for which in ("MaskGIT 24", name)]
    return work[0] / work[1]


def rate(name: str, configs: dict[str, Config], case: Case, parts: Parts) -> float:
    """Multiply-adds a second in the network."""
    return case.batch * generation_operations(configs[name], case.sampling, SIDE * SIDE) / (parts.whole - parts.rest)


def profile_line(name: str, configs: dict[str, Config], case: Case, parts: Parts) -> str:
    """Where the time of one model went, and how fast the network ran."""
    speed = rate(name, configs, case, parts)
    shares = " ".join(
        f"{part} {getattr(parts, part) / parts.whole:.0%}" for part in ("encoder", "swap", "decoder", "head", "rest")
    )
    return f"{name:<11} {2e-9 * speed:8.0f} GFLOP/s in the network; {shares}"


def verdict(measured: float, predicted: float, masked_rate: float, pgm_rate: float, rest: float) -> str:
    """Why a measured speed-up differs from the predicted one."""
    if measured >= 0.9 * predicted:
        return "as predicted"
    causes = []
    if pgm_rate < 0.9 * masked_rate:
        causes.append(f"its smaller matrices run at {pgm_rate / masked_rate:.0%} of MaskGIT's rate")
    if rest > 0.1:
        causes.append(f"{rest:.0%} of its time is outside the layers (choosing codes, modulations, embedding)")
    return "below the prediction: " + (" and ".join(causes) or "both causes small, timing noise")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pgm_vs_maskgit", description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--batch-sizes", type=int, nargs="+", help="default: 1 and 32 on a GPU, 1 on a CPU")
    parser.add_argument("--minutes", type=float, default=5.0, help="on a CPU, about how long it may take")
    parser.add_argument("--width", type=int, help="width of all models, a multiple of 64 (default: 1024 if it fits)")
    parser.add_argument("--device")
    parser.add_argument("--dtype")
    args = parser.parse_args(argv)
    device = resolve_device(args.device)
    dtype = resolve_dtype(args.dtype, device, 500_000_000)
    extrapolate = device.type != "cuda"
    rows = cases(args.batch_sizes or ([1] if extrapolate else [1, 32]), args.steps)
    width = args.width or 1024
    if extrapolate and not args.width:
        width, speed = fitting_width(rows, args.minutes, device, dtype)
        print(f"one layer of MaskGIT runs at {2e-9 * speed:.0f} GFLOP/s here: width {width}")
    configs = {name: narrowed(config, width) for name, config in FULL.items()}
    if extrapolate:
        built = {name: shallow(FULL[name], width) for name in ("MaskGIT 24", "PGM 12-12")}
        print("one layer of each kind measured, counted as often as the full model has it; VQ decoding left out")
    else:
        built = configs
        print("full models; VQ decoding left out")
    models = {name: make(config, device, dtype) for name, config in built.items()}
    print(f"{device}, {str(dtype).removeprefix('torch.')}, width {width}, {SIDE}x{SIDE} codes. {CLAIM}\n")
    header = f"{'batch':>5} {'order':<10} {'steps':>5} {'guidance':>8} {'model':<11} {'images/s':>9} {'latency s':>9}"
    print(f"{header} {'speed-up':>8} {'predicted':>9} {'at 1024':>8}")
    notes = []
    for case in rows:
        found = time_case(models, case, device, extrapolate)
        base, base_parts = found["MaskGIT 24"]
        masked_rate = rate("MaskGIT 24", configs, case, base_parts)
        for name, (seconds, parts) in found.items():
            line = f"{case} {name:<11} {case.batch / seconds:>9.3f} {seconds:>9.2f}"
            if name != "MaskGIT 24":
                measured, expected = base / seconds, predicted(name, configs, case)
                line += f" {measured:>7.2f}x {expected:>8.2f}x {predicted(name, FULL, case):>7.2f}x"
                share = masked_rate, rate(name, configs, case, parts), parts.rest / parts.whole
                notes.append(f"{case} {name}: {verdict(measured, expected, *share)}")
            notes.append(f"{case} {profile_line(name, configs, case, parts)}")
            print(line, flush=True)
    print("\nwhere the time went\n" + "\n".join(notes))


if __name__ == "__main__":
    main()
