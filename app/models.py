"""Access to image pipelines by name: loaded when first needed, kept, shared by all visitors."""

import threading
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from PIL import Image
from torch import Tensor

import pgm_image
from pgm.sampling import Step
from pgm_image.model_info import ModelInfo
from pgm_image.request import Request


class Tokenizer(Protocol):
    """What the page needs of `tokenizer.VQGAN`."""

    config: Any
    quantizer: Any

    def encode(self, images: Tensor) -> Tensor: ...

    def decode_images(self, codes: Tensor) -> list[Image.Image]: ...


class ImagePipeline(Protocol):
    """What the page needs of `pgm_image.PGMPipeline`; tests bring a small stand-in."""

    info: ModelInfo
    tokenizer: Tokenizer

    def request(self, class_id: object, **settings: object) -> Request: ...

    def steps(self, request: Request, known_codes: Tensor | None = None) -> Iterator[Step]: ...

    def decode(self, codes: Tensor) -> list[Image.Image]: ...


class Models:
    """Models a visitor may choose from. `pipelines` (name -> pipeline) replaces those bundled with `pgm_image`."""

    def __init__(self, pipelines: Mapping[str, ImagePipeline] | None = None) -> None:
        self._given = pipelines
        infos = pgm_image.models() if pipelines is None else [pipeline.info for pipeline in pipelines.values()]
        self._infos = {info.name: info for info in infos}
        self._lock = threading.Lock()
        if not self._infos:
            raise ValueError("no model is bundled with pgm_image; train one, or put one into the assets folder")

    def names(self) -> list[str]:
        """All names; the first is the default."""
        return list(self._infos)

    def info(self, name: str) -> ModelInfo:
        """Labels, sizes and recommended settings of a model, without its weights. ValueError when there is none."""
        if name not in self._infos:
            raise ValueError(f"model must be one of {', '.join(self._infos)}, got {name!r}")
        return self._infos[name]

    def twin(self, name: str) -> str | None:
        """Name of a model of the other kind (partition, masked) that draws the same things with the same codes."""
        one = self.info(name)
        same = ("codebook_size", "grid", "image_size", "classes", "styles")
        for other in self._infos.values():
            kinds = {one.architecture, other.architecture}
            if kinds == {"pgm", "maskgit"} and all(getattr(one, key) == getattr(other, key) for key in same):
                return other.name
        return None

    def pipeline(self, name: str) -> ImagePipeline:
        """The pipeline called `name`; ValueError when there is none. Loading happens once, others wait for it."""
        self.info(name)
        if self._given is not None:
            return self._given[name]
        with self._lock:
            return pgm_image.load(name)
