"""What can be known of a model without reading its weights: model_index.json, in the manner of diffusers."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pgm.model_index import read_index, write_index

PIPELINE = "PGMPipeline"
COMPONENTS = {"transformer": ["pgm.models", "transformer"], "tokenizer": ["tokenizer.vqgan", "VQGAN"]}


@dataclass(frozen=True)
class ModelInfo:
    """Labels, sizes and recommended settings of a model."""

    name: str
    architecture: str  # "pgm" or "maskgit"
    title: str
    image_size: int  # pixels
    grid: tuple[int, int]  # codes
    codebook_size: int
    classes: tuple[str, ...]
    styles: tuple[str, ...] = ()
    recommended: dict[str, Any] = field(default_factory=dict)  # steps, sampler, guidance_scale, temperature, ...
    editing: dict[str, Any] = field(default_factory=dict)  # in place of recommended ones where codes are given
    presets: dict[str, dict[str, Any]] = field(default_factory=dict)  # e.g. Draft, Balanced, Best
    unseen: tuple[tuple[int, int], ...] = ()  # (class, style) pairs that training never saw
    parameters: int = 0
    licence: str = ""
    credits: tuple[dict[str, str], ...] = ()  # artwork: style, artwork, licence, source
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)  # class name -> more words to search it by
    source: str = ""  # of a published model: repository and file that it comes from
    fid: float | None = None  # as its authors published it
    published: dict[str, Any] = field(default_factory=dict)  # settings to add for sampling as the authors' code does

    @property
    def length(self) -> int:
        """Number of codes of a picture."""
        return self.grid[0] * self.grid[1]

    def for_editing(self) -> "ModelInfo":
        """The same with the settings recommended for edits, where the codes that are given say what the picture is."""
        return replace(self, recommended={**self.recommended, **self.editing})


def read_info(folder: str | Path) -> ModelInfo:
    """model_index.json of a model folder. Raises ValueError naming the file when it is missing or not usable."""
    return read_index(folder, ModelInfo, PIPELINE)


def write_info(info: ModelInfo, folder: str | Path) -> None:
    """Write model_index.json, with the names of the component folders that diffusers users look for."""
    write_index(info, folder, PIPELINE, COMPONENTS)
