"""The commands `evaluate` and `sweep` of `python -m pgm_image`: from arguments to a report."""

import argparse
import importlib.util
import os
import sys
import time
from pathlib import Path
from typing import Any

SAMPLERS = ("halton", "confidence", "random", "raster")
SCHEDULES = ("linear", "constant", "cosine")
SCORES = ("likelihood", "typicality")
EMOJI_SAMPLES = 2000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `evaluate`."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--model", default="emoji64", help="model to sample from (name, folder or hub id)")
    source.add_argument("--images", metavar="FOLDER", help="evaluate these pictures instead of sampling")
    source.add_argument("--tokenizer", metavar="FOLDER", help="evaluate a tokenizer on held-out images")
    add_shared_arguments(parser)
    parser.add_argument(
        "--protocol",
        choices=("emoji", "pgm-paper", "adm"),
        default="emoji",
        help="what is measured, against what: this project's own measure of the emoji model (default), or a published "
        "one, which also runs under accelerate launch",
    )
    parser.add_argument("--samples", type=int, help="images to draw (default 2000, or the published protocol's)")
    parser.add_argument("--steps", type=int, help="sampling steps (default: the model's)")
    parser.add_argument("--sampler", choices=SAMPLERS, help="order of filling (default: the model's)")
    parser.add_argument("--guidance", type=float, help="guidance scale, 0 is off (default: the model's)")
    parser.add_argument("--guidance-schedule", choices=SCHEDULES, help="over the steps (default: the model's)")
    parser.add_argument("--temperature", type=float, help="sampling temperature (default: the model's)")
    parser.add_argument(
        "--temperature-anneal", type=float, help="of the first step, as a multiple of the last (default: the model's)"
    )
    parser.add_argument("--refine-rounds", type=int, help="of taking unlikely codes back (default: the model's)")
    parser.add_argument("--refine-score", choices=SCORES, help="what rounds take back by (default: the model's)")
    parser.add_argument("--encoder-refresh", type=int, help="steps between full encodings (default: the model's)")
    parser.add_argument("--top-k", type=int, help="keep the k likeliest codes (default: the model's)")
    parser.add_argument("--top-p", type=float, help="keep this probability mass (default: the model's)")
    parser.add_argument("--no-fid", action="store_true", help="KID only")
    parser.add_argument("--out", metavar="FILE", help="write the report as JSON")
    parser.add_argument("--sheet", metavar="FILE", help="write a sheet of samples, classes by styles (PNG)")
    parser.add_argument("--pairs", metavar="FILE", help="write the samples closest to training images (PNG)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    add_protocol_arguments(parser)


def add_protocol_arguments(parser: argparse.ArgumentParser) -> None:
    """What `evaluate` takes besides, for the published protocols."""
    group = parser.add_argument_group("published protocols (pgm-paper, adm)")
    group.add_argument("--reference", metavar="PATH", help="real side: folder of pictures, image shards, or npz")
    group.add_argument("--guidance-sweep", type=float, nargs="+", metavar="W", help="guidance scales, one row each")
    group.add_argument("--steps-sweep", type=int, nargs="+", metavar="N", help="numbers of steps, one row each")
    group.add_argument("--as-published", action="store_true", help="sample as the authors' code does")
    group.add_argument("--keep", choices=("folder", "npz"), help="keep the pictures, as PNG files or as npz (arr_0)")
    group.add_argument("--work", metavar="FOLDER", help="parts of an unfinished run (default: beside --out)")
    group.add_argument("--inception-weights", metavar="FILE", help="local weights of the feature extractor")
    group.add_argument(
        "--extractor",
        default="inception-v3-compat",
        help="inception-v3-compat (default), efficientnet-lite0, which needs no download but compares only with "
        "itself, or another one of torch-fidelity",
    )


def add_sweep_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `sweep`."""
    parser.add_argument("--model", default="emoji64", help="model to sample from (name, folder or hub id)")
    add_shared_arguments(parser)
    parser.add_argument("--samples", type=int, default=474, help="images per combination (default 474)")
    parser.add_argument("--steps", type=int, nargs="+", default=[None], help="numbers of steps to try")
    parser.add_argument("--sampler", nargs="+", choices=SAMPLERS, default=[None], help="orders to try")
    parser.add_argument("--guidance", type=float, nargs="+", default=[0.0, 1.0, 2.0, 4.0], help="to try")
    parser.add_argument("--guidance-schedule", nargs="+", choices=SCHEDULES, default=[None], help="to try")
    parser.add_argument("--temperature", type=float, nargs="+", default=[0.8, 0.9, 1.0], help="to try")
    parser.add_argument("--temperature-anneal", type=float, nargs="+", default=[None], help="to try")
    parser.add_argument("--refine-rounds", type=int, nargs="+", default=[None], help="to try")
    parser.add_argument("--out", metavar="FILE", help="write the table as CSV, a row as soon as it is known")


def add_shared_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", default="data/emoji64", help="image shards (default data/emoji64)")
    parser.add_argument("--seed", type=int, default=0, help="image i is drawn with seed + i (default 0)")
    parser.add_argument("--batch-size", type=int, default=64, help="images sampled at once (default 64)")
    parser.add_argument("--device", help="cpu, cuda, ... (default: cuda if there is one)")


def run(args: argparse.Namespace) -> int:
    """Evaluate; 0 when done. ValueError for bad arguments, before anything is sampled."""
    if args.protocol != "emoji":
        check_torch_fidelity()
        from pgm_image.evaluation import fidelity_command

        return fidelity_command.run(args)
    args = argparse.Namespace(**{**vars(args), "samples": EMOJI_SAMPLES if args.samples is None else args.samples})
    check_numbers(args)
    check_packages()
    for name in ("out", "sheet", "pairs"):
        check_writable(name, getattr(args, name))
    return run_tokenizer(args) if args.tokenizer else run_samples(args)


def run_sweep(args: argparse.Namespace) -> int:
    """Try every combination, printing each row as it is done; 0 when done."""
    check_numbers(args)
    check_packages()
    from pgm_image import load
    from pgm_image.evaluation.evaluate import choose_reference, prepare_real_side
    from pgm_image.evaluation.sweep import HEAD, combinations, row_line, sweep, table, write_csv

    check_writable("out", args.out)
    device = choose_device(args.device)
    train, reference = choose_reference(args.data, args.samples, args.seed)
    pipe = load(args.model, device=device)
    real = prepare_real_side(args.data, train, reference, args.seed, device, say)
    rows = []
    grid = combinations(
        args.sampler, args.steps, args.guidance, args.guidance_schedule, args.temperature, args.temperature_anneal,
        args.refine_rounds,
    )  # fmt: skip
    say(HEAD)
    for row in sweep(pipe, real, grid, args.seed, args.batch_size):
        rows.append(row)
        say(row_line(row))
        if args.out:
            write_csv(rows, args.out)
    print(table(rows))
    return 0


def run_tokenizer(args: argparse.Namespace) -> int:
    from pgm_image.evaluation.evaluate import choose_reference, prepare_real_side
    from pgm_image.evaluation.image_set import load_image_set
    from pgm_image.evaluation.tokenizer_report import evaluate_tokenizer, with_recognition
    from tokenizer.vqgan import VQGAN

    device = choose_device(args.device)
    tokenizer = VQGAN.from_pretrained(args.tokenizer, device=device)
    heldout = load_image_set(args.data, "heldout")
    codebook_size = tokenizer.config.codebook_size
    report = evaluate_tokenizer(tokenizer, codebook_size, heldout.images, heldout.name, device)
    train, reference = choose_reference(args.data, args.samples, args.seed)
    real = prepare_real_side(args.data, train, reference, args.seed, device, say)
    deliver(with_recognition(report, tokenizer, real), args)
    return 0


def run_samples(args: argparse.Namespace) -> int:
    from pgm_image.evaluation.evaluate import choose_reference, measure, prepare_real_side
    from pgm_image.evaluation.image_folder import read_image_folder
    from pgm_image.evaluation.report import Report, describe_protocol

    device = choose_device(args.device)
    train, reference = choose_reference(args.data, args.samples, args.seed)
    start = time.perf_counter()
    if args.images:
        images, settings = read_image_folder(args.images), {}
    else:
        images, settings = sample(args, reference, device)
        if images is None:
            return 0
    sampled = time.perf_counter()
    real = prepare_real_side(args.data, train, reference, args.seed, device, say)
    seconds = {"sampling": sampled - start, "real images": time.perf_counter() - sampled}
    found = measure(images, real, labelled=not args.images, fid=not args.no_fid, say=say)
    report = Report(
        protocol=describe_protocol(args.images or args.model, settings, images, args.seed, real),
        distances=found.distances,
        ceiling=found.ceiling,
        probe=found.probe,
        nearest=found.nearest,
        seconds=seconds | found.seconds,
    )
    save_sheets(args, images, real, found.pairs)
    deliver(report, args)
    return 0


def sample(args: argparse.Namespace, reference: Any, device: Any) -> tuple[Any, dict[str, Any]]:
    """Samples with the reference's labels, and the settings used; no images except on process 0."""
    from pgm_image import load
    from pgm_image.evaluation.samples import Settings, check_image_size, draw_samples, pipeline_labels

    asked = Settings(
        args.steps, args.sampler, args.guidance, args.guidance_schedule, args.temperature, args.temperature_anneal,
        args.top_k, args.top_p, args.refine_rounds, args.encoder_refresh, args.refine_score,
    )  # fmt: skip
    pipe = load(args.model, device=device)
    check_image_size(pipe, reference)
    class_id, style_id = pipeline_labels(pipe, reference)
    processes, process = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    say(f"sampling {len(reference)} images")
    drawn = draw_samples(pipe, class_id, style_id, asked, args.seed, args.batch_size, process, processes)
    settings = asked.resolved(pipe.recommended)
    if processes == 1:
        return drawn.images, settings
    import numpy as np
    from accelerate.utils import gather_object

    from pgm.processes import process_state

    state = process_state()
    parts = gather_object([drawn.images])  # in order of rank, as the labels were split
    return (np.concatenate(parts) if state.is_main_process else None), settings


def save_sheets(args: argparse.Namespace, images: Any, real: Any, pairs: list[tuple[int, int, float]]) -> None:
    """Write the sheets that were asked for."""
    from pgm_image.evaluation.sheet import class_style_sheet, pairs_sheet

    reference = real.reference
    if args.sheet and not args.images:
        labels = (reference.class_id, reference.style_id, reference.classes, reference.styles)
        class_style_sheet(images, *labels).save(args.sheet)
    if args.pairs:
        names = [
            f"picture {index}" if args.images else reference.classes[reference.class_id[index]] for index, _, _ in pairs
        ]
        pairs_sheet(images, real.train.images, pairs, names).save(args.pairs)


def deliver(report: Any, args: argparse.Namespace) -> None:
    """Print the report, as a table or JSON, and write the JSON where asked."""
    if args.out:
        Path(args.out).write_text(report.to_json() + "\n", encoding="utf-8")
    print(report.to_json() if args.json else report.table())


def choose_device(name: str | None) -> Any:
    """The device by name, or the first GPU, or the CPU."""
    import torch

    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device must be cpu, cuda or cuda:<index>, got {name!r}") from error


def check_numbers(args: argparse.Namespace) -> None:
    """ValueError for counts nothing can be measured with."""
    for name, least in (("samples", 4), ("batch_size", 1)):
        if getattr(args, name) < least:
            raise ValueError(f"{name} must be an integer >= {least}, got {getattr(args, name)}")


def check_packages() -> None:
    """ModuleNotFoundError or FileNotFoundError with the pip line for what is not installed, before any sampling."""
    check_torch_fidelity()
    from pgm_image.evaluation import efficientnet
    from tokenizer import mobilenet

    efficientnet.weights_path()
    mobilenet.weights_path()


def check_torch_fidelity() -> None:
    """ModuleNotFoundError with the pip line when it is not installed."""
    if importlib.util.find_spec("torch_fidelity") is None:
        raise ModuleNotFoundError("evaluation needs torch-fidelity: pip install 'pgm-image[eval]'")


def check_writable(name: str, path: str | None) -> None:
    """An hour of sampling must not end in a missing folder."""
    if path and not Path(path).resolve().parent.is_dir():
        raise ValueError(f"{name}: the folder of {path!r} does not exist")


def say(text: str) -> None:
    """Progress goes to stderr, so that stdout holds the report alone."""
    print(text, file=sys.stderr, flush=True)
