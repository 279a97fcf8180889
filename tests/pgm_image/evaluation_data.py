"""Synthetic image shards and a formula pipeline for the evaluation tests."""

import json
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ["circle", "square", "cross"]
STYLES = ["red", "blue"]
SIZE = 16


def draw(class_id: int, style_id: int, rng: np.random.Generator) -> np.ndarray:
    """(16, 16, 3) uint8: a shape in a colour on white, moved and shaded at random."""
    y, x = np.mgrid[:SIZE, :SIZE]
    cy, cx = rng.integers(6, 10, size=2)
    dy, dx = abs(y - cy), abs(x - cx)
    shape = (dy**2 + dx**2 < 20, np.maximum(dy, dx) < 4, np.minimum(dy, dx) < 2)[class_id]
    image = np.full((SIZE, SIZE, 3), 255.0)
    colour = np.array([(220, 40, 40), (40, 40, 220)][style_id]) + rng.integers(-30, 30, size=3)
    image[shape] = colour
    return image.clip(0, 255).round().astype(np.uint8)


def write_shards(folder: Path, train: int = 8, heldout: int = 3) -> Path:
    """Shards with `train` and `heldout` concepts a class, each in both styles; circles also have one tone variant."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    concept = 0
    for split, count in (("train", train), ("heldout", heldout)):
        rows = []
        for class_id in range(len(CLASSES)):
            for _ in range(count):
                for style_id in range(len(STYLES)):
                    for tone in (0, 3) if class_id == 0 else (0,):
                        rows.append((draw(class_id, style_id, rng), class_id, style_id, concept, tone))
                concept += 1
        images, class_ids, style_ids, concepts, tones = (np.array(column) for column in zip(*rows, strict=True))
        np.savez_compressed(
            folder / f"{split}-00000.npz",
            images=images,
            class_id=class_ids.astype(np.int16),
            style_id=style_ids.astype(np.int16),
            concept_id=concepts.astype(np.int32),
            tone=tones.astype(np.int8),
        )
    manifest = {
        "name": "shapes16",
        "size": SIZE,
        "splits": {"train": ["train-00000.npz"], "heldout": ["heldout-00000.npz"]},
        "classes": CLASSES,
        "styles": STYLES,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


class DrawingPipeline:
    """Generates by the formula of `draw`; image i depends on its labels and `seed + i` alone, as the real one's."""

    classes = CLASSES[::-1]  # numbered differently from the data on purpose
    styles = STYLES
    image_size = SIZE
    recommended = {"steps": 8, "sampler": "halton", "guidance_scale": 1.0, "temperature": 1.0}

    def __init__(self):
        self.calls: list[dict] = []

    def generate(self, class_id, style=None, seed=0, batch_size=16, **settings):
        self.calls.append({"class_id": class_id, "style": style, "seed": seed} | settings)
        noise = 60 * (settings.get("temperature") or 0.0)
        images = []
        for index, (label, style_id) in enumerate(zip(class_id, style, strict=True)):
            rng = np.random.default_rng(seed + index)
            image = draw(CLASSES.index(self.classes[label]), style_id, rng)
            image = image + noise * rng.standard_normal(image.shape)
            images.append(Image.fromarray(image.clip(0, 255).round().astype(np.uint8)))
        return images
