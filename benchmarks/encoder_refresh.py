"""`python -m benchmarks.encoder_refresh PLOT`: is saving on the encoder or on guidance better than fewer steps?

The encoder: `encoder_refresh` of the sampler (`pgm.encoder_cache`, after arXiv 2505.19089). Guidance, after arXiv
2503.12450: every g-th step asks at once for the positions of g steps, and the later ones run the conditional rows only,
with the difference to the unconditional logits that was found ahead.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.baseline import noise_of
from benchmarks.scores import HEAD as SCORES_HEAD
from benchmarks.scores import Scores, real_side, score
from pgm.line_plot import Panel, draw
from pgm.models import make_predictor
from pgm.noise import Noise, draw_noise
from pgm.orders import fixed_order
from pgm.partition_transformer import PartitionTransformer, PartitionTransformerConfig
from pgm.predictors import Clean, Predictor
from pgm.sampling import SamplingConfig, sample
from pgm.schedules import step_counts
from pgm_image.evaluation.samples import pipeline_labels, to_array
from pgm_image.pipeline import PGMPipeline

POINTS = (
    "4", "6", "8", "12", "16", "32", "16:2", "16:4", "16:8", "16:16", "32:2", "32:4", "32:8", "32:32", "64:64", "16:1:4"
)  # fmt: skip


@dataclass(frozen=True)
class Point:
    """One setting and what it gave."""

    steps: int
    encoder: int = 1  # `encoder_refresh`
    guidance: int = 1  # every so many steps the unconditional rows run
    seconds: float = 0.0  # of the CPU, a picture
    operations: int = 0  # multiply-adds a picture
    scores: Scores = Scores()

    def sampling(self, pipe: PGMPipeline) -> SamplingConfig:
        """The model's recommended settings at so many steps."""
        return pipe.request(None, steps=self.steps, encoder_refresh=self.encoder).sampling

    def row(self) -> str:
        """A line of the table under `HEAD`."""
        return (
            f"{self.steps:>5} {self.encoder:>8} {self.guidance:>8} {self.operations / 1e9:>8.2f} "
            f"{1000 * self.seconds:>8.1f} {self.scores.cells()}"
        )


HEAD = f"{'steps':>5} {'encoder':>8} {'guidance':>8} {'G m-adds':>8} {'CPU ms':>8} {SCORES_HEAD}"


def parse_point(text: str) -> Point:
    """Steps, then every how many all codes are encoded and unconditional rows run: "16" is "16:1:1".

    Raises ValueError when both are saved on: the conditional rows would then be kept without the others.
    """
    steps, encoder, guidance = (*(int(number) for number in text.split(":")), 1, 1)[:3]
    if min(encoder, guidance) > 1:
        raise ValueError(f"a point can save on the encoder or on guidance, not on both, got {text!r}")
    return Point(steps, encoder, guidance)


class GuidanceAhead:
    """A predictor that runs the unconditional rows at every `every`-th call only, for rows of equal length."""

    def __init__(self, predictor: Predictor, every: int, order: Tensor, counts: Sequence[int]):
        """order: (B, L) positions in the order they become known; counts: how many of them at each call."""
        self.predictor, self.every, self.order, self.counts = predictor, every, order, counts
        self.length, self.special_ids, self.unknown_id = predictor.length, predictor.special_ids, predictor.unknown_id
        self.can_resample, self.can_guide, self.cost = False, predictor.can_guide, predictor.cost
        self._calls = 0
        self._difference: Tensor | None = None  # (B, L, V) conditional less unconditional logits, where found ahead

    def predict(
        self, clean: Clean, queries: Tensor, query_lengths: Tensor | None, guided: bool
    ) -> tuple[Tensor, Tensor | None]:
        index, known, asked = self._calls, clean.arrival.shape[1], queries.shape[1]
        self._calls += 1
        if not guided:
            return self.predictor.predict(clean, queries, query_lengths, False)
        if index % self.every and self._difference is not None:
            conditional, _ = self.predictor.predict(clean, queries, query_lengths, False)
            where = queries[:, :, None].expand_as(conditional)
            return conditional, conditional - self._difference.gather(1, where)
        steps = self.every - index % self.every
        ahead = self.order[:, known : known + sum(self.counts[index : index + steps])]
        conditional, unconditional = self.predictor.predict(clean, ahead, query_lengths, True)
        if self._difference is None:
            self._difference = conditional.new_zeros(len(queries), self.length, conditional.shape[2])
        self._difference.scatter_(1, ahead[:, :, None].expand_as(conditional), conditional - unconditional)
        return conditional[:, :asked], unconditional[:, :asked]


def generate(
    model: PartitionTransformer,
    classes: Tensor,
    styles: Tensor | None,
    noise: Noise,
    grid: tuple[int, int],
    config: SamplingConfig,
    guidance: int = 1,
) -> Tensor:
    """Codes (B, L) for labels (B,) by a fixed order; guidance: every so many steps the unconditional rows run."""
    nulls = torch.full_like(classes, -1)
    with torch.no_grad():
        condition = model.condition(classes, styles)
        null = model.condition(nulls, None if styles is None else nulls) if config.guidance_scale else None
    predictor = make_predictor(model, condition, null)
    if guidance > 1:
        order = fixed_order(config.order, grid, noise.order, noise.roll if config.roll else None).to(classes.device)
        counts = step_counts(config.schedule, order.shape[1], config.steps)
        predictor = GuidanceAhead(predictor, guidance, order, counts)
    *_, last = sample(predictor, noise, grid, config, classes.device)
    return last.codes


