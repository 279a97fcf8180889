"""`python -m benchmarks.twins PGM MASKGIT --plot PLOT`: a partition model beside its masked twin, quality and cost.

Twins have the same codes and labels, and should have seen the same pictures as often. Both draw the same labels from
the same seeds with the first model's recommended settings, but every code is encoded anew (`encoder_refresh` 1, masked
models have no other way) and drawn once (`refine_rounds` 0). Batches of both alternate, so that whatever else the
machine does touches both alike. Each pair of points is kept as soon as it is known; the same command goes on there.
"""

import argparse
import hashlib
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.operations import generation_operations
from benchmarks.scores import HEAD as SCORES_HEAD
from benchmarks.scores import Scores, real_side, score
from pgm.line_plot import Panel, draw
from pgm.orders import order_names
from pgm_image.evaluation.command import check_numbers, check_packages, check_writable
from pgm_image.evaluation.evaluate import RealSide
from pgm_image.evaluation.report import describe_protocol
from pgm_image.evaluation.samples import check_image_size, pipeline_labels, to_array
from pgm_image.pipeline import PGMPipeline
from pgm_image.request import Request

KINDS = ("PGM", "MaskGIT")
SHARED = ("classes", "styles", "codebook_size", "grid", "image_size")
VARIED = ("order", "steps", "confidence_counts")  # of the sampling settings, between points

Twins = tuple[PGMPipeline, PGMPipeline]  # partition model, masked model


@dataclass(frozen=True)
class Point:
    """One model in one order and number of steps, and what that gave."""

    model: str  # of KINDS
    order: str
    steps: int
    computed: int  # codes run through the network, a picture, as the sampler counts them; guidance passes included
    operations: int  # multiply-adds a picture
    seconds: float  # of the CPU, a picture, without decoding
    decoding: float  # likewise
    scores: Scores

    @property
    def images_per_second(self) -> float:
        """Of one core, decoding included."""
        return 1 / (self.seconds + self.decoding)

    def row(self) -> str:
        """A line of the table under `HEAD`."""
        return (
            f"{self.model:<8} {self.order:<10} {self.steps:>5} {self.computed:>7} {self.operations / 1e9:>8.2f} "
            f"{1000 * self.seconds:>8.1f} {self.images_per_second:>8.2f} {self.scores.cells()} "
            f"{self.scores.kid_std:>6.1f}"
        )


HEAD = (
    f"{'model':<8} {'order':<10} {'steps':>5} {'codes':>7} {'G m-adds':>8} {'CPU ms':>8} {'images/s':>8} {SCORES_HEAD} "
    f"{'KID +-':>6}"
)


@dataclass
class Drawn:
    """What one model drew for a point, batch by batch."""

    pictures: list[np.ndarray] = field(default_factory=list)  # (B, S, S, 3) uint8
    seconds: list[float] = field(default_factory=list)  # of the CPU, a picture
    decoding: list[float] = field(default_factory=list)
    computed: int = 0


def check_twins(pgm: PGMPipeline, masked: PGMPipeline) -> None:
    """ValueError, in one sentence, unless they are a partition and a masked model of the same labels and codes."""
    first, second = pgm.info, masked.info
    if (first.architecture, second.architecture) != ("pgm", "maskgit"):
        raise ValueError(
            "the models must be a partition model ('pgm') and a masked one ('maskgit'), in this order, got "
            f"{first.name!r} ({first.architecture!r}) and {second.name!r} ({second.architecture!r})"
        )
    differing = [name for name in SHARED if getattr(first, name) != getattr(second, name)]
    codebooks = [pipe.tokenizer.quantizer.codebook for pipe in (pgm, masked)]
    if not differing and not torch.equal(*codebooks):
        differing = ["codebook"]
    if differing:
        raise ValueError(
            f"the models must share {', '.join(SHARED)} and codebook, {first.name!r} and {second.name!r} differ in "
            f"{', '.join(differing)}"
        )


