"""`python -m benchmarks.text_sampling`: tokens a second of the text models at equal steps, PGM beside the masked ones.

Runs of all models alternate in one process, so that whatever else the machine does touches all alike; medians are
printed, with the speed-up over the first masked model and the ratio of the token positions that ran.
"""

import argparse
import statistics
import time
from collections.abc import Sequence

from pgm_text.pipeline import TextPipeline
from pgm_text.registry import load
from pgm_text.request import SAMPLERS

MODELS = ("dictionary-mdlm", "dictionary-pgm", "dictionary-rmdm")


def time_texts(
    pipeline: TextPipeline, count: int, steps: int, seed: int, sampler: str = "uniform"
) -> tuple[float, int, int]:
    """(seconds, tokens generated, positions that ran per text) of `count` whole texts."""
    began = time.perf_counter()
    for step in pipeline.generate_steps(num_texts=count, steps=steps, seed=seed, sampler=sampler):
        last = step
    return time.perf_counter() - began, last.known.numel(), last.computed


def measure(
    names: Sequence[str], count: int, steps: int, runs: int, device: str | None = None, sampler: str = "uniform"
) -> dict[str, tuple[float, int]]:
    """Model -> (tokens a second, positions per text): medians of `runs` rounds after one that is discarded."""
    pipelines = {name: load(name, device) for name in names}
    rates: dict[str, list[float]] = {name: [] for name in names}
    positions = {}
    for seed in range(runs + 1):
        for name, pipeline in pipelines.items():
            seconds, tokens, positions[name] = time_texts(pipeline, count, steps, seed, sampler)
            rates[name].append(tokens / seconds)
    return {name: (statistics.median(rates[name][1:]), positions[name]) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.text_sampling", description=__doc__)
    parser.add_argument("--models", nargs="+", default=MODELS, help="the first is what the others are compared with")
    parser.add_argument("--texts", type=int, default=32, help="in one batch (default 32)")
    parser.add_argument("--steps", type=int, nargs="+", default=[16, 32, 62])
    parser.add_argument("--sampler", default="uniform", choices=SAMPLERS, help="order of the tokens (default uniform)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--device")
    args = parser.parse_args()
    print(f"{'steps':>5} {'model':16} {'tokens/s':>9} {'speed-up':>9} {'positions':>10} {'fewer':>6}")
    for steps in args.steps:
        found = measure(args.models, args.texts, steps, args.runs, args.device, args.sampler)
        rate, positions = found[args.models[0]]
        for name, (own, ran) in found.items():
            print(f"{steps:5} {name:16} {own:9.0f} {own / rate:8.2f}x {ran:10} {positions / ran:5.2f}x", flush=True)


if __name__ == "__main__":
    main()
