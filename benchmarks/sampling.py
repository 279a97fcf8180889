"""`python -m benchmarks.sampling`: PGM against a MaskGIT twin of the same width, depth, codes, steps and guidance.

The twin has random weights, which take the same time. Runs of both alternate, so that whatever else the machine does
touches both alike; medians are printed, with the ratio that the operation counts predict beside the measured one.
"""

import argparse
import statistics
from dataclasses import replace

from benchmarks.operations import generation_operations
from pgm.masked_transformer import MaskedTransformer, MaskedTransformerConfig
from pgm.partition_transformer import PartitionTransformerConfig
from pgm_image.benchmark import Timing, time_generation
from pgm_image.pipeline import PGMPipeline
from pgm_image.registry import DEFAULT_MODEL


def twin_config(config: PartitionTransformerConfig, side: int) -> MaskedTransformerConfig:
    """A masked transformer of the same width, depth and labels."""
    return MaskedTransformerConfig(
        codebook_size=config.mask_id,
        grid=side,
        width=config.width,
        layers=config.encoder_layers + config.decoder_layers,
        heads=config.heads,
        num_classes=config.num_classes,
        num_styles=config.num_styles,
    )


def twin_of(pipeline: PGMPipeline) -> PGMPipeline:
    """The pipeline with its transformer replaced by an untrained masked one of the same size."""
    network = MaskedTransformer(twin_config(pipeline.transformer.config, pipeline.grid[0]))
    info = replace(pipeline.info, architecture="maskgit", name=f"{pipeline.info.name} MaskGIT twin")
    return PGMPipeline(network.to(pipeline.device, pipeline.dtype), pipeline.tokenizer, info)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sampling", description=__doc__)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--guidance", type=float, default=2.0)
    parser.add_argument("--sampler", default="halton")
    parser.add_argument("--pairs", type=int, default=5, help="paired runs; medians are reported")
    parser.add_argument("--device")
    parser.add_argument("--dtype")
    args = parser.parse_args()
    pgm = PGMPipeline.from_pretrained(args.model, device=args.device, dtype=args.dtype)
    twin = twin_of(pgm)
    settings = {"steps": args.steps, "guidance_scale": args.guidance, "sampler": args.sampler}
    settings |= {"refine_rounds": 0, "encoder_refresh": 1}  # the twin has no encoder to refresh
    sampling, length = pgm.request(0, **settings).sampling, pgm.info.length
    counts = [generation_operations(p.transformer.config, sampling, length) for p in (pgm, twin)]
    print(f"{args.model}, {args.sampler}, {args.steps} steps, guidance {args.guidance}, {pgm.dtype}, {pgm.device}")
    print(f"operations per picture: PGM {counts[0] / 1e9:.2f} G, twin {counts[1] / 1e9:.2f} G multiply-adds")
    header = ("batch", "model", "images/s", "transformer", "choosing", "decoding", "transformer ratio", "predicted")
    print("  ".join(f"{name:>11}" for name in header))
    for size in args.batch_sizes:
        runs: list[list[Timing]] = [[], []]
        for _ in range(args.pairs):
            for timings, pipeline in zip(runs, (pgm, twin), strict=True):
                timings.append(time_generation(pipeline, size, repeats=1, **settings))
        ratio = statistics.median(b.transformer / a.transformer for a, b in zip(*runs, strict=True))
        for name, timings in zip(("PGM", "MaskGIT"), runs, strict=True):
            whole = statistics.median(t.sampling + t.decoding for t in timings)
            network = statistics.median(t.transformer for t in timings) / whole
            decoding = statistics.median(t.decoding for t in timings) / whole
            row = [
                str(size),
                name,
                f"{size / whole:.2f}",
                f"{network:.0%}",
                f"{1 - network - decoding:.0%}",
                f"{decoding:.0%}",
            ]
            row += [f"{ratio:.2f}x", f"{counts[1] / counts[0]:.2f}x"] if name == "PGM" else ["", ""]
            print("  ".join(f"{cell:>11}" for cell in row))


if __name__ == "__main__":
    main()
