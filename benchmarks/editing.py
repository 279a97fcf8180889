"""`python -m benchmarks.editing`: how well are open parts of pictures filled, by guidance and temperature?

The pictures are of concepts that training never saw, as a visitor's are (`--split train`: the very ones that KID
compares with, which shows at what stage a generation goes wrong). Their own class and style are given, the cells of a
shape are generated around the others, and the whole is decoded. KID is against training pictures; RMSE (of 255, inside
the open cells) is the distance to what was there, which a good filling need not come close to but a fitting one is
nearer to. The first row of a shape is the pictures through the tokenizer alone.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from benchmarks.scores import HEAD as SCORES_HEAD
from benchmarks.scores import Scores, real_side, score
from pgm.orders import halton_order
from pgm_image.evaluation.image_set import ImageSet
from pgm_image.evaluation.samples import pipeline_labels, to_array
from pgm_image.pipeline import PGMPipeline
from tokenizer.pixels import from_uint8

SHAPES = ("right", "outside", "middle", "halton-128", "halton-64", "halton-16")
SETTINGS = ("1.5:0.3:2", "1:0.5:1", "0.5:0.6:1")
HEAD = f"{'open':<10} {'guidance':>8} {'temperature':>11} {'anneal':>6} {'RMSE':>6} {SCORES_HEAD}"


@dataclass(frozen=True)
class Filling:
    """How open cells are drawn; None = they are not, the tokenizer's codes stand."""

    guidance_scale: float
    temperature: float
    temperature_anneal: float

    @classmethod
    def parse(cls, text: str) -> "Filling":
        """From "guidance:temperature:anneal"; ValueError for anything else."""
        try:
            guidance, temperature, anneal = map(float, text.split(":"))
        except ValueError:
            raise ValueError(f"settings must be like 0.5:0.6:1, got {text!r}") from None
        return cls(guidance, temperature, anneal)


def open_cells(shape: str, grid: tuple[int, int]) -> np.ndarray:
    """Cells (rows, columns) bool to generate: the right half, the middle half of both sides, all outside of it, or all
    but the first so many in Halton order.
    """
    rows, columns = grid
    if shape.startswith("halton-"):
        opened = np.ones(rows * columns, dtype=bool)
        opened[list(halton_order(rows, columns)[: int(shape.removeprefix("halton-"))])] = False
        return opened.reshape(grid)
    middle = np.zeros(grid, dtype=bool)
    middle[rows // 4 : rows - rows // 4, columns // 4 : columns - columns // 4] = True
    right = np.broadcast_to(np.arange(columns) >= columns // 2, grid)
    return {"right": right, "outside": ~middle, "middle": middle}[shape]


def filled(
    pipe: PGMPipeline, pictures: ImageSet, cells: np.ndarray, filling: Filling | None, chunk: int = 64
) -> np.ndarray:
    """The pictures (n, S, S, 3) uint8 with `cells` generated anew; picture i is drawn with seed i."""
    classes, styles = pipeline_labels(pipe, pictures)
    pixels = from_uint8(torch.from_numpy(pictures.images))
    opened, done = torch.from_numpy(cells.flatten().copy()), []
    for start in range(0, len(pictures), chunk):
        part = slice(start, start + chunk)
        codes = pipe.tokenizer.encode(pixels[part]).flatten(1).cpu()  # (B, L)
        if filling is not None:
            style = None if styles is None else styles[part].tolist()
            request = pipe.request(classes[part].tolist(), style=style, seed=start, **vars(filling))
            *_, step = pipe.steps(request, torch.where(opened, -1, codes))
            codes = step.codes
        done.append(to_array(pipe.decode(codes)))
    return np.concatenate(done)


def row(shape: str, filling: Filling | None, rmse: float, scores: Scores) -> str:
    """A line of the table under `HEAD`."""
    numbers = ("-", "-", "-") if filling is None else tuple(f"{value:g}" for value in vars(filling).values())
    guidance, temperature, anneal = numbers
    return f"{shape:<10} {guidance:>8} {temperature:>11} {anneal:>6} {rmse:>6.1f} {scores.cells()}"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.editing", description=__doc__)
    parser.add_argument("--model", default="emoji64", help="bundled model or folder")
    parser.add_argument("--data", default="data/emoji64", help="image shards")
    parser.add_argument("--samples", type=int, default=158, help="pictures, the same at every row")
    parser.add_argument("--split", choices=("heldout", "train"), default="heldout", help="whose pictures")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES[:3], help="what is left open")
    parser.add_argument("--settings", nargs="+", default=SETTINGS, metavar="GUIDANCE:TEMPERATURE:ANNEAL")
    args = parser.parse_args(argv)
    fillings = [Filling.parse(text) for text in args.settings]
    real = real_side(Path(args.data), args.samples)
    pictures = real.reference
    if args.split == "heldout":
        pictures = real.heldout.take(np.random.default_rng(0).permutation(len(real.heldout))[: args.samples])
        real = replace(real, reference=pictures)  # whose labels are expected; KID stays against training pictures
    pipe = PGMPipeline.from_pretrained(args.model, dtype="float32")
    print(HEAD)
    for shape in args.shapes:
        cells = open_cells(shape, pipe.grid)
        side = pictures.images.shape[1] // pipe.grid[0]
        inside = cells.repeat(side, 0).repeat(side, 1)  # pixels
        for filling in (None, *fillings):
            drawn = filled(pipe, pictures, cells, filling)
            error = (drawn.astype(np.float32) - pictures.images)[:, inside]
            print(row(shape, filling, float(np.sqrt(np.square(error).mean())), score(drawn, real)), flush=True)


if __name__ == "__main__":
    main()
