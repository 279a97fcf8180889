"""A stand-in for `pgm_image.PGMPipeline`: same interface, drawn pictures, no network. Fast, exact and cancellable."""

import time
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import torch
from PIL import Image, ImageDraw

from pgm.sampling import Step
from pgm_image.model_info import ModelInfo
from pgm_image.request import Request, make_request
from tokenizer.pixels import to_pil

CLASSES = ("cat", "dog", "fox", "goldfish", "house", "owl", "panda", "red apple", "rocket", "sun", "tulip", "whale")
STYLES = ("Crayon", "Flat", "Ink")


class FakePipeline:
    """Reveals a drawn 64 x 64 picture on a 16 x 16 grid. A code is the number of a patch that has been drawn before."""

    def __init__(self, step_seconds: float = 0.02, name: str = "fake", twin_of: "FakePipeline | None" = None) -> None:
        self.info = ModelInfo(
            name=name,
            architecture="maskgit" if twin_of else "pgm",
            title="Drawn faces 64",
            image_size=64,
            grid=(16, 16),
            codebook_size=4096,
            classes=CLASSES,
            styles=STYLES,
            recommended={"steps": 16, "sampler": "halton", "guidance_scale": 2.0, "temperature": 1.0},
            presets={
                "Draft": {"steps": 6, "guidance_scale": 0.0},
                "Balanced": {"steps": 16, "guidance_scale": 2.0},
                "Best": {"steps": 32, "guidance_scale": 3.0, "sampler": "confidence"},
            },
            credits=({"style": "Flat", "artwork": "Drawn for tests", "licence": "CC0", "source": ""},),
        )
        self.step_seconds = step_seconds
        self.patches: list[np.ndarray] = twin_of.patches if twin_of else []
        self.tokenizer = FakeTokenizer(self)
        self._numbers: dict[bytes, int] = twin_of._numbers if twin_of else {}
        self.started = self.closed = self.steps_run = self.running = self.most_running = 0

    def request(self, class_id: object, **settings: object) -> Request:
        return make_request(self.info, class_id, **settings)

    def pictures(self, class_id: object, **settings: object) -> list[Image.Image]:
        """The finished pictures of a request."""
        *_, step = self.steps(self.request(class_id, **settings))
        return self.decode(step.codes)

    def steps(self, request: Request, known_codes: torch.Tensor | None = None) -> Iterator[Step]:
        start = time.perf_counter()
        self.started += 1
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        steps, guided = request.sampling.steps, request.sampling.guidance_scale
        try:
            length = self.info.length
            labels = zip(request.classes, request.styles, request.seeds, strict=True)
            goal = torch.stack([self._encode(draw(*label)) for label in labels])
            orders = torch.stack([order_of(request.sampling.order, seed, self.info.grid) for seed in request.seeds])
            codes = torch.full((len(request), length), -1) if known_codes is None else known_codes.clone()
            orders = torch.stack(
                [order[row[order] < 0] for order, row in zip(orders, codes, strict=True)]
            )  # (B, unknown): every picture of a request has as many
            given, length = length - orders.shape[1], orders.shape[1]
            steps = min(steps, length)
            ends = [round(length * (1 - np.cos(np.pi / 2 * (k + 1) / steps))) for k in range(steps)]
            ends = [max(end, k + 1) for k, end in enumerate(ends)]
            ends[-1] = length
            passes = 2 if guided else 1
            computed = masked = before = 0
            for index, end in enumerate(ends):
                time.sleep(self.step_seconds)
                self.steps_run += 1
                filled = torch.zeros(codes.shape, dtype=torch.bool)
                filled.scatter_(1, orders[:, before:end], True)
                codes = torch.where(filled, goal, codes)
                computed += passes * ((length if self.info.architecture == "maskgit" else end) + given + 1)
                masked += passes * (length + given + 1)
                yield Step(index, steps, codes, codes >= 0, filled, computed, masked, time.perf_counter() - start)
                before = end
        finally:
            self.running -= 1
            self.closed += 1

    def decode(self, codes: torch.Tensor) -> list[Image.Image]:
        paper = np.full((4, 4, 3), 255, np.uint8)
        pictures = []
        for row in codes.tolist():
            tiles = np.stack([self.patch(code) if code >= 0 else paper for code in row])
            tiles = tiles.reshape(16, 16, 4, 4, 3).transpose(0, 2, 1, 3, 4).reshape(64, 64, 3)
            pictures.append(Image.fromarray(tiles, "RGB"))
        return pictures

    def patch(self, code: int) -> np.ndarray:
        """(4, 4, 3) uint8 look of a code; those never drawn have a colour of their own."""
        if code < len(self.patches):
            return self.patches[code]
        return np.full((4, 4, 3), np.random.default_rng(code).integers(0, 256, 3), np.uint8)

    def _encode(self, picture: Image.Image) -> torch.Tensor:
        tiles = np.asarray(picture).reshape(16, 4, 16, 4, 3).transpose(0, 2, 1, 3, 4).reshape(256, 4, 4, 3)
        numbers = []
        for tile in tiles:
            number = self._numbers.setdefault(tile.tobytes(), len(self._numbers))
            if number == len(self.patches):
                self.patches.append(tile)
            numbers.append(number)
        return torch.tensor(numbers)


