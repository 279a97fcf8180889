"""English text by partition generative modelling (PGM), with its masked baseline (MDLM) and RMDM beside it.

>>> import pgm_text
>>> pgm_text.generate("lantern (noun): ", seed=3)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgm_text.api import generate, generate_steps, load, models, slerp
    from pgm_text.pipeline import TextPipeline

__all__ = ["TextPipeline", "generate", "generate_steps", "load", "models", "slerp"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Lazily, so that `python -m pgm_text --help` and data preparation need not load torch.
    if name == "TextPipeline":
        from pgm_text.pipeline import TextPipeline

        return TextPipeline
    if name in __all__:
        from pgm_text import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
