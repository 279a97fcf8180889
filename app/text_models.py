"""Access to text pipelines by name. Text is optional: without a model, or with a broken one, the page says why."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor

import pgm_text
from app.faults import sentence
from app.model_cache import ModelCache
from pgm.sampling import Step
from pgm_text.model_info import TextModelInfo
from pgm_text.request import TextRequest
from pgm_text.tokenizer import Tokenizer

log = logging.getLogger(__name__)

KINDS = {"pgm": "PGM", "mdlm": "MDLM", "rmdm": "RMDM"}
NONE = (
    "No text model is installed: train one with python -m pgm_text train, and put it into the folder assets/text with "
    "python -m pgm_text export."
)


class TextPipeline(Protocol):
    """What the page needs of `pgm_text.TextPipeline`; tests bring a small stand-in."""

    info: TextModelInfo
    tokenizer: Tokenizer

    def request(self, prompt: str | None, **settings: Any) -> TextRequest: ...

    def steps(self, request: TextRequest) -> Iterator[Step]: ...

    def decode(self, codes: Tensor, unknown: str = "____") -> list[str]: ...

    def draw_latents(self, seeds: Sequence[int]) -> Tensor: ...


class TextModels:
    """Text models a visitor may choose from. `pipelines` (name -> pipeline) replaces those bundled with `pgm_text`.

    missing: why there is none, as one sentence; blank when there is one.
    """

    def __init__(self, pipelines: Mapping[str, TextPipeline] | None = None) -> None:
        self._given = pipelines
        self._loaded: ModelCache[TextPipeline] = ModelCache(len(KINDS))  # as many as stand side by side
        self.missing = ""
        try:
            infos = pgm_text.models() if pipelines is None else [pipeline.info for pipeline in pipelines.values()]
        except (ValueError, OSError) as fault:  # a broken text model must not take the pictures down
            infos, self.missing = [], sentence(fault)
        self._infos = {info.name: info for info in infos}
        if not infos:
            self.missing = self.missing or NONE

    def names(self) -> list[str]:
        """All names; the first is the default."""
        return list(self._infos)

    def info(self, name: str) -> TextModelInfo:
        """Sizes and recommended settings of a model, without its weights. ValueError when there is none."""
        if self.missing:
            raise ValueError(self.missing)
        if name not in self._infos:
            raise ValueError(f"model must be one of {', '.join(self._infos)}, got {str(name)[:80]!r}")
        return self._infos[name]

    def loaded(self) -> list[str]:
        """Names of the models that are in memory."""
        return self._loaded.names() if self._given is None else list(self._given)

    def beside(self, name: str) -> tuple[list[str], list[str]]:
        """Names of one model of each kind that can be compared with `name`, itself among them, and the kinds that have
        none. Models compare when they share vocabulary and length.
        """
        one = self.info(name)
        found, lacking = [], []
        for architecture, kind in KINDS.items():
            alike = [
                info.name
                for info in self._infos.values()
                if (info.architecture, info.vocab_size, info.length) == (architecture, one.vocab_size, one.length)
            ]
            if alike:
                found.append(name if name in alike else alike[0])
            else:
                lacking.append(kind)
        return found, lacking

    def left_out(self, name: str) -> str:
        """Which kinds of model cannot stand beside `name`, and why; blank when all can."""
        _, lacking = self.beside(name)
        if not lacking:
            return ""
        kinds = f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'}"
        return f"{kinds} left out: no such model that shares the vocabulary is installed."

    def warm_up(self) -> None:
        """Load every model now. One that cannot be loaded is told of when it is asked for."""
        for name in self.names():
            try:
                self.pipeline(name)
            except (ValueError, OSError):
                log.exception("text model %s could not be loaded", name)

    def pipeline(self, name: str) -> TextPipeline:
        """The pipeline called `name`; ValueError when there is none. Loading happens once, others wait for it."""
        self.info(name)
        if self._given is not None:
            return self._given[name]
        return self._loaded.get(name, lambda: pgm_text.TextPipeline.from_pretrained(name))
