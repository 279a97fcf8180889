"""The public functions of the package: generate, generate_steps, load, and what models and classes there are."""

from collections.abc import Iterator
from typing import Any

from pgm.sampling import Step
from pgm_image.registry import (
    DEFAULT_MODEL,
    load,
    model_info,
    models,
    unavailable_models,
    why_unavailable,
)
from pgm_image.request import make_request

__all__ = [
    "classes",
    "generate",
    "generate_steps",
    "load",
    "models",
    "unavailable_models",
    "why_unavailable",
]

_PIPELINE_ARGUMENTS = ("batch_size", "output_type", "progress", "callback_on_step_end")


def generate(
    class_id: Any,
    *,
    model: str = DEFAULT_MODEL,
    device: Any = None,
    dtype: Any = None,
    attention: str = "auto",
    **arguments: Any,
) -> Any:
    """Generate pictures of a class with a bundled or public model.

    class_id: id, name, list of those, or None for no class. Further arguments are those of `PGMPipeline.generate`
    (batch_size, output_type, progress, callback_on_step_end) and of `request.make_request` (style, num_images, steps,
    sampler, guidance_scale, guidance_schedule, temperature, top_k, top_p, schedule, seed, roll, ...); what is left out
    is the model's recommended setting. Picture i has seed `seed` + i and is the same in any batch, but for draws within
    rounding of the edge between two codes.

    Returns a list of PIL images (see `output_type`). Raises ValueError naming the argument, the value and what is
    allowed, before any weight is read.

    >>> generate(class_id=["cat or monkey face", "bird"], num_images=2, style="noto", steps=16)
    """
    _check(model, class_id, arguments)
    return load(model, device, dtype, attention).generate(class_id, **arguments)


def generate_steps(
    class_id: Any,
    *,
    model: str = DEFAULT_MODEL,
    device: Any = None,
    dtype: Any = None,
    attention: str = "auto",
    **arguments: Any,
) -> Iterator[Step]:
    """The generator of steps behind `generate`; same arguments but for those that concern its output.

    Each `Step` holds the codes known so far; `load(model).decode(step.codes)` shows them. Closing it ends the work.
    """
    _check(model, class_id, arguments)
    return load(model, device, dtype, attention).generate_steps(class_id, **arguments)


def classes(model: str = DEFAULT_MODEL) -> list[str]:
    """Class names of a model, in the order of their ids."""
    return list(model_info(model).classes)


def _check(model: str, class_id: Any, arguments: dict[str, Any]) -> None:
    if arguments.get("generator") is not None:
        return  # checked by the pipeline, which draws the seed from it
    about_labels = {k: v for k, v in arguments.items() if k not in (*_PIPELINE_ARGUMENTS, "generator")}
    make_request(model_info(model), class_id, **about_labels)
