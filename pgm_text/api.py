"""The public functions of the package: generate, generate_steps, load, models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pgm.sampling import Step
from pgm_text.registry import DEFAULT_MODEL, load, model_info, models, tokenizer_of
from pgm_text.representation import slerp
from pgm_text.request import make_request

__all__ = ["generate", "generate_steps", "load", "models", "slerp"]

_PIPELINE_ARGUMENTS = ("batch_size", "output_type", "progress", "callback_on_step_end")


def generate(
    prompt: str | None = None,
    *,
    model: str = DEFAULT_MODEL,
    device: Any = None,
    dtype: Any = None,
    attention: str = "auto",
    **arguments: Any,
) -> Any:
    """Generate English with a bundled or published model.

    prompt: text to continue, or text with blanks (`____` or `[MASK]`) to fill; what you write is kept to the letter.
    Further arguments are those of `TextPipeline.generate` (batch_size, output_type, progress, callback_on_step_end)
    and of `request.make_request` (num_texts, length, steps, sampler, temperature, top_p, top_k, seed, z,
    guidance_scale, blank_tokens, extend); what is left out is the model's recommended setting. Text i has seed
    `seed` + i and is the same in any batch.

    Returns a list of str. Raises ValueError naming the argument, the value and what is allowed, before any weight is
    read.

    >>> generate("lantern (noun): ", num_texts=4, steps=16)
    >>> generate("____ (noun): a person who ____ boats")
    """
    _check(model, prompt, arguments)
    return load(model, device, dtype, attention).generate(prompt, **arguments)


def generate_steps(
    prompt: str | None = None,
    *,
    model: str = DEFAULT_MODEL,
    device: Any = None,
    dtype: Any = None,
    attention: str = "auto",
    **arguments: Any,
) -> Iterator[Step]:
    """The generator of steps behind `generate`; same arguments but for those that concern its output.

    Each `Step` holds the tokens known so far; `load(model).decode(step.codes)` shows them. Closing it ends the work.
    """
    _check(model, prompt, arguments)
    return load(model, device, dtype, attention).generate_steps(prompt, **arguments)


def _check(model: str, prompt: str | None, arguments: dict[str, Any]) -> None:
    about_texts = {key: value for key, value in arguments.items() if key not in _PIPELINE_ARGUMENTS}
    make_request(model_info(model), tokenizer_of(model), prompt, **about_texts)
