"""What can be known of a text model without reading its weights: model_index.json, in the manner of diffusers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgm.model_index import read_index, write_index

PIPELINE = "TextPipeline"
COMPONENTS = {"transformer": ["pgm.models", "transformer"], "tokenizer": ["pgm_text.tokenizer", "Tokenizer"]}


@dataclass(frozen=True)
class TextModelInfo:
    """Sizes and recommended settings of a model."""

    name: str
    architecture: str  # "pgm", "mdlm" or "rmdm"
    title: str
    length: int  # most cells of a text, in tokens
    layout: str = "entries"  # "entries": a text ends with the end token; "wrapped": a window into running text
    vocab_size: int = 0
    latent_width: int = 0  # size of z, 0 = none
    recommended: dict[str, Any] = field(default_factory=dict)  # steps, sampler, temperature, top_p, ...
    presets: dict[str, dict[str, Any]] = field(default_factory=dict)  # e.g. Draft, Balanced, Best
    examples: tuple[str, ...] = ()  # prompts that show what the model can do
    parameters: int = 0
    licence: str = ""
    credits: tuple[dict[str, str], ...] = ()  # texts: name, licence, notice
    training: dict[str, Any] = field(default_factory=dict)  # steps, tokens seen, ...
    measured: dict[str, Any] = field(default_factory=dict)  # what `evaluate` found


def read_info(folder: str | Path) -> TextModelInfo:
    """model_index.json of a model folder. Raises ValueError naming the file when it is missing or not usable."""
    return read_index(folder, TextModelInfo, PIPELINE)


def write_info(info: TextModelInfo, folder: str | Path) -> None:
    """Write model_index.json, with the names of the component folders that diffusers users look for."""
    write_index(info, folder, PIPELINE, COMPONENTS)
