"""The public endpoint `/edit` for programs: a picture and a mask, or a mode that needs none, in; PNG files out."""

import io

import gradio as gr
from PIL import Image

from app.downloads import png
from app.edit_form import MODES, task_of
from app.edit_reveal import result, reveal_edit
from app.environment import on_gpu
from app.image_tab import WORKER, taken
from app.limits import Limits
from app.models import Models


def build_edit_endpoint(models: Models, limits: Limits) -> None:
    """Add the endpoint to the current Blocks; nothing of it is visible."""

    def edit(
        image: str,
        mask: str | None,
        class_id: str,
        style: str,
        mode: str,
        strength: float,
        right: float,
        down: float,
        scale: float,
        invert: bool,
        num_images: int,
        steps: int,
        guidance_scale: float,
        seed: int,
        fit: str,
        composite: bool,
        model: str,
    ) -> list[Image.Image]:
        """Edit a picture and return PNG files of its size with the settings inside.

        mode "repaint" draws anew what is white or painted in the mask, "swap" (or invert) all but that, "outpaint"
        what a shift (right, down: shares of the sides) or a scale leaves open, "variation" the share `strength` of all
        codes.
        class_id and style are names; blank arguments take the model's recommended settings. Picture i has seed + i.
        """
        if invert and mode == "repaint":
            mode = "swap"
        form = dict(
            class_id=class_id, style=style, mode=mode, strength=strength, right=right, down=down, scale=scale,
            num_images=num_images, steps=steps, guidance_scale=guidance_scale, seed=seed, fit=fit,
            composite=composite, model=model,
        )  # fmt: skip
        try:
            task = task_of(models, limits, taken(image), taken(mask) or None, form)
            pipeline = models.pipeline(task.settings.model)
            *_, session = reveal_edit(pipeline, task, limits)
            made = task.edit(pipeline.info, limits)
        except ValueError as fault:
            raise gr.Error(str(fault), print_exception=False) from fault
        last = len(session["squares"]) - 1
        return [
            Image.open(io.BytesIO(png(result(made, session, i, last), session["value"]["pictures"][i])))
            for i in range(len(made))
        ]

    with gr.Row(visible=False):
        inputs = [
            gr.File(label="Picture", type="filepath"),
            gr.File(label="Mask of the same size or aspect: white or painted is changed", type="filepath"),
            gr.Textbox("", label="Class: a name, blank for any"),
            gr.Textbox("", label="Style: a name, blank for any"),
            gr.Textbox("repaint", label=f"Mode: {', '.join(name for _, name in MODES)}"),
            gr.Number(0.5, label="Strength of a variation, 0 to 1"),
            gr.Number(0, label="Shift to the right, share of the width"),
            gr.Number(0, label="Shift down, share of the height"),
            gr.Number(1, label="Size of the picture in its frame, 0 to 1"),
            gr.Checkbox(False, label="Keep what the mask paints, change the rest"),
            gr.Number(1, label="How many pictures", precision=0),
            gr.Number(None, label="Steps, blank for the recommended number", precision=0),
            gr.Number(None, label="Guidance scale, 0 is off"),
            gr.Number(0, label="Seed of the first picture", precision=0),
            gr.Textbox(
                "whole", label="Fit: whole shows the model all of the picture on white, crop its central square"
            ),
            gr.Checkbox(True, label="Keep every pixel outside of the changed cells"),
            gr.Textbox("", label="Model, blank for the bundled one"),
        ]
        pictures = gr.Gallery(label="Pictures", format="png")
        gr.Button("Edit").click(
            on_gpu(limits.gpu_seconds)(edit),
            inputs,
            pictures,
            api_name="edit",
            concurrency_id=WORKER,
            concurrency_limit=limits.workers,
            api_visibility="public",
        )
