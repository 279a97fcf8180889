"""Text models by name: bundled ones in assets/text/, published checkpoints, folders in our layout, hub repositories."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from pgm.hub import download_folder, is_hub_id
from pgm.model_index import FILE
from pgm_text.checkpoints import CONTEXT, PUBLIC_CHECKPOINTS
from pgm_text.model_info import TextModelInfo, read_info
from pgm_text.tokenizer import Tokenizer, gpt2_tokenizer

ASSETS = Path(__file__).resolve().parent.parent / "assets" / "text"
DEFAULT_MODEL = "dictionary-pgm"


def models(*, public: bool = False) -> list[TextModelInfo]:
    """All bundled models, the default first; with `public` also the published checkpoints, which are downloaded."""
    found = [read_info(path.parent) for path in sorted(ASSETS.glob(f"*/{FILE}"))]
    found.sort(key=lambda info: (info.name != DEFAULT_MODEL, info.name))
    return found + [checkpoint_info(name) for name in PUBLIC_CHECKPOINTS] if public else found


def is_checkpoint(name: str | Path) -> bool:
    """Whether the name is a published checkpoint's or a checkpoint file's."""
    return str(name) in PUBLIC_CHECKPOINTS or (Path(name).is_file() and Path(name).suffix != ".json")


def checkpoint_info(name: str | Path) -> TextModelInfo:
    """What is known of a published checkpoint before it is downloaded; recommended settings are its authors'."""
    public = PUBLIC_CHECKPOINTS.get(str(name))
    return TextModelInfo(
        name=str(name),
        architecture="pgm" if "pgm_" in Path(name).name else "mdlm",
        title=public.title if public else f"checkpoint {Path(name).name}",
        length=CONTEXT - 1,
        layout="wrapped",
        vocab_size=50258,
        recommended={"steps": 128, "sampler": "uniform", "temperature": 1.0},
        licence=public.licence if public else "",
    )


def find_folder(name: str | Path, **download: Any) -> Path:
    """Folder of a model in our layout; a hub id is downloaded by huggingface_hub (arguments `download`).

    Raises ValueError that lists the known names, or says which repository could not be had and what to do.
    """
    text = str(name)
    if Path(text).name == text and (ASSETS / text / FILE).is_file():
        return ASSETS / text
    if Path(text).is_dir():
        if not (Path(text) / FILE).is_file():
            raise ValueError(f"no model at {text!r}: {FILE} is missing")
        return Path(text)
    if is_hub_id(text):
        return download_folder(text, FILE, "transformer/ and tokenizer.json", **download)
    names = ", ".join(info.name for info in models(public=True))
    raise ValueError(
        f"model must be one of {names}, a folder with {FILE}, a checkpoint file, or a hub id 'user/model', got {text!r}"
    )


def model_info(name: str | Path) -> TextModelInfo:
    """Index of a model without its weights."""
    return checkpoint_info(name) if is_checkpoint(name) else read_info(find_folder(name))


@lru_cache(maxsize=8)
def _tokenizer(folder: Path | None) -> Tokenizer:
    return gpt2_tokenizer() if folder is None else Tokenizer.load(folder)


def tokenizer_of(name: str | Path, **download: Any) -> Tokenizer:
    """Tokenizer of a model, loaded once: its own, or GPT-2's for published checkpoints."""
    return _tokenizer(None if is_checkpoint(name) else find_folder(name, **download))


def load(
    model: str | Path = DEFAULT_MODEL,
    device: torch.device | str | None = None,
    dtype: torch.dtype | str | None = None,
    attention: str = "auto",
) -> TextPipeline:  # noqa: F821
    """The pipeline of a model, loaded once per (model, device, dtype, attention) and then kept."""
    return _load(str(model), None if device is None else str(device), dtype, attention)


@lru_cache(maxsize=4)
def _load(model: str, device: str | None, dtype: torch.dtype | str | None, attention: str) -> Any:
    from pgm_text.pipeline import TextPipeline

    return TextPipeline.from_pretrained(model, device=device, dtype=dtype, attention=attention)
