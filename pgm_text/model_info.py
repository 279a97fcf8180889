"""What can be known of a text model without reading its weights: model_index.json, in the manner of diffusers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

FILE = "model_index.json"


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
    path = Path(folder) / FILE
    if not path.is_file():
        raise ValueError(f"no model at {str(folder)!r}: {FILE} is missing")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if values.get("_class_name") != "TextPipeline":
            raise ValueError(f"{path} describes a {values.get('_class_name')}, not a text model (TextPipeline)")
        known = {f.name for f in fields(TextModelInfo)}
        values = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items() if key in known}
        return TextModelInfo(**values)
    except (json.JSONDecodeError, UnicodeDecodeError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a usable model index ({error}); download the model again") from error


def write_info(info: TextModelInfo, folder: str | Path) -> None:
    """Write model_index.json, with the names of the component folders that diffusers users look for."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    values = {
        "_class_name": "TextPipeline",
        "transformer": ["pgm.models", "transformer"],
        "tokenizer": ["pgm_text.tokenizer", "Tokenizer"],
        **asdict(info),
    }
    (path / FILE).write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
