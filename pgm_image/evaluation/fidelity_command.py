"""`python -m pgm_image evaluate --protocol pgm-paper|adm`: published metrics, on one process or many.

Every picture has its own seed and label, and pictures are made in parts that do not depend on the number of processes:
accelerate launch -m pgm_image evaluate ... gives the same report, and a killed run goes on with the parts it lacks.
"""

import argparse
import hashlib
import itertools
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState

from pgm.processes import process_state
from pgm_image.evaluation.fidelity import FidelityFeatures, measure, too_few
from pgm_image.evaluation.fidelity_report import FidelityReport, FidelityRow, hardware_name
from pgm_image.evaluation.kept_images import write_npz, write_pngs
from pgm_image.evaluation.parts import PART, agree_on, part_bounds, read_parts, share_parts
from pgm_image.evaluation.protocols import PROTOCOLS, FidelityProtocol, describe_counts, draw_labels
from pgm_image.evaluation.reference import open_given, reference_features, share_features
from pgm_image.evaluation.report import library_versions
from pgm_image.evaluation.samples import Settings, to_array

MINIMUM = 10  # the inception score is taken over ten groups


@dataclass(frozen=True)
class Job:
    """What is the same for every row of a report."""

    protocol: FidelityProtocol
    extractor: FidelityFeatures
    state: PartialState
    device: torch.device
    work: Path
    batch_size: int
    seed: int

    def say(self, text: str) -> None:
        """Progress, on stderr."""
        print(text, file=sys.stderr, flush=True)


def run(args: argparse.Namespace) -> int:
    """Evaluate; 0 when done. ValueError for bad arguments, before anything is sampled."""
    from pgm_image import load

    protocol = PROTOCOLS[args.protocol]
    n = args.samples or protocol.samples
    if n < MINIMUM or args.batch_size < 1:
        raise ValueError(f"samples must be >= {MINIMUM} and batch_size >= 1, got {n} and {args.batch_size}")
    if not args.out:
        raise ValueError("out: a protocol needs a file for its report, such as --out report.json")
    if not args.reference:
        raise ValueError(f"reference: the protocol {protocol.name} needs --reference: {protocol.reference}")
    out = Path(args.out)
    if not out.resolve().parent.is_dir():
        raise ValueError(f"out: the folder of {args.out!r} does not exist")
    state = process_state()
    device = torch.device(args.device) if args.device else state.device
    with state.main_process_first():  # one process downloads, the others find the file
        extractor = FidelityFeatures(args.extractor, args.inception_weights, device)
    work = Path(args.work) if args.work else out.with_suffix(".parts")
    job = Job(protocol, extractor, state, device, work, args.batch_size, args.seed)
    pipe = images = None
    if args.images:
        images = open_given("images", args.images, None, "train")
        if images.pictures is None or len(images.pictures) < MINIMUM:
            raise ValueError(f"images: {args.images!r} must hold at least {MINIMUM} pictures")
        size = images.pictures[0:1].shape[1]
    else:
        pipe = load(args.model, device=str(device))
        size = pipe.image_size
    given = open_given("reference", args.reference, size, protocol.split)
    reference = reference_features(given, extractor, protocol.clean_resize, work / "reference", state, job.say)
    if images:
        share_features(images, extractor, protocol.clean_resize, work / "images", state, job.say)
        made, n, labels = [({}, work / "images")], len(images.pictures), "unknown"
    else:
        drawn = draw_labels(protocol.labels, len(pipe.classes), n, args.seed)
        labels = f"{protocol.labels}: {describe_counts(drawn, len(pipe.classes))}"
        grid = itertools.product(args.steps_sweep or [args.steps], args.guidance_sweep or [args.guidance])
        made = [_sample(args, job, pipe, drawn, steps, guidance, out) for steps, guidance in grid]
    if not state.is_main_process:
        return 0
    rows = []
    for settings, folder in made:
        job.say(f"metrics of {folder.name}")
        features = read_parts(folder, n)
        features.pop("images", None)
        seconds = float(features.pop("seconds").sum()) / n if settings else None
        rows.append(FidelityRow(settings, n, measure(features, reference, extractor.layers, device), seconds))
    report = FidelityReport(
        protocol=protocol.name,
        model=str(args.images or args.model),
        labels=labels,
        reference=f"{given.name}, {reference.count or 'statistics of unstated many'} pictures",
        preparation="Pillow bicubic to 299 px, integers (clean-fid)" if protocol.clean_resize else "the network's own",
        extractor=extractor.name,
        seed=args.seed,
        rows=tuple(rows),
        warnings=tuple(_warnings(rows, protocol, len(reference.mean), reference.count)),
        hardware=hardware_name(device),
        processes=state.num_processes,
        versions=library_versions(),
    )
    report.write(out)
    print(report.to_json() if args.json else report.table())
    return 0


