"""Public endpoints for programs: `/generate` returns pictures, `/generate_steps` streams one record per step.

Their inputs are components of their own, so that an endpoint keeps its signature when the page's form changes.
"""

import io
from collections.abc import Iterator
from typing import Any

import gradio as gr
from PIL import Image

from app.arguments import Argument, endpoint, number, text, whole_number
from app.downloads import png
from app.environment import on_gpu
from app.image_form import defaults
from app.limits import Limits
from app.models import Models
from app.reveal import picture_at, reveal
from app.run_control import WORKER
from app.settings import Settings, checked

DRAWN = "Draw pictures of a class, code by code, with a partition generative model."
STREAMED = (
    "Draw pictures of a class and report every step: for each picture the cells taken back since the last step, which "
    "happens in second looks (round 1, 2, ...) only, the new cells, their codes and a preview, then how many codes are "
    "known and have been computed, and the seconds."
)
BLANKS = "Blank arguments take the model's recommended settings. Picture i has the seed seed + i."
ARGUMENTS = (
    Argument("class_id", gr.Textbox, "What the pictures show: a class, by its name on the page", required=True),
    text("style", "Style: a name as listed on the page, blank for any"),
    whole_number("num_images", "How many pictures", 1),
    whole_number("steps", "In how many steps the codes are filled in, blank for the recommended number"),
    text("sampler", "Which codes come first: halton, confidence, random or raster"),
    number("guidance_scale", "How strongly to follow the class, 0 is off and twice as fast"),
    number("temperature", "How daring each choice is, 0 always takes the likeliest code"),
    whole_number("top_k", "Choose among the k likeliest codes only, blank for all"),
    whole_number("seed", "Seed of the first picture", 0),
    text("model", "Model: a name, blank for the bundled one"),
    whole_number("refine_rounds", "In how many second looks the codes that fit worst are drawn anew, 0 is off"),
)


def requested(models: Models, limits: Limits, values: dict[str, Any]) -> Settings:
    """Settings of an API call: blanks take what the model's card recommends. ValueError names a fault."""
    name = values.get("model") or models.names()[0]
    base = defaults(models.info(name)).as_dict()
    given = {key: value for key, value in values.items() if value not in (None, "") and key != "model"}
    return checked(Settings(**{**base, "style": None, **given}), limits)


def build_endpoints(models: Models, limits: Limits) -> None:
    """Add both endpoints to the current Blocks; nothing of them is visible."""

    @endpoint("generate_steps", f"{STREAMED} {BLANKS}", ARGUMENTS, "one JSON record per step")
    def generate_steps(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
        try:
            settings = requested(models, limits, values)
            for value in reveal(models.pipeline(settings.model), settings):
                if value["steps"]:
                    yield {"index": len(value["steps"]) - 1, "total": value["total"], **value["steps"][-1]}
        except ValueError as fault:
            raise gr.Error(str(fault), print_exception=False) from fault

    @endpoint("generate", f"{DRAWN} {BLANKS}", ARGUMENTS, "PNG files, each with its settings inside")
    def generate(values: dict[str, Any]) -> list[Image.Image]:
        try:
            settings = requested(models, limits, values)
            *_, value = reveal(models.pipeline(settings.model), settings)
        except ValueError as fault:
            raise gr.Error(str(fault), print_exception=False) from fault
        last = len(value["steps"]) - 1
        return [
            Image.open(io.BytesIO(png(picture_at(value, last, i), value["pictures"][i])))
            for i in range(settings.num_images)
        ]

    with gr.Row(visible=False):
        inputs = [argument.component() for argument in ARGUMENTS]
        pictures = gr.Gallery(label="Pictures", format="png")
        record = gr.JSON(label="Step")
        shared = {"concurrency_id": WORKER, "concurrency_limit": limits.workers, "api_visibility": "public"}
        gpu = on_gpu(limits.gpu_seconds)
        gr.Button("Generate").click(gpu(generate), inputs, pictures, api_name="generate", **shared)
        gr.Button("Stream").click(gpu(generate_steps), inputs, record, api_name="generate_steps", **shared)
