"""`python -m pgm_image benchmark`: seconds per picture of a model on this machine, and where the time goes."""

import argparse
import json
import statistics
import time
from dataclasses import asdict, dataclass

import torch

from pgm.encoder_cache import EncoderCache
from pgm_image.pipeline import PGMPipeline
from pgm_image.registry import DEFAULT_MODEL


@dataclass(frozen=True)
class Timing:
    """Medians over repeats, in seconds per batch."""

    model: str
    device: str
    dtype: str
    batch_size: int
    steps: int
    sampling: float  # transformer and choosing
    transformer: float  # the part of it spent in the network
    decoding: float
    images_per_second: float  # decoding included


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--steps", type=int)
    parser.add_argument("--sampler")
    parser.add_argument("--guidance", type=float)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device")
    parser.add_argument("--dtype")
    parser.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    """Time every batch size and print a table or JSON lines."""
    pipeline = PGMPipeline.from_pretrained(args.model, device=args.device, dtype=args.dtype)
    settings = {"steps": args.steps, "sampler": args.sampler, "guidance_scale": args.guidance}
    for size in args.batch_sizes:
        timing = time_generation(pipeline, size, args.repeats, **settings)
        if args.json:
            print(json.dumps(asdict(timing)))
            continue
        whole = timing.sampling + timing.decoding
        print(
            f"{timing.model} on {timing.device} in {timing.dtype}, batch {size}, {timing.steps} steps: "
            f"{whole:.3f} s, {timing.images_per_second:.2f} images/s "
            f"(transformer {timing.transformer / whole:.0%}, decoding {timing.decoding / whole:.0%}, rest choosing)"
        )
    return 0


def time_generation(pipeline: PGMPipeline, batch_size: int, repeats: int = 5, **settings) -> Timing:
    """Time `repeats` generations of `batch_size` pictures after one to warm up; settings as for `generate`."""
    request = pipeline.request([i % len(pipeline.classes) for i in range(batch_size)], **settings)
    device = pipeline.device
    spent = 0.0
    parts = ("embed", "encode_embedded", "decode", "predict")
    methods = [(pipeline.transformer, name) for name in parts if hasattr(pipeline.transformer, name)]
    methods += [(EncoderCache, name) for name in ("encode", "decode")]  # with encoder_refresh
    originals = [vars(owner).get(name) for owner, name in methods]  # None: a method of the owner's class

    def timed(function):
        def wrapper(*args, **kwargs):
            nonlocal spent
            start = _now(device)
            result = function(*args, **kwargs)
            spent += _now(device) - start
            return result

        return wrapper

    rows = []
    for owner, name in methods:
        setattr(owner, name, timed(getattr(owner, name)))
    try:
        for _ in range(repeats + 1):
            spent = 0.0
            start = _now(device)
            for step in pipeline.steps(request):
                last = step
            sampled = _now(device)
            pipeline.decode(last.codes)
            rows.append((sampled - start, spent, _now(device) - sampled))
    finally:
        for (owner, name), original in zip(methods, originals, strict=True):
            if original is None:
                delattr(owner, name)  # uncovers the method of the class
            else:
                setattr(owner, name, original)
    sampling, transformer, decoding = (statistics.median(column) for column in zip(*rows[1:], strict=True))
    return Timing(
        pipeline.info.name, str(device), str(pipeline.dtype).removeprefix("torch."), batch_size, last.total,
        sampling, transformer, decoding, batch_size / (sampling + decoding),
    )  # fmt: skip


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
