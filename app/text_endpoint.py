"""The public endpoint `/text` for programs: a prompt and settings in, texts with their seeds and what they cost out."""

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
from pgm_text.request import SAMPLERS

SAYS = (
    "Write English with a text model, several words at a time in any order: continue a beginning, fill blanks (____) "
    "or write freely. What the prompt holds is kept to the letter. Blank arguments take the model's recommended "
    "settings. Text i has the seed seed + i."
)
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
)
RETURNS = "{model, texts, seeds, settings, tokens_computed, tokens_computed_masked, tokens_per_second, seconds}"


def build_text_endpoint(texts: TextModels, limits: Limits) -> None:
    """Add the endpoint to the current Blocks; nothing of it is visible. Without a text model it answers why."""

    @endpoint("text", SAYS, ARGUMENTS, RETURNS)
    def write(values: dict[str, Any]) -> dict[str, Any]:
        z_seed = values.pop("z_seed")
        try:
            kept = None if z_seed is None else whole("The seed of z", z_seed, 0, LARGEST_SEED)
            form = {**values, "mode": ONE, "z_mode": NEW if kept is None else KEEP}
            _, settings, _ = asked(texts, limits, form, kept)
            if settings.z != kept:
                raise ValueError(f"The model {settings.model} has no z, so the seed of z must be blank.")
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
        gr.Button("Write").click(
            on_gpu(limits.gpu_seconds)(write),
            [argument.component() for argument in ARGUMENTS],
            gr.JSON(label="Texts"),
            api_name="text",
            concurrency_id=WORKER,
            concurrency_limit=limits.workers,
            api_visibility="public",
        )