class FakeTokenizer:
    """Patches as codes: what has been drawn before, else the nearest of the first patches, so that pictures come back
    changed.
    """

    def __init__(self, pipeline: FakePipeline) -> None:
        self.pipeline = pipeline
        self.config = SimpleNamespace(image_size=64, factor=4)

    @property
    def quantizer(self) -> SimpleNamespace:
        rows = [self.pipeline.patch(code).mean((0, 1)) for code in range(self.pipeline.info.codebook_size)]
        return SimpleNamespace(codebook=torch.tensor(np.stack(rows), dtype=torch.float32))

    def encode(self, images: torch.Tensor) -> torch.Tensor:
        codes = []
        codebook = self.quantizer.codebook
        for image in to_pil(images):
            tiles = np.asarray(image).reshape(16, 4, 16, 4, 3).transpose(0, 2, 1, 3, 4).reshape(256, 4, 4, 3)
            means = torch.from_numpy(tiles.mean((1, 2))).float()
            nearest = torch.cdist(means, codebook).argmin(1).tolist()
            known = self.pipeline._numbers
            codes.append([known.get(tile.tobytes(), near) for tile, near in zip(tiles, nearest, strict=True)])
        return torch.tensor(codes).reshape(len(images), 16, 16)

    def decode_images(self, codes: torch.Tensor) -> list[Image.Image]:
        rows = [
            [np.concatenate([self.pipeline.patch(code) for code in line], 1) for line in grid]
            for grid in codes.tolist()
        ]
        return [Image.fromarray(np.concatenate(lines, 0), "RGB") for lines in rows]


def order_of(sampler: str, seed: int, grid: tuple[int, int]) -> torch.Tensor:
    """(L,) positions in the order in which they come in; only the look of the real orders."""
    rows, columns = grid
    if sampler == "raster":
        return torch.arange(rows * columns)
    chance = np.random.default_rng(seed)
    if sampler == "random":
        return torch.from_numpy(chance.permutation(rows * columns))
    if sampler == "confidence":
        y, x = np.divmod(np.arange(rows * columns), columns)
        seeds = chance.uniform(2, rows - 2, (3, 2))
        near = np.min([(y - a) ** 2 + (x - b) ** 2 for a, b in seeds], axis=0)
        return torch.from_numpy(np.argsort(near + chance.uniform(0, 6, near.shape)))

    def corput(k: int, base: int) -> float:
        value, part = 0.0, 1.0
        while k:
            part /= base
            k, digit = divmod(k, base)
            value += digit * part
        return value

    found: dict[int, None] = {}
    k = 0
    while len(found) < rows * columns:
        found.setdefault(int(corput(k, 2) * rows) * columns + int(corput(k, 3) * columns))
        k += 1
    return torch.tensor(list(found))


def draw(class_id: int, style: int, seed: int) -> Image.Image:
    """A 64 x 64 face whose colours, ears and mouth depend on class, style and seed."""
    chance = np.random.default_rng([class_id + 1, style + 1, seed])
    hue = 137 * (class_id + 1) % 360 + int(chance.integers(-12, 13))
    canvas = Image.new("RGB", (512, 512), "white")
    pen = ImageDraw.Draw(canvas)
    skin, dark, light = (f"hsl({hue % 360}, {s}%, {v}%)" for s, v in ((80, 58), (70, 34), (90, 80)))
    ear = int(chance.integers(0, 3))
    for side in (-1, 1):
        x = 256 + side * 120
        if ear == 0:
            pen.polygon([(x - 60, 170), (x + 60, 170), (x + side * 30, 30)], fill=skin, outline=dark, width=10)
        elif ear == 1:
            pen.ellipse([x - 66, 50, x + 66, 182], fill=dark)
    pen.ellipse([56, 86, 456, 476], fill=skin, outline=dark, width=12)
    pen.ellipse([150, 300, 362, 450], fill=light)
    look = int(chance.integers(-14, 15))
    for x in (186, 326):
        pen.ellipse([x - 40, 210, x + 40, 290], fill="white", outline=dark, width=8)
        pen.ellipse([x - 16 + look, 232, x + 16 + look, 272], fill="#1d1e22")
    pen.polygon([(232, 318), (280, 318), (256, 346)], fill=dark)
    if chance.integers(0, 2):
        pen.arc([196, 320, 316, 410], 20, 160, fill=dark, width=12)
    else:
        pen.chord([206, 340, 306, 430], 0, 180, fill=dark)
    return canvas.resize((64, 64), Image.LANCZOS)
