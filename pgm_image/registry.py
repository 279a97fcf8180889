"""Models by name: bundled ones in assets/, published ones, folders in our layout, and hub repositories likewise."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from pgm.hub import download_folder, is_hub_id
from pgm.model_index import FILE
from pgm_image.model_info import ModelInfo, read_info
from pgm_image.public_models import PUBLIC_MODELS, PublicModel

ASSETS = Path(__file__).resolve().parent.parent / "assets"
DEFAULT_MODEL = "emoji64"


def models(public: bool = False) -> list[ModelInfo]:
    """All bundled models, the default first; with `public` then the published ones, on this machine or not yet."""
    folders = sorted(path.parent for path in ASSETS.glob(f"*/{FILE}"))
    found = [read_info(folder) for folder in folders]
    bundled = sorted(found, key=lambda info: (info.name != DEFAULT_MODEL, info.name))
    return [*bundled, *(model.info() for model in PUBLIC_MODELS.values() if public)]


def public_model(name: str | Path) -> PublicModel | None:
    """The published model of this name; None for any other, and where a bundled one is called the same."""
    return None if _is_bundled(str(name)) else PUBLIC_MODELS.get(str(name))


def why_unavailable(name: str | Path, online: bool | None = None) -> str | None:
    """Why a model cannot be loaded now, in one sentence; None when it can, if only by downloading it first.

    online: whether the hub answers; None asks it (a few seconds at most), where that matters. Raises ValueError for an
    unknown name.
    """
    public = public_model(name)
    if public is None:
        if not is_hub_id(str(name)):
            find_folder(name)
        return None
    from pgm_image import public_loading

    return public_loading.why_unavailable(public, online=online)


def unavailable_models(download: bool = True) -> dict[str, str]:
    """Names of published models that cannot be loaded now, each with the reason; the hub is asked at most once.

    download: whether a model that would have to be downloaded first counts as available; without, nothing is asked over
    the network.
    """
    from pgm_image import public_loading

    absent = [model for model in PUBLIC_MODELS.values() if not public_loading.is_here(model)]
    if not download:
        return {model.name: _not_here(model) for model in absent if not _is_bundled(model.name)}
    online = bool(absent) and not public_loading.is_offline() and public_loading.hub_answers()
    reasons = {model.name: public_loading.why_unavailable(model, online=online) for model in absent}
    return {name: reason for name, reason in reasons.items() if reason}


def find_folder(name: str | Path, **download: Any) -> Path:
    """Folder of a model; a hub id is downloaded by huggingface_hub (arguments `download`) or taken from its cache.

    Raises ValueError that lists the known names, or says which repository could not be had and what to do.
    """
    text = str(name)
    if _is_bundled(text):
        return ASSETS / text
    if Path(text).is_dir():
        if not (Path(text) / FILE).is_file():
            raise ValueError(f"no model at {text!r}: {FILE} is missing")
        return Path(text)
    if is_hub_id(text):
        return download_folder(text, FILE, "transformer/ and tokenizer/", **download)
    names = ", ".join(info.name for info in models()) or "none is bundled"
    raise ValueError(
        f"model must be a bundled name ({names}), a published one ({', '.join(PUBLIC_MODELS)}), a folder with {FILE}, "
        f"or a hub id 'user/model', got {text!r}"
    )


def model_info(name: str | Path) -> ModelInfo:
    """Index of a model without its weights."""
    public = public_model(name)
    return public.info() if public else read_info(find_folder(name))


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


def _not_here(model: PublicModel) -> str:
    repositories = " and ".join(dict.fromkeys(repo for repo, _ in model.files if repo))
    return f"not on this machine: at least {model.download_bytes / 1e9:.1f} GB to download from {repositories}"


def _is_bundled(text: str) -> bool:
    return (ASSETS / text / FILE).is_file() and Path(text).name == text
