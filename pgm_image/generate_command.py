"""`python -m pgm_image generate`: pictures of a class from the shell, with their settings inside the PNG."""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, get_args

from pgm.guidance import guidance_schedule_names
from pgm.orders import order_names
from pgm.sampling import RefineScore
from pgm.schedules import schedule_names
from pgm_image.api import load
from pgm_image.metadata import picture_settings, png_info
from pgm_image.registry import DEFAULT_MODEL, model_info
from pgm_image.request import make_request


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command; what is left out is the model's recommended setting."""
    parser.add_argument("classes", nargs="*", help='class ids or names, e.g. 27 "cat or monkey face"; none: any class')
    add_sampling_arguments(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("outputs"), help="folder for the PNG files (default: %(default)s)"
    )


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    """What all commands that make pictures have in common."""
    parser.add_argument("--style", help="style name or id (default: the model chooses)")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="bundled name, folder or hub id (default: %(default)s)")
    parser.add_argument("--num-images", type=int, default=1, help="pictures of each class (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first picture, the next has seed + 1")
    parser.add_argument("--steps", type=int, help="forward passes")
    parser.add_argument("--sampler", help=f"one of {', '.join(order_names())}")
    parser.add_argument("--schedule", help=f"one of {', '.join(schedule_names())}")
    parser.add_argument(
        "--guidance", type=float, dest="guidance_scale", help="how strongly to follow the class, 0 = off"
    )
    parser.add_argument("--guidance-schedule", help=f"one of {', '.join(guidance_schedule_names())}")
    parser.add_argument("--temperature", type=float, help="0 = always the likeliest code")
    parser.add_argument(
        "--temperature-anneal", type=float, help="temperature of the first step as a multiple of the last one's"
    )
    parser.add_argument(
        "--refine-rounds", type=int, help="how often unlikely codes are taken back and drawn anew at the end"
    )
    parser.add_argument("--refine-score", help=f"what they are found by: {' or '.join(get_args(RefineScore))}")
    parser.add_argument(
        "--encoder-refresh", type=int, help="steps between full encodings of the known codes (1 = at each step, exact)"
    )
    parser.add_argument("--top-k", type=int)
    parser.add_argument("--top-p", type=float)
    parser.add_argument(
        "--roll", action=argparse.BooleanOptionalAction, default=None, help="shift the order per picture"
    )
    parser.add_argument("--device", help="cpu, cuda, mps (default: the best there is)")
    parser.add_argument("--dtype", help="float32, bfloat16 or float16")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--json", action="store_true", help="print one line of JSON per picture")


def run(args: argparse.Namespace) -> int:
    """Generate and save; prints the path of every picture."""
    arguments = sampling_arguments(args)
    classes = [label(c) for c in args.classes] or None
    info = model_info(args.model)
    request = make_request(info, classes, **arguments)
    pipeline = load(args.model, args.device, args.dtype)
    pictures = pipeline.generate(classes, batch_size=args.batch_size, progress=sys.stderr.isatty(), **arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    for index, picture in enumerate(pictures):
        class_name, style = label_names(info, request, index)
        settings = picture_settings(request, index, args.model, class_name, style)
        path = args.out / f"{file_stem(info.name, class_name, style)}-{request.seeds[index]}.png"
        picture.save(path, pnginfo=png_info(settings))
        print(json.dumps({"path": str(path), **settings}) if args.json else path)
    return 0


def sampling_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `make_request` from those of `add_sampling_arguments`."""
    names = (
        "style", "num_images", "seed", "steps", "sampler", "schedule", "guidance_scale", "guidance_schedule",
        "temperature", "temperature_anneal", "refine_rounds", "refine_score", "encoder_refresh",
        "top_k", "top_p", "roll",
    )  # fmt: skip
    return {**{name: getattr(args, name) for name in names}, "style": label(args.style)}


def label(text: str | None) -> str | int | None:
    """A class or style as typed: digits are an id, anything else a name."""
    return int(text) if text is not None and text.lstrip("-").isdigit() else text


def label_names(info, request, index: int) -> tuple[str | None, str | None]:
    """Class and style name of picture `index` of a request; None for the null labels."""
    class_id, style_id = request.classes[index], request.styles[index]
    return (
        None if class_id < 0 else info.classes[class_id],
        None if style_id < 0 else info.styles[style_id],
    )


def file_stem(*parts: str | None) -> str:
    """A file name without surprises from label names."""
    return "-".join(re.sub(r"[^a-z0-9]+", "_", part.casefold()).strip("_") for part in parts if part)
