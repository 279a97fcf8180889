"""`python -m benchmarks.baseline`: our sampler against a straightforward one, which is also its correctness oracle.

The straightforward one recomputes at every step what no step changes, attends through padding masks that mask
nothing, and runs the unconditional pass at every step, weight 0 included: as published samplers do. In float32 both
give the same codes. Runs of both alternate; medians are printed.
"""

import argparse
import statistics

import torch
from torch import Tensor

from benchmarks.network_timing import now
from benchmarks.pgm_vs_maskgit import FULL, make, narrowed
from pgm.devices import resolve_device
from pgm.models import make_predictor
from pgm.noise import draw_noise
from pgm.partition_transformer import PartitionTransformer
from pgm.predictors import Clean, Predictor, evaluating
from pgm.sampling import SamplingConfig, planned_steps, sample


class PlainPredictor:
    """A Partition Transformer without any of the exact savings."""

    can_resample = False
    unknown_id = None
    can_guide = True

    def __init__(self, model: PartitionTransformer, classes: Tensor, styles: Tensor | None):
        """classes, styles: (B,) labels."""
        self.model, self.length, self.special_ids = model, model.config.length, model.config.special_ids
        nulls = torch.full_like(classes, -1)
        self._classes = torch.cat((classes, nulls))
        self._styles = None if styles is None else torch.cat((styles, nulls))

    def predict(
        self, clean: Clean, queries: Tensor, query_lengths: Tensor | None, guided: bool
    ) -> tuple[Tensor, Tensor | None]:
        """As `Predictor.predict`."""
        batch = len(queries)
        known = clean.codes.gather(1, clean.arrival).clamp_min(0)
        tokens = torch.cat((known.new_full((batch, 1), self.model.config.bos_id), known), dim=1)
        positions = torch.cat((known.new_zeros(batch, 1), clean.arrival + 1), dim=1)
        lengths = torch.full((batch,), tokens.shape[1]) if clean.lengths is None else clean.lengths + 1
        lengths, content = lengths.to(tokens.device), queries + 1
        query_lengths = torch.full((batch,), queries.shape[1]) if query_lengths is None else query_lengths
        twice = [torch.cat((t, t)) for t in (tokens, positions, lengths, content, query_lengths.to(tokens.device))]
        tokens, positions, lengths, content, query_lengths = twice
        with evaluating(self.model):
            prepared = self.model.prepare(self.model.condition(self._classes, self._styles))
            memory = self.model.encode(tokens, positions, prepared, lengths)
            logits = self.model.decode(memory, content, prepared, query_lengths)
        return (logits[:batch], logits[batch:]) if guided else (logits[:batch], None)

    def cost(self, known: int, queries: int) -> int:
        """As `Predictor.cost`."""
        config = self.model.config
        return config.registers - config.registers // 2 + 1 + known + queries + config.extra_queries


def predictors(model: PartitionTransformer, classes: Tensor, styles: Tensor | None) -> tuple[Predictor, Predictor]:
    """(ours, the plain one), guided."""
    nulls = torch.full_like(classes, -1)
    with torch.no_grad():
        conditions = model.condition(classes, styles), model.condition(nulls, None if styles is None else nulls)
    return make_predictor(model, *conditions), PlainPredictor(model, classes, styles)


def run(predictor: Predictor, batch: int, side: int, config: SamplingConfig, device: torch.device) -> Tensor:
    """Codes (B, L) of seeds 0..batch-1."""
    length = side * side
    steps = planned_steps(config, length) if config.order == "confidence" else 0
    noise = draw_noise(list(range(batch)), length, steps)
    *_, last = sample(predictor, noise, (side, side), config, device)
    return last.codes


def compare(
    ours: PartitionTransformer,
    plain: PartitionTransformer,
    batch: int,
    side: int,
    config: SamplingConfig,
    device: torch.device,
    pairs: int,
) -> tuple[float, float, float]:
    """Median seconds of ours and of the plain one, and the median of the ratios of paired runs.

    The models have the same weights; `ours` may have another dtype. Raises AssertionError when float32 runs of both
    give different codes. A prediction is included, conditions too: what a caller waits for.
    """
    classes = torch.arange(batch, device=device) % max(1, ours.config.num_classes)
    styles = torch.zeros_like(classes) if ours.config.num_styles else None
    seconds: list[tuple[float, float]] = []
    for _ in range(pairs + 1):
        row = []
        codes = []
        for model, index in ((ours, 0), (plain, 1)):
            began = now(device)
            codes.append(run(predictors(model, classes, styles)[index], batch, side, config, device))
            row.append(now(device) - began)
        if next(ours.parameters()).dtype == torch.float32:
            assert torch.equal(*codes), "the exact savings changed the codes"
        seconds.append((row[0], row[1]))
    kept = seconds[1:]
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
        show(args.model, "float32", batch, compare(model, model, batch, side, config, device, args.pairs))
    if args.full_layers:
        layers = {"encoder_layers": args.full_layers, "decoder_layers": args.full_layers}
        wide = make(narrowed(FULL["PGM 12-12"], 1024, **layers), device, torch.float32)
        config = SamplingConfig(steps=args.full_steps, guidance_scale=3.0)
        side, name = round(wide.config.length**0.5), f"width 1024, {args.full_layers}+{args.full_layers} layers"
        show(name, "float32", 1, compare(wide, wide, 1, side, config, device, max(1, args.pairs // 2)))
        half = make(narrowed(FULL["PGM 12-12"], 1024, **layers), device, torch.bfloat16)
        show(name, "bfloat16", 1, compare(half, wide, 1, side, config, device, max(1, args.pairs // 2)))


if __name__ == "__main__":
    main()
