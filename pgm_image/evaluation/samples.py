"""Draw the images an evaluation looks at: one per (class, style) of the reference, each with its own seed."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from PIL import Image

from pgm_image.evaluation.image_set import ImageSet


class Generates(Protocol):
    """What the evaluation needs of a pipeline."""

    classes: list[str]
    styles: list[str]
    image_size: int

    def generate(self, class_id: Any, style: Any = None, **settings: Any) -> list[Image.Image]: ...


@dataclass(frozen=True)
class Settings:
    """Sampling settings; None leaves the model's recommended value."""

    steps: int | None = None
    sampler: str | None = None
    guidance_scale: float | None = None
    guidance_schedule: str | None = None
    temperature: float | None = None
    temperature_anneal: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    refine_rounds: int | None = None
    encoder_refresh: int | None = None
    refine_score: str | None = None

    def given(self) -> dict[str, Any]:
        """The settings that are not None, as keyword arguments of `generate`."""
        return {key: value for key, value in vars(self).items() if value is not None}

    def resolved(self, recommended: dict[str, Any]) -> dict[str, Any]:
        """What each setting will be: the given value, else the model's recommended one."""
        return {key: value if value is not None else recommended.get(key) for key, value in vars(self).items()}


def to_array(images: list[Image.Image]) -> np.ndarray:
    """PIL images of one size as (n, S, S, 3) uint8."""
    sizes = sorted({image.size for image in images})
    if len(sizes) != 1:
        raise ValueError(f"images must all have one size, got {sizes}")
    return np.stack([np.asarray(image.convert("RGB")) for image in images])


def label_map(pipe_names: list[str], data_names: tuple[str, ...], what: str) -> np.ndarray:
    """Data label -> pipeline label, by name; ValueError when the model does not know a name."""
    position = {name: index for index, name in enumerate(pipe_names)}
    unknown = [name for name in data_names if name not in position]
    if unknown:
        raise ValueError(f"data and model differ: the model has no {what} named {unknown[0]!r}")
    return np.array([position[name] for name in data_names])


def pipeline_labels(pipe: Generates, reference: ImageSet) -> tuple[np.ndarray, np.ndarray | None]:
    """Class and style ids (n,), as the pipeline numbers them, of the reference; None for no styles."""
    class_id = label_map(pipe.classes, reference.classes, "class")[reference.class_id]
    if not pipe.styles:
        return class_id, None
    return class_id, label_map(pipe.styles, reference.styles, "style")[reference.style_id]


def check_image_size(pipe: Generates, reference: ImageSet) -> None:
    """ValueError when model and data differ in size: resizing one of them would move every number."""
    if pipe.image_size != reference.images.shape[1]:
        expected = reference.images.shape[1]
        raise ValueError(f"the model draws {pipe.image_size} px, the data has {expected} px; give data of one size")


def generate_chunks(
    pipe: Generates,
    class_id: np.ndarray,
    style_id: np.ndarray | None,
    settings: Settings,
    seed: int,
    chunk: int,
) -> Iterator[np.ndarray]:
    """Images (<= chunk, S, S, 3) uint8 for labels (n,) in order; image i has seed `seed + i`."""
    for start in range(0, len(class_id), chunk):
        part = slice(start, start + chunk)
        images = pipe.generate(
            class_id=class_id[part].tolist(),
            style=None if style_id is None else style_id[part].tolist(),
            seed=seed + start,
            batch_size=chunk,
            **settings.given(),
        )
        yield to_array(images)


@dataclass(frozen=True)
class Drawn:
    """Generated images (n, S, S, 3) uint8 and the seconds they took."""

    images: np.ndarray
    seconds: float


def draw_samples(
    pipe: Generates,
    class_id: np.ndarray,
    style_id: np.ndarray | None,
    settings: Settings,
    seed: int = 0,
    chunk: int = 64,
    process: int = 0,
    processes: int = 1,
) -> Drawn:
    """Images for all labels (n,), or, under several processes, for this one's contiguous share."""
    bounds = np.linspace(0, len(class_id), processes + 1).astype(int)
    mine = slice(bounds[process], bounds[process + 1])
    start = time.perf_counter()
    styles = None if style_id is None else style_id[mine]
    parts = list(generate_chunks(pipe, class_id[mine], styles, settings, seed + int(bounds[process]), chunk))
    return Drawn(np.concatenate(parts), time.perf_counter() - start)