def _sample(
    args: argparse.Namespace,
    job: Job,
    pipe: Any,
    labels: np.ndarray,
    steps: int | None,
    guidance: float | None,
    out: Path,
) -> tuple[dict[str, Any], Path]:
    """One row: pictures of all labels (n,), image i with seed `seed + i`; its settings and the folder of its parts."""
    chosen = Settings(
        steps, args.sampler, guidance, args.guidance_schedule, args.temperature, args.temperature_anneal,
        args.top_k, args.top_p, args.refine_rounds, args.encoder_refresh, args.refine_score,
    )  # fmt: skip
    published = dict(pipe.info.published) if args.as_published else {}
    resolved = {**chosen.resolved(pipe.recommended), **published}
    stem = f"{resolved['sampler']}-{resolved['steps']}-guidance-{resolved['guidance_scale']}"
    work, images = job.work / stem, out.with_name(f"{out.stem}-{stem}")

    def make(start: int, stop: int) -> dict[str, np.ndarray]:
        began = time.perf_counter()
        pictures = to_array(
            pipe.generate(
                class_id=labels[start:stop].tolist(),
                seed=job.seed + start,
                batch_size=job.batch_size,
                **{**chosen.given(), **published},
            )
        )
        made = {"seconds": np.float64(time.perf_counter() - began)}
        if args.keep == "folder":
            write_pngs(images, pictures, start)
        elif args.keep == "npz":
            made["images"] = pictures
        return {**made, **job.extractor(pictures, job.protocol.clean_resize)}

    settings = {
        "model": args.model,
        "weights": fingerprint(pipe),
        "protocol": job.protocol.name,
        "extractor": job.extractor.name,
        "layers": job.extractor.layers,
        "samples": len(labels),
        "seed": job.seed,
        "keep": args.keep,
        **resolved,
    }
    agree_on(work, settings, job.state)
    share_parts(work, len(labels), make, job.state, job.say)
    if args.keep == "npz" and job.state.is_main_process:
        parts = [work / f"{number:05d}.npz" for number in range(len(part_bounds(len(labels), PART)))]
        write_npz(images.with_name(f"{images.name}.npz"), parts, (len(labels), pipe.image_size, pipe.image_size, 3))
    return resolved, work


def fingerprint(pipe: Any) -> str:
    """A few digits that change when the weights of the pipeline's transformer or tokenizer do."""
    digest = hashlib.sha256()
    for module in (pipe.transformer, pipe.tokenizer):
        for name, tensor in module.state_dict().items():
            digest.update(name.encode() + tensor.flatten()[:256].float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def _warnings(rows: list[FidelityRow], protocol: FidelityProtocol, width: int, reference: int | None) -> list[str]:
    n = rows[0].n
    found = [too_few(n, width)]
    if reference is not None and (few := too_few(reference, width)):
        found.append(f"the reference: {few}")
    if n != protocol.samples:
        found.append(f"n = {n} is not the {protocol.samples} of the protocol: not comparable with published numbers")
    return [warning for warning in found if warning]
