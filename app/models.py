"""Access to image pipelines by name: loaded when first needed, shared by all visitors, given up for others."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Protocol

from PIL import Image
from torch import Tensor

import pgm_image
from app.limits import Limits
from app.model_cache import ModelCache
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
    """Models a visitor may choose from: those bundled with `pgm_image`, then published ones that are on this machine.

    pipelines (name -> pipeline) replaces them; absent: names of models that are shown but cannot be chosen, with the
    reason, by default the published ones that are not here; most: how many are in memory at a time.
    """

    def __init__(
        self,
        pipelines: Mapping[str, ImagePipeline] | None = None,
        absent: Mapping[str, str] | None = None,
        most: int = Limits.max_models,
    ) -> None:
        self._given = pipelines
        self._loaded: ModelCache[ImagePipeline] = ModelCache(most)
        if pipelines is None:
            infos = pgm_image.models(public=True)
            reasons = pgm_image.unavailable_models(download=False)
        else:
            infos, reasons = [pipeline.info for pipeline in pipelines.values()], {}
        reasons = reasons if absent is None else dict(absent)
        self._titles = {info.name: info.title for info in infos}
        self._absent = reasons
        self._infos = {info.name: info for info in infos if info.name not in reasons}
        if not self._infos:
            raise ValueError("no model is bundled with pgm_image; train one, or put one into the assets folder")

    def names(self) -> list[str]:
        """All names; the first is the default."""
        return list(self._infos)

    def title(self, name: str) -> str:
        """What a model is called on the page, whether it can be chosen or not."""
        return self._titles.get(name, name)

    def absent(self) -> dict[str, str]:
        """Names of models that cannot be chosen, with the reason."""
        return dict(self._absent)

    def loaded(self) -> list[str]:
        """Names of the models that are in memory."""
        return self._loaded.names() if self._given is None else list(self._given)

    def info(self, name: str) -> ModelInfo:
        """Labels, sizes and recommended settings of a model, without its weights. ValueError when there is none."""
        if name in self._absent:
            raise ValueError(f"model {name!r} is {self._absent[name]}")
        if name not in self._infos:
            raise ValueError(f"model must be one of {', '.join(self._infos)}, got {name!r}")
        return self._infos[name]

    def twin(self, name: str) -> str | None:
        """Name of a model of the other kind (partition, masked) that draws the same things with the same codes.

        Of several it is the one nearest in size, of equally near ones the first.
        """
        one = self.info(name)
        same = ("codebook_size", "grid", "image_size", "classes", "styles")
        others = [
            other
            for other in self._infos.values()
            if {one.architecture, other.architecture} == {"pgm", "maskgit"}
            and all(getattr(one, key) == getattr(other, key) for key in same)
        ]
        if not others:
            return None
        return min(others, key=lambda other: abs(other.parameters - one.parameters)).name

    def pipeline(self, name: str) -> ImagePipeline:
        """The pipeline called `name`; ValueError when there is none. Loading happens once, others wait for it."""
        self.info(name)
        if self._given is not None:
            return self._given[name]
        return self._loaded.get(name, lambda: pgm_image.PGMPipeline.from_pretrained(name))

    def warm_up(self, count: int, steps: int) -> None:
        """Load the first `count` models and run `steps` steps of each with its recommended settings."""
        for name in self.names()[:count]:
            pipeline = self.pipeline(name)
            if steps:
                warm_up(pipeline, pipeline.request(None), steps)


def warm_up(pipeline: ImagePipeline, request: Request, count: int = 1) -> None:
    """The first `count` steps of a request, thrown away: the first pass of a network pays for setting up."""
    with closing(pipeline.steps(request)) as steps:
        for _, _ in zip(range(count), steps, strict=False):
            pass
