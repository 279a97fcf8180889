"""What can be known of a model without reading its weights: model_index.json, in the manner of diffusers."""

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

FILE = "model_index.json"


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


def read_info(folder: str | Path) -> ModelInfo:
    """model_index.json of a model folder. Raises ValueError naming the file when it is missing or not usable."""
    path = Path(folder) / FILE
    if not path.is_file():
        raise ValueError(f"no model at {str(folder)!r}: {FILE} is missing")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        known = {f.name for f in fields(ModelInfo)}
        values = {key: _frozen(value) for key, value in values.items() if key in known}
        return ModelInfo(**values)
    except (json.JSONDecodeError, UnicodeDecodeError, TypeError) as error:
        raise ValueError(f"{path} is not a usable model index ({error}); download the model again") from error


def write_info(info: ModelInfo, folder: str | Path) -> None:
    """Write model_index.json, with the names of the component folders that diffusers users look for."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    values = {
        "_class_name": "PGMPipeline",
        "transformer": ["pgm.models", "transformer"],
        "tokenizer": ["tokenizer.vqgan", "VQGAN"],
        **asdict(info),
    }
    (path / FILE).write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _frozen(value: Any) -> Any:
    # Lists become tuples, so that the frozen dataclass compares equal after a round trip.
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return value
