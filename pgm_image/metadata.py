"""Settings inside a PNG, so that a picture can be made again: one JSON text chunk, readable by people."""

import json
from pathlib import Path
from typing import Any, BinaryIO

from PIL import Image
from PIL.PngImagePlugin import PngInfo

KEY = "pgm-image"
MAX_CHARACTERS = 100_000
# Settings of pictures from before there were these.
OLDER = {"encoder_refresh": 1, "refine_rounds": 0, "refine_score": "likelihood"}


def picture_settings(
    request: Any, index: int, model: str, class_name: str | None, style_name: str | None
) -> dict[str, Any]:
    """Everything needed to make picture `index` of a request again, with its own seed (arguments of `generate`)."""
    from dataclasses import asdict

    from pgm_image import __version__

    sampling = asdict(request.sampling)
    return {
        "model": model,
        "class_id": class_name,
        "style": style_name,
        "seed": request.seeds[index],
        "steps": sampling["steps"],
        "sampler": sampling["order"],
        "schedule": sampling["schedule"],
        "guidance_scale": sampling["guidance_scale"],
        "guidance_schedule": sampling["guidance_schedule"],
        "temperature": sampling["temperature"],
        "top_k": sampling["top_k"],
        "top_p": sampling["top_p"],
        "roll": sampling["roll"],
        "confidence_temperature": sampling["confidence_temperature"],
        "temperature_warmup": sampling["temperature_warmup"],
        "temperature_anneal": sampling["temperature_anneal"],
        "resample_known": sampling["resample_known"],
        "encoder_refresh": sampling["encoder_refresh"],
        "refine_rounds": sampling["refine_rounds"],
        "refine_share": sampling["refine_share"],
        "refine_steps": sampling["refine_steps"],
        "refine_score": sampling["refine_score"],
        "visible_length": request.visible_length,
        "version": __version__,
    }


def png_info(settings: dict[str, Any]) -> PngInfo:
    """For `image.save(path, pnginfo=...)`."""
    info = PngInfo()
    info.add_text(KEY, json.dumps(settings, ensure_ascii=True))
    info.add_text("Software", "pgm-image")
    return info


def read_settings(png: str | Path | BinaryIO | Image.Image) -> dict[str, Any]:
    """Settings of a PNG made by us. Raises ValueError in one sentence when there are none or they are not usable."""
    image = png if isinstance(png, Image.Image) else Image.open(png)
    text = getattr(image, "text", {}).get(KEY) or image.info.get(KEY)
    if not text:
        raise ValueError("this picture carries no pgm-image settings (only PNG files saved by pgm-image do)")
    if len(text) > MAX_CHARACTERS:
        raise ValueError("the settings in this picture are too long to be ours")
    try:
        settings = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the settings in this picture are damaged ({error})") from error
    if not isinstance(settings, dict):
        raise ValueError("the settings in this picture are damaged (not an object)")
    return {**OLDER, **settings}


def generate_arguments(settings: dict[str, Any]) -> dict[str, Any]:
    """The part of read settings that `pgm_image.generate` takes; what is null stays out."""
    known = set(picture_keys())
    return {key: value for key, value in settings.items() if key in known and value is not None}


def picture_keys() -> tuple[str, ...]:
    """Argument names that settings may hold."""
    return (
        "model", "class_id", "style", "seed", "steps", "sampler", "schedule", "guidance_scale", "guidance_schedule",
        "temperature", "top_k", "top_p", "roll", "confidence_temperature", "temperature_warmup", "temperature_anneal",
        "resample_known", "encoder_refresh", "refine_rounds", "refine_share", "refine_steps", "refine_score",
        "visible_length",
    )  # fmt: skip
