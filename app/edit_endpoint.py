"""The public endpoint `/edit` for programs: a picture and a mask, or a mode that needs none, in; PNG files out."""

import io
from typing import Any

import gradio as gr
from PIL import Image

from app.arguments import Argument, endpoint, file, number, text, whole_number
from app.downloads import png
from app.edit_form import MODES, task_of
from app.edit_reveal import result, reveal_edit
from app.environment import on_gpu
from app.image_tab import taken
from app.limits import Limits
from app.models import Models
from app.run_control import WORKER

SAYS = (
    "Edit a picture: its codes are drawn anew where mask or mode say so, around the others. Mode repaint draws "
    "anew what is white or painted in the mask, swap all but that, outpaint what a shift or a smaller size leaves, and "
    "variation a share of all codes. Blank arguments take the model's recommended settings. Result i has the seed "
    "seed + i."
)
ARGUMENTS = (
    file("image", "Picture to edit", required=True),
    file("mask", "Mask of the same size or aspect: white or painted is changed"),
    text("class_id", "What the new part shows: the name of a class, blank for any"),
    text("style", "Style: a name, blank for any"),
    text("mode", f"Mode: {', '.join(name for _, name in MODES)}", "repaint"),
    number("strength", "Strength of a variation, the share of codes drawn anew, 0 to 1", 0.5),
    number("right", "Shift to the right, share of the width", 0),
    number("down", "Shift down, share of the height", 0),
    number("scale", "Size of the picture in its frame, 0 to 1", 1),
    Argument("invert", gr.Checkbox, "Keep what the mask paints, change the rest", False),
    whole_number("num_images", "How many results", 1),
    whole_number("steps", "In how many steps, blank for the recommended number"),
    number("guidance_scale", "How strongly to follow the class, 0 is off and twice as fast"),
    whole_number("seed", "Seed of the first result", 0),
    text("fit", "Fit: whole shows the model all of the picture on white, crop its central square", "whole"),
    Argument("composite", gr.Checkbox, "Keep every pixel outside of the changed cells", True),
    text("model", "Model: a name, blank for the bundled one"),
    whole_number("refine_rounds", "In how many second looks the new codes that fit worst are drawn anew, 0 is off"),
)


def build_edit_endpoint(models: Models, limits: Limits) -> None:
    """Add the endpoint to the current Blocks; nothing of it is visible."""

    @endpoint("edit", SAYS, ARGUMENTS, "PNG files of the picture's size, each with its settings inside")
    def edit(values: dict[str, Any]) -> list[Image.Image]:
        image, mask, invert = (values.pop(name) for name in ("image", "mask", "invert"))
        if invert and values["mode"] == "repaint":
            values["mode"] = "swap"
        try:
            task = task_of(models, limits, taken(image), taken(mask) or None, values)
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
        gr.Button("Edit").click(
            on_gpu(limits.gpu_seconds)(edit),
            [argument.component() for argument in ARGUMENTS],
            gr.Gallery(label="Pictures", format="png"),
            api_name="edit",
            concurrency_id=WORKER,
            concurrency_limit=limits.workers,
            api_visibility="public",
        )