def operations(config: PartitionTransformerConfig, sampling: SamplingConfig, guidance: int = 1) -> int:
    """Multiply-adds of one picture in a fixed order, as `benchmarks.operations` counts them; guidance is constant."""
    counts = step_counts(sampling.schedule, config.length, sampling.steps)
    front = 1 + config.registers - config.registers // 2
    total = 0
    for index, queries in enumerate(counts):
        clean = front + sum(counts[:index])
        new = counts[index - 1] if index % sampling.encoder_refresh else clean
        passes = 2 if sampling.guidance_scale else 1
        if guidance > 1:
            passes, queries = (1, queries) if index % guidance else (2, sum(counts[index : index + guidance]))
        total += passes * _pass(config, new, clean, queries)
    return total


def _pass(config: PartitionTransformerConfig, new: int, clean: int, queries: int) -> int:
    """Multiply-adds of one row's pass that encodes `new` columns of `clean`."""
    width, mlp = config.width, 2 * config.mlp_ratio
    encoder = (4 + mlp) * new * width**2 + 2 * new * clean * width
    fetch = 2 * new * width**2 + 2 * queries * clean * width  # of swap and decoder layer, queries' own products apart
    own = (1 + config.decoder_layers * (2 + mlp)) * queries * width**2 + queries * width * config.vocab_size
    return config.encoder_layers * encoder + (1 + config.decoder_layers) * fetch + own


def plot(points: Sequence[Point]) -> str:
    """SVG of KID and class score against seconds: ordinary steps, and for each number of steps what saving gives."""
    series: dict[str, list[Point]] = {"fewer steps": []}
    for point in points:
        if point.encoder > 1:
            name = f"{point.steps} steps, encoder_refresh"
        else:
            name = "fewer steps" if point.guidance == 1 else f"{point.steps} steps, guidance ahead"
        series.setdefault(name, []).append(point)
    shown = {"KID x 1000": lambda p: p.scores.kid, "class recognised, %": lambda p: 100 * p.scores.class_top1}
    panels = []
    for label, value in shown.items():
        lines = {name: [(p.seconds, value(p)) for p in found] for name, found in series.items()}
        panels.append(Panel(lines, "CPU s a picture", label))
    return draw(panels)


def seconds_each(pipe: PGMPipeline, points: Sequence[Point], labels: Sequence[Tensor], rounds: int) -> list[float]:
    """Median CPU seconds of each point for one batch with these labels (B,), divided by B; all points in turn."""
    kept: list[list[float]] = [[] for _ in points]
    for _ in range(rounds):
        for found, point in zip(kept, points, strict=True):
            config = point.sampling(pipe)
            noise = noise_of(len(labels[0]), pipe.info.length, config)
            began = time.process_time()
            generate(pipe.transformer, *labels, noise, pipe.grid, config, point.guidance)
            found.append((time.process_time() - began) / len(labels[0]))
    return [statistics.median(found) for found in kept]


def pictures(pipe: PGMPipeline, point: Point, labels: Sequence[Tensor], seed: int, batch: int = 64) -> np.ndarray:
    """Pictures (n, S, S, 3) uint8 for labels (n,); picture i has seed `seed` + i."""
    drawn = []
    for start in range(0, len(labels[0]), batch):
        part = [label[start : start + batch] for label in labels]
        noise = draw_noise([seed + start + i for i in range(len(part[0]))], pipe.info.length)
        codes = generate(pipe.transformer, *part, noise, pipe.grid, point.sampling(pipe), point.guidance)
        drawn.append(to_array(pipe.decode(codes)))
    return np.concatenate(drawn)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encoder_refresh", description=__doc__)
    parser.add_argument("plot", type=Path, help="where the SVG goes")
    parser.add_argument("--model", default="emoji64", help="bundled model or folder")
    parser.add_argument("--data", default="data/emoji64", help="image shards that the scores compare with")
    parser.add_argument("--samples", type=int, default=474, help="pictures that the scores are of")
    parser.add_argument("--seed", type=int, default=0, help="of the first picture")
    parser.add_argument("--points", type=parse_point, nargs="+", default=[parse_point(p) for p in POINTS])
    parser.add_argument("--batch-size", type=int, default=16, help="pictures that are timed together")
    parser.add_argument("--rounds", type=int, default=5, help="timings of every point, in turn; medians are reported")
    args = parser.parse_args(argv)
    pipe = PGMPipeline.from_pretrained(args.model, device="cpu", dtype="float32")
    real = real_side(args.data, args.samples)
    labels = [torch.from_numpy(np.asarray(label)).long() for label in pipeline_labels(pipe, real.reference)]
    seconds = seconds_each(pipe, args.points, [label[: args.batch_size] for label in labels], args.rounds)
    print(HEAD)
    points = []
    for point, taken in zip(args.points, seconds, strict=True):
        work = operations(pipe.transformer.config, point.sampling(pipe), point.guidance)
        scores = score(pictures(pipe, point, labels, args.seed), real)
        points.append(replace(point, seconds=taken, operations=work, scores=scores))
        print(points[-1].row(), flush=True)
    args.plot.write_text(plot(points), encoding="utf-8")


if __name__ == "__main__":
    main()
