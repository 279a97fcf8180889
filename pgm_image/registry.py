"""Models by name: bundled ones in assets/, folders in our layout, and hub repositories with the same layout."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from pgm_image.model_info import FILE, ModelInfo, read_info

ASSETS = Path(__file__).resolve().parent.parent / "assets"
DEFAULT_MODEL = "emoji64"


def models() -> list[ModelInfo]:
    """All bundled models, the default first."""
    folders = sorted(path.parent for path in ASSETS.glob(f"*/{FILE}"))
    found = [read_info(folder) for folder in folders]
    return sorted(found, key=lambda info: (info.name != DEFAULT_MODEL, info.name))


def find_folder(name: str | Path, **download: Any) -> Path:
    """Folder of a model; a hub id is downloaded by huggingface_hub (arguments `download`) or taken from its cache.

    Raises ValueError that lists the known names, or says which repository could not be had and what to do.
    """
    text = str(name)
    if (ASSETS / text / FILE).is_file() and Path(text).name == text:
        return ASSETS / text
    if Path(text).is_dir():
        if not (Path(text) / FILE).is_file():
            raise ValueError(f"no model at {text!r}: {FILE} is missing")
        return Path(text)
    if _is_hub_id(text):
        return _download(text, **download)
    names = ", ".join(info.name for info in models()) or "none is bundled"
    raise ValueError(
        f"model must be a bundled name ({names}), a folder with {FILE}, or a hub id 'user/model', got {text!r}"
    )


def model_info(name: str | Path) -> ModelInfo:
    """Index of a model without its weights."""
    return read_info(find_folder(name))


def load(
    model: str | Path = DEFAULT_MODEL,
    device: torch.device | str | None = None,
    dtype: torch.dtype | str | None = None,
    attention: str = "auto",
) -> "PGMPipeline":  # noqa: F821
    """The pipeline of a model, loaded once per (model, device, dtype, attention) and then kept."""
    return _load(str(model), None if device is None else str(device), dtype, attention)


@lru_cache(maxsize=4)
def _load(model: str, device: str | None, dtype: torch.dtype | str | None, attention: str) -> "PGMPipeline":  # noqa: F821
    from pgm_image.pipeline import PGMPipeline

    return PGMPipeline.from_pretrained(model, device=device, dtype=dtype, attention=attention)


def _is_hub_id(text: str) -> bool:
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    try:
        validate_repo_id(text)
    except HFValidationError:
        return False
    return text.count("/") == 1


def _download(repo: str, **download: Any) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    patterns = ["*.json", "*.safetensors", "README.md"]
    try:
        folder = Path(snapshot_download(repo, allow_patterns=patterns, **download))
    except LocalEntryNotFoundError as error:
        raise ValueError(
            f"model {repo!r} is not in the cache and the hub cannot be reached; go online once, or put {FILE}, "
            f"transformer/ and tokenizer/ of that repository into a folder and give its path"
        ) from error
    except (HfHubHTTPError, OSError) as error:
        raise ValueError(f"model {repo!r} could not be downloaded: {error}") from error
    if not (folder / FILE).is_file():
        raise ValueError(f"hub repository {repo!r} has no {FILE}: it is not in the layout of this project")
    return folder