def requests(twins: Twins, labels: Sequence[np.ndarray | None], seed: int, order: str, steps: int) -> list[Request]:
    """The same request for both, of labels (n,) and seeds from `seed`: only the counts of codes by confidence, as
    published for each kind, may differ by one a step. ValueError for settings that the models do not take.
    """
    classes, styles = (None if label is None else label.tolist() for label in labels)
    request = twins[0].request(
        classes, style=styles, seed=seed, sampler=order, steps=steps, encoder_refresh=1, refine_rounds=0
    )
    return [request, replace(request, sampling=replace(request.sampling, confidence_counts="maskgit"))]


def draw_in_turn(twins: Twins, asked: Sequence[Request], batch: int) -> list[Drawn]:
    """Pictures of both models, a batch of one and a batch of the other; one tokenizer decodes those of both."""
    found = [Drawn() for _ in twins]
    for start in range(0, len(asked[0]), batch):
        for drawn, pipe, request in zip(found, twins, asked, strict=True):
            part = request.part(start, start + batch)
            began = time.process_time()
            *_, last = pipe.steps(part)
            sampled = time.process_time()
            pictures = twins[0].decode(last.codes)
            drawn.seconds.append((sampled - began) / len(part))
            drawn.decoding.append((time.process_time() - sampled) / len(part))
            drawn.pictures.append(to_array(pictures))
            drawn.computed = last.computed
    return found


def measure(twins: Twins, asked: Sequence[Request], real: RealSide, batch: int) -> list[Point]:
    """The points of both models for their requests, whose labels are those of `real.reference`; medians of batches."""
    points = []
    for kind, pipe, request, drawn in zip(KINDS, twins, asked, draw_in_turn(twins, asked, batch), strict=True):
        sampling = request.sampling
        points.append(
            Point(
                model=kind,
                order=sampling.order,
                steps=sampling.steps,
                computed=drawn.computed,
                operations=generation_operations(pipe.transformer.config, sampling, pipe.info.length),
                seconds=statistics.median(drawn.seconds),
                decoding=statistics.median(drawn.decoding),
                scores=score(np.concatenate(drawn.pictures), real),
            )
        )
    return points


def weights_hash(pipe: PGMPipeline) -> str:
    """Of the transformer's weights: a model that was trained on is another model."""
    found = hashlib.sha256()
    for name, weight in sorted(pipe.transformer.state_dict().items()):
        found.update(name.encode() + weight.detach().cpu().numpy().tobytes())
    return found.hexdigest()[:16]


def protocol(twins: Twins, asked: Request, seed: int, batch: int, real: RealSide) -> dict[str, Any]:
    """All that moves a number of the report, but for order and steps."""
    settings = {name: value for name, value in asdict(asked.sampling).items() if name not in VARIED}
    names = " beside ".join(pipe.info.name for pipe in twins)
    models = {
        kind: {"name": pipe.info.name, "parameters": sum(p.numel() for p in pipe.transformer.parameters())}
        | {"weights": weights_hash(pipe), "config": asdict(pipe.transformer.config)}
        for kind, pipe in zip(KINDS, twins, strict=True)
    }
    described = asdict(describe_protocol(names, settings, real.reference.images, seed, real))
    timing = {"batch_size": batch, "threads": torch.get_num_threads(), "dtype": str(twins[0].dtype)}
    return described | {"models": models, "labels_seed": seed} | timing


def kept_points(path: Path, wanted: dict[str, Any]) -> list[Point]:
    """Points of an earlier run of the same protocol, none without a file.

    Raises ValueError when the file's points are of another protocol, or it is no report.
    """
    if not path.exists():
        return []
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        before = report["protocol"]
        points = [Point(**{**row, "scores": Scores(**row["scores"])}) for row in map(_stored, report["points"])]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"json: {str(path)!r} is not a report of this benchmark ({error}); name another") from error
    wanted = json.loads(json.dumps(wanted))
    differing = [name for name in wanted | before if wanted.get(name) != before.get(name)]
    if differing:
        raise ValueError(
            f"json: {str(path)!r} holds points of another run (differing: {', '.join(differing)}); name another file"
        )
    return points


