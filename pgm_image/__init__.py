"""Class-conditional images by partition generative modelling.

>>> import pgm_image
>>> pgm_image.generate(class_id="bird", style="noto", seed=3)[0].save("bird.png")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgm_image.api import (
        classes,
        generate,
        generate_steps,
        load,
        models,
        unavailable_models,
        why_unavailable,
    )
    from pgm_image.editing import edit, edit_steps, outpaint, variations
    from pgm_image.pipeline import PGMPipeline

__all__ = [
    "PGMPipeline",
    "classes",
    "edit",
    "edit_steps",
    "generate",
    "generate_steps",
    "load",
    "models",
    "outpaint",
    "unavailable_models",
    "variations",
    "why_unavailable",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Lazily, so that `python -m pgm_image --help` and data preparation need not load torch.
    if name == "PGMPipeline":
        from pgm_image.pipeline import PGMPipeline

        return PGMPipeline
    if name in ("edit", "edit_steps", "outpaint", "variations"):
        from pgm_image import editing

        return getattr(editing, name)
    if name in __all__:
        from pgm_image import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
