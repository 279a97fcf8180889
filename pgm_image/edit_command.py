"""`python -m pgm_image edit`, `variations` and `outpaint`: editing a picture from the shell."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from pgm_image import edits
from pgm_image.frame import FITS
from pgm_image.generate_command import add_sampling_arguments, file_stem, label, label_names, sampling_arguments
from pgm_image.metadata import picture_settings, png_info
from pgm_image.registry import load, model_info


def add_edit_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `edit`."""
    _add_shared(parser)
    parser.add_argument("--mask", required=True, help="picture of the same size or aspect: white or painted = change")
    parser.add_argument("--invert", action="store_true", help="keep what is painted and change the rest")


def add_variations_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `variations`."""
    _add_shared(parser)
    parser.set_defaults(num_images=4, composite=False)
    parser.add_argument("--strength", type=float, default=0.5, help="share of the codes to change, 0 to 1")


def add_outpaint_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `outpaint`."""
    _add_shared(parser)
    parser.add_argument(
        "--shift", type=float, nargs=2, default=(0.0, 0.0), metavar=("RIGHT", "DOWN"), help="shares of the sides"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="shrink to this share, about the centre")


def run_edit(args: argparse.Namespace) -> int:
    """Repaint what the mask shows."""
    return _run(args, edits.repaint, mask=args.mask, invert=args.invert)


def run_variations(args: argparse.Namespace) -> int:
    """Change a share of the codes."""
    return _run(args, edits.variations, strength=args.strength)


def run_outpaint(args: argparse.Namespace) -> int:
    """Shift or shrink, and fill."""
    return _run(args, edits.outpaint, shift=args.shift, scale=args.scale)


def _add_shared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("picture", help="PNG, JPEG, WebP, GIF, BMP, TIFF or AVIF file")
    parser.add_argument("--class", dest="class_id", help="class id or name (default: any class)")
    parser.add_argument(
        "--fit", choices=FITS, default="whole", help="show the model all of the picture, or its central square"
    )
    parser.add_argument(
        "--composite",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="paste the changed cells into the picture and leave all else as it is, or write the model's square",
    )
    add_sampling_arguments(parser)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("outputs"),
        help="folder, or a .png file for one picture (default: %(default)s)",
    )


def _run(args: argparse.Namespace, make: Any, **particular: Any) -> int:
    info = model_info(args.model)
    arguments = {**sampling_arguments(args), "fit": args.fit, "composite": args.composite, **particular}
    task = make(info, args.picture, class_id=label(args.class_id), **arguments)
    one_file = args.out.suffix.lower() == ".png"
    if one_file and len(task) > 1:
        raise ValueError(f"--out must be a folder for {len(task)} pictures, got {str(args.out)!r}")
    pipeline = load(args.model, args.device, args.dtype)
    pictures = pipeline.run_edit(task, batch_size=args.batch_size, progress=sys.stderr.isatty())
    (args.out.parent if one_file else args.out).mkdir(parents=True, exist_ok=True)
    for index, picture in enumerate(pictures):
        class_name, style = label_names(info, task.request, index)
        settings = picture_settings(task.request, index, args.model, class_name, style)
        settings["edit"] = task.record(index)
        stem = file_stem(Path(args.picture).stem, task.kind, class_name, style)
        path = args.out if one_file else args.out / f"{stem}-{task.request.seeds[index]}.png"
        picture.save(path, pnginfo=png_info(settings))
        print(json.dumps({"path": str(path), **settings}) if args.json else path)
    return 0