def _stored(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "images_per_second"}


def write_report(path: Path, described: dict[str, Any], points: Sequence[Point]) -> None:
    """Protocol and points as JSON; a run that is ended meanwhile leaves the earlier report."""
    rows = [asdict(point) | {"images_per_second": point.images_per_second} for point in points]
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps({"protocol": described, "points": rows}, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def plot(points: Sequence[Point]) -> str:
    """SVG: KID and class score against seconds, and codes computed against steps, a line for each model and order."""
    series: dict[str, list[Point]] = {}
    for point in points:
        series.setdefault(f"{point.model} {point.order}", []).append(point)
    panels = [
        ("CPU s a picture", "KID x 1000", lambda p: (p.seconds, p.scores.kid)),
        ("CPU s a picture", "class recognised, %", lambda p: (p.seconds, 100 * p.scores.class_top1)),
        ("steps", "codes computed a picture", lambda p: (p.steps, p.computed)),
    ]
    return draw(
        [
            Panel({name: [at(p) for p in found] for name, found in series.items()}, x, y, doubling=x == "steps")
            for x, y, at in panels
        ]
    )


def show_protocol(described: dict[str, Any]) -> None:
    """What is compared and how, above the table."""
    for kind, model in described["models"].items():
        print(f"{kind:<8} {model['name']}, {model['parameters']:,} parameters")
    print("both     " + ", ".join(f"{k} {v}" for k, v in described["settings"].items() if v is not None))
    print("         encoder_refresh 1 and refine_rounds 0 whatever is recommended: all codes encoded anew, drawn once")
    print(f"         {described['samples']} pictures a point, threads: {described['threads']}\n\n{HEAD}")


def run(args: argparse.Namespace) -> None:
    """Measure what is not kept yet, numbers of steps as asked for; ValueError before anything is sampled."""
    report = args.json or args.plot.with_suffix(".json")
    check_numbers(args)
    check_packages()
    check_writable("plot", str(args.plot))
    check_writable("json", str(report))
    twins = tuple(PGMPipeline.from_pretrained(name, device="cpu", dtype="float32") for name in (args.pgm, args.masked))
    check_twins(*twins)
    real = real_side(args.data, args.samples, args.seed)
    check_image_size(twins[0], real.reference)
    labels = pipeline_labels(twins[0], real.reference)
    asked = {(o, s): requests(twins, labels, args.seed, o, s) for s in args.steps for o in args.orders}
    described = protocol(twins, next(iter(asked.values()))[0], args.seed, args.batch_size, real)
    points = kept_points(report, described)
    show_protocol(described)
    for point in points:
        print(point.row(), flush=True)
    for key, pair in asked.items():
        if key not in {(point.order, point.steps) for point in points}:
            found = measure(twins, pair, real, args.batch_size)
            points += found
            write_report(report, described, points)
            print("\n".join(point.row() for point in found), flush=True)
            args.plot.write_text(plot(points), encoding="utf-8")
    args.plot.write_text(plot(points), encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.twins", description=__doc__)
    parser.add_argument("pgm", metavar="PGM", help="partition model: bundled name or folder")
    parser.add_argument("masked", metavar="MASKGIT", help="its masked twin, likewise")
    parser.add_argument("--plot", type=Path, required=True, help="where the SVG goes")
    parser.add_argument("--json", type=Path, help="where all points are kept (default: beside the plot)")
    parser.add_argument("--samples", type=int, default=474, help="pictures a point (default 474)")
    parser.add_argument("--steps", type=int, nargs="+", default=[8, 16, 32, 64])
    parser.add_argument("--orders", nargs="+", choices=order_names(), default=["halton", "confidence"])
    parser.add_argument("--data", default="data/emoji64", help="image shards whose pictures are the reference")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of labels and of the first picture")
    parser.add_argument("--batch-size", type=int, default=16, help="pictures drawn, and timed, at once (default 16)")
    args = parser.parse_args(argv)
    try:
        run(args)
    except (ValueError, ModuleNotFoundError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
