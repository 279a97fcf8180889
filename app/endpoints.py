"""Public endpoints for programs: `/generate` returns pictures, `/generate_steps` streams one record per step.

Their inputs are components of their own, so that an endpoint keeps its signature when the page's form changes.
"""

import io
from collections.abc import Iterator
from typing import Any

import gradio as gr
from PIL import Image

from app.downloads import png
from app.environment import on_gpu
from app.image_form import defaults
from app.image_tab import WORKER
from app.limits import Limits
from app.models import Models
from app.reveal import picture_at, reveal
from app.settings import Settings, checked


def requested(models: Models, limits: Limits, values: dict[str, Any]) -> Settings:
    """Settings of an API call: blanks take what the model's card recommends. ValueError names a fault."""
    name = values.get("model") or models.names()[0]
    base = defaults(models.info(name)).as_dict()
    given = {key: value for key, value in values.items() if value not in (None, "") and key != "model"}
    return checked(Settings(**{**base, "style": None, **given}), limits)


def build_endpoints(models: Models, limits: Limits) -> None:
    """Add both endpoints to the current Blocks; nothing of them is visible."""

    def generate_steps(
        class_id: str,
        style: str,
        num_images: int,
        steps: int,
        sampler: str,
        guidance_scale: float,
        temperature: float,
        top_k: int,
        seed: int,
        model: str,
    ) -> Iterator[dict[str, Any]]:
        """Generate pictures of a class and stream every step: new cells, their codes, previews, counts, seconds.

        class_id and style are names; blank arguments take the model's recommended settings. Picture i has seed + i.
        """
        values = dict(
            class_id=class_id,
            style=style,
            num_images=num_images,
            steps=steps,
            sampler=sampler,
            guidance_scale=guidance_scale,
            temperature=temperature,
            top_k=top_k,
            seed=seed,
            model=model,
        )
        try:
            settings = requested(models, limits, values)
            for value in reveal(models.pipeline(settings.model), settings):
                if value["steps"]:
                    yield {"index": len(value["steps"]) - 1, "total": value["total"], **value["steps"][-1]}
        except ValueError as fault:
            raise gr.Error(str(fault), print_exception=False) from fault

    def generate(
        class_id: str,
        style: str,
        num_images: int,
        steps: int,
        sampler: str,
        guidance_scale: float,
        temperature: float,
        top_k: int,
        seed: int,
        model: str,
    ) -> list[Image.Image]:
        """Generate pictures of a class; returns PNG files with their settings inside.

        class_id and style are names; blank arguments take the model's recommended settings. Picture i has seed + i.
        """
        values = dict(
            class_id=class_id,
            style=style,
            num_images=num_images,
            steps=steps,
            sampler=sampler,
            guidance_scale=guidance_scale,
            temperature=temperature,
            top_k=top_k,
            seed=seed,
            model=model,
        )
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
        inputs = [
            gr.Textbox(label="Class: a name, as listed on the page"),
            gr.Textbox(label="Style: a name, blank for any"),
            gr.Number(1, label="How many pictures", precision=0),
            gr.Number(None, label="Steps, blank for the recommended number", precision=0),
            gr.Textbox("", label="Sampler: halton, confidence, random or raster"),
            gr.Number(None, label="Guidance scale, 0 is off"),
            gr.Number(None, label="Temperature"),
            gr.Number(None, label="Top-k, blank for all codes", precision=0),
            gr.Number(0, label="Seed of the first picture", precision=0),
            gr.Textbox("", label="Model, blank for the bundled one"),
        ]
        pictures = gr.Gallery(label="Pictures", format="png")
        record = gr.JSON(label="Step")
        shared = {"concurrency_id": WORKER, "concurrency_limit": limits.workers, "api_visibility": "public"}
        gpu = on_gpu(limits.gpu_seconds)
        gr.Button("Generate").click(gpu(generate), inputs, pictures, api_name="generate", **shared)
        gr.Button("Stream").click(gpu(generate_steps), inputs, record, api_name="generate_steps", **shared)
