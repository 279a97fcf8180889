"""Public endpoints for programs: `/text` returns texts with their seeds and what they cost, `/text_steps` streams one
record per step.
"""

from collections.abc import Iterator
from typing import Any

import gradio as gr

from app.arguments import endpoint, number, text, whole_number
from app.environment import on_gpu
from app.fields import whole
from app.limits import Limits
from app.run_control import WORKER
from app.settings import LARGEST_SEED
from app.text_form import KEEP, NEW, ONE, asked
from app.text_models import TextModels
from app.text_reveal import rate, reveal
from app.text_settings import TextSettings
from pgm_text.request import SAMPLERS

SAYS = (
    "Write English with a text model, several words at a time in any order: continue a beginning, fill blanks (____) "
    "or write freely. What the prompt holds is kept to the letter."
)
STREAMED = (
    "It reports every step: for each text the tokens taken back since the last step, which happens in second looks "
    "(round 1, 2, ...) only, those that came in, what places now show and the text so far, then how many tokens are "
    "known and have been computed, and the seconds."
)
BLANKS = "Blank arguments take the model's recommended settings. Text i has the seed seed + i."
ARGUMENTS = (
    text("prompt", "Prompt: a beginning, or a text with blanks (____), blank for none"),
    text("model", "Model: a name, blank for the first one"),
    whole_number("num_texts", "How many texts", 1),
    whole_number("length", "Most tokens of a text, blank for as many as the model can"),
    whole_number("steps", "In how many steps, blank for the recommended number"),
    text("sampler", f"Sampler: {', '.join(SAMPLERS)}"),
    number("temperature", "Temperature, 0 always takes the likeliest token"),
    number("top_p", "Top-p: choose among tokens that together hold this share of the probability, up to 1"),
    whole_number("blank_tokens", "How many tokens each blank has"),
    number("guidance_scale", "How strongly to follow z, 0 is off and twice as fast (RMDM)"),
    whole_number("z_seed", "Seed of the z of all texts, blank for one of its own each (RMDM)"),
    whole_number("seed", "Seed of the first text", 0),
    whole_number("refine_rounds", "In how many second looks the tokens that fit worst are drawn anew, 0 is off"),
)
RETURNS = "{model, texts, seeds, settings, tokens_computed, tokens_computed_masked, tokens_per_second, seconds}"


STEP_RETURNS = (
    "one JSON record per step: {index, total, round, taken_back, filled, pieces, texts, known, computed, masked, "
    "seconds}; taken_back, filled, pieces, texts and known have one entry per text, the piece null is an end of text"
)


def requested(texts: TextModels, limits: Limits, values: dict[str, Any]) -> TextSettings:
    """Checked settings of an API call; ValueError names a fault."""
    z_seed = values.pop("z_seed")
    kept = None if z_seed is None else whole("The seed of z", z_seed, 0, LARGEST_SEED)
    form = {**values, "mode": ONE, "z_mode": NEW if kept is None else KEEP}
    _, settings, _ = asked(texts, limits, form, kept)
    if settings.z != kept:
        raise ValueError(f"The model {settings.model} has no z, so the seed of z must be blank.")
    return settings


def build_text_endpoints(texts: TextModels, limits: Limits) -> None:
    """Add both endpoints to the current Blocks; nothing of them is visible. Without a text model they answer why."""

    @endpoint("text_steps", f"{SAYS} {STREAMED} {BLANKS}", ARGUMENTS, STEP_RETURNS)
    def write_steps(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
        try:
            settings = requested(texts, limits, values)
            for side in reveal(texts.pipeline(settings.model), settings):
                if side["steps"]:
                    yield {"index": len(side["steps"]) - 1, "total": side["total"], **side["steps"][-1]}
        except ValueError as fault:
            raise gr.Error(str(fault), print_exception=False) from fault

    @endpoint("text", f"{SAYS} {BLANKS}", ARGUMENTS, RETURNS)
    def write(values: dict[str, Any]) -> dict[str, Any]:
        try:
            settings = requested(texts, limits, values)
            *_, side = reveal(texts.pipeline(settings.model), settings)
        except ValueError as fault:
            raise gr.Error(str(fault), print_exception=False) from fault
        last = side["steps"][-1]
        return {
            "model": settings.model,
            "texts": last["texts"],
            "seeds": side["seeds"],
            "settings": side["settings"],
            "tokens_computed": last["computed"],
            "tokens_computed_masked": last["masked"],
            "tokens_per_second": round(rate(side, -1), 1),
            "seconds": last["seconds"],
        }

    with gr.Row(visible=False):
        inputs = [argument.component() for argument in ARGUMENTS]
        shared = {"concurrency_id": WORKER, "concurrency_limit": limits.workers, "api_visibility": "public"}
        gpu = on_gpu(limits.gpu_seconds)
        gr.Button("Write").click(gpu(write), inputs, gr.JSON(label="Texts"), api_name="text", **shared)
        gr.Button("Stream").click(gpu(write_steps), inputs, gr.JSON(label="Step"), api_name="text_steps", **shared)
