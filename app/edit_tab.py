"""The edit tab: a picture to paint on, the reveal of what is drawn anew in its place, and the functions behind them."""

import io
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import gradio as gr

from app.edit_form import MODES, open_source, painted_cells, task_of
from app.edit_reveal import Session, result, reveal_edit, save_edit
from app.faults import sentence
from app.image_form import ANY, choices, class_choices, defaults
from app.image_tab import ImageTab, taken
from app.limits import Limits
from app.models import Models
from app.painter import canvas, painter
from app.reveal import picture_at
from app.run_control import PRIVATE, gone, run_buttons, seeded, told, wire_run
from app.viewer import mailbox, parcel, viewer
from pgm.orders import order_names
from pgm_image.frame import FITS

STRENGTH = 0.5
EMPTY = "Upload a picture, drop one here, or take the one from the Image tab. Then paint what should change."
NOTHING_MADE = "There is no picture in the Image tab yet; generate one first."
FIELDS = (
    "model", "mode", "class_id", "style", "num_images", "strength", "right", "down", "scale", "sampler", "steps",
    "guidance_scale", "temperature", "fit", "composite", "seed", "randomise",
)  # fmt: skip
SWITCH = """
<div class="edit-panes" role="group" aria-label="What the stage shows">
  <button type="button" data-pane-of="source" aria-pressed="true">Picture</button>
  <button type="button" data-pane-of="result" aria-pressed="false">Result</button>
</div>
"""


def run(
    models: Models, limits: Limits, content: bytes | None, painted: Any, form: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Any], Session | Any, int | Any]]:
    """Values of viewer, session and seed field while an edit comes in. A fault becomes one sentence in the value."""
    return told(_rows(models, limits, content, painted, form), "pictures")


def _rows(
    models: Models, limits: Limits, content: bytes | None, painted: Any, form: Mapping[str, Any]
) -> Iterator[tuple]:
    task = task_of(models, limits, content, painted, form)
    task = replace(task, settings=seeded(task.settings, form.get("randomise")))
    for session in reveal_edit(models.pipeline(task.settings.model), task, limits):
        value = session["value"]
        yield value, session, task.settings.seed if not value["steps"] else gr.skip()


def shown(models: Models, limits: Limits, model: str, fit: str, content: bytes | None) -> tuple[dict[str, Any], Any]:
    """Values of painter and source for a picture's file; one sentence, and no change, when it is none."""
    try:
        info = models.info(model)
        return canvas(info, open_source(content, limits), fit), content
    except ValueError as fault:
        return {"token": secrets.token_hex(8), "error": sentence(fault)}, gr.skip()


def masked(models: Models, limits: Limits, model: str, fit: str, content: bytes | None, mask: bytes) -> dict[str, Any]:
    """Value of the painter with the cells of a mask file painted."""
    try:
        info = models.info(model)
        picture = open_source(content, limits)
        return canvas(info, picture, fit, painted_cells(info, picture, mask, fit, limits))
    except ValueError as fault:
        return {"token": secrets.token_hex(8), "error": sentence(fault)}


def image_result(value: dict[str, Any] | None, where: Mapping[str, Any] | None) -> bytes | None:
    """PNG of the picture on the image tab's stage; where: {picture, step} as its viewer tells, the last by default."""
    if not value or not value["steps"]:
        return None
    where = where or {}
    last = len(value["steps"]) - 1
    step, picture = where.get("step", last), where.get("picture", 0)
    if not (isinstance(step, int) and isinstance(picture, int) and 0 <= picture < value["count"]):
        return None
    buffer = io.BytesIO()
    picture_at(value, step if 0 <= step <= last else last, picture).save(buffer, "png")
    return buffer.getvalue()


def edit_result(models: Models, limits: Limits, session: Session | None, picture: int) -> bytes | None:
    """PNG of the last step of one result, at the picture's own size."""
    if not session or not session["squares"]:
        return None
    edit = session["task"].edit(models.info(session["task"].settings.model), limits)
    buffer = io.BytesIO()
    result(edit, session, picture, len(session["squares"]) - 1).save(buffer, "png")
    return buffer.getvalue()


def build_edit_tab(models: Models, limits: Limits, model: gr.Dropdown, image: ImageTab) -> None:
    """Lay out the tab inside the current Blocks and wire it. `model` is the choice in the page's head."""
    info = models.info(models.names()[0])
    first = defaults(info)
    counts = [count for count in (1, 2, 4, 8) if count <= limits.max_images]
    with gr.Row(elem_id="edit-studio", elem_classes="studio"):
        with gr.Column(elem_id="edit-rail", elem_classes="rail"):
            mode = gr.Radio(
                list(MODES),
                value="repaint",
                label="Edit",
                info="Redraw what you paint, fill new room, vary all of it, or change all but a part.",
                elem_id="edit-mode",
                elem_classes="segments",
            )
            with gr.Column(elem_classes="only-variation"):
                strength = gr.Slider(
                    0.05, 1, value=STRENGTH, step=0.05, label="Strength",
                    info="The share of the codes that is drawn anew.", elem_id="edit-strength", buttons=[],
                )  # fmt: skip
            with gr.Column(elem_classes="only-outpaint"):
                right = gr.Slider(
                    -0.9, 0.9, value=0, step=0.05, label="Shift to the right",
                    info="As a share of the width; below 0 to the left.", elem_id="edit-right", buttons=[],
                )  # fmt: skip
                down = gr.Slider(
                    -0.9, 0.9, value=0, step=0.05, label="Shift down",
                    info="As a share of the height; below 0 up.", elem_id="edit-down", buttons=[],
                )  # fmt: skip
                scale = gr.Slider(
                    0.25, 1, value=1, step=0.05, label="Size",
                    info="1 is as it is, 0.5 half as wide and high.", elem_id="edit-scale", buttons=[],
                )  # fmt: skip
            class_id = gr.Dropdown(
                class_choices(info), value=ANY, label="Class",
                info="What the new part should show. Type to search.", elem_id="edit-class",
            )  # fmt: skip
            style = gr.Dropdown(
                choices(info.styles, "Any style"), value=ANY, label="Style",
                info="Whose way of drawing to follow.", elem_id="edit-style", visible=bool(info.styles),
            )  # fmt: skip
            count = gr.Radio(
                counts, value=1, label="How many", info="Different results, each from its own seed.",
                elem_id="edit-count", elem_classes="segments",
            )  # fmt: skip
            buttons = run_buttons("edit", "Redraw")
            with gr.Column(elem_classes="folds"):
                with gr.Accordion("How", open=False, elem_classes="fold"):
                    sampler = gr.Radio(
                        [(name.capitalize(), name) for name in order_names()], value=first.sampler,
                        label="Order (sampler)",
                        info="Which cells come first: spread evenly, surest first, by chance, or row by row.",
                        elem_id="edit-sampler", elem_classes="segments",
                    )  # fmt: skip
                    steps = gr.Slider(
                        1, min(limits.max_steps, info.length), value=first.steps, step=1, label="Steps",
                        info="At most; never more than there are cells to draw.", elem_id="edit-steps", buttons=[],
                    )  # fmt: skip
                    guidance = gr.Slider(
                        0, limits.max_guidance, value=first.guidance_scale, step=0.1,
                        label="How strongly to follow the class (guidance)",
                        info="0 is off and twice as fast.", elem_id="edit-guidance", buttons=[],
                    )  # fmt: skip
                with gr.Accordion("More", open=False, elem_classes="fold", elem_id="edit-more"):
                    seed = gr.Number(
                        0, precision=0, label="Seed",
                        info="The same seed, picture and settings give the same result again.", elem_id="edit-seed",
                    )  # fmt: skip
                    randomise = gr.Checkbox(True, label="New seed every time", elem_id="edit-randomise")
                    temperature = gr.Slider(
                        0, limits.max_temperature, value=first.temperature, step=0.05, label="Temperature",
                        info="How daring each choice is. 0 always takes the likeliest code.",
                        elem_id="edit-temperature", buttons=[],
                    )  # fmt: skip
                    fit = gr.Radio(
                        [("All of it", FITS[0]), ("Central square", FITS[1])], value=FITS[0],
                        label="What the model sees",
                        info="All of a picture that is not square is shown on white.",
                        elem_id="edit-fit", elem_classes="segments",
                    )  # fmt: skip
                    composite = gr.Checkbox(
                        True, label="Keep every other pixel exactly as it was", elem_id="edit-composite",
                        info="Off shows the model's own picture, all of it decoded from codes.",
                    )  # fmt: skip
                    with gr.Column(elem_classes="only-paint"):
                        mask = gr.UploadButton(
                            "Paint from a mask file", file_types=["image"], type="filepath", size="sm",
                            elem_id="edit-mask",
                        )  # fmt: skip
        with gr.Column(elem_id="edit-stage", elem_classes="stage"):
            with gr.Row(elem_id="edit-source"):
                gr.HTML(html_template=SWITCH, js_on_load=None, apply_default_css=False)
                with gr.Row(elem_classes="edit-files"):
                    upload = gr.UploadButton(
                        "Upload a picture", file_types=["image"], type="filepath", size="sm", elem_id="edit-upload"
                    )
                    take = gr.Button("From the Image tab", size="sm", elem_id="edit-take")
            size = (info.image_size, info.image_size)
            paper = painter("edit", info.grid, size, STRENGTH, EMPTY)
            stage = viewer(
                "edit", info.grid, size, first.steps, "Paint, then press Redraw. The new part appears code by code.",
                again=("Edit this", "Make this result the picture to paint on"), before=True,
            )  # fmt: skip
            post = mailbox()

    source, session = gr.State(None), gr.State(None)
    painted = gr.JSON(visible=False)  # filled by the painter's script when an edit is asked for
    where = gr.JSON(visible=False)
    fields = [
        model, mode, class_id, style, count, strength, right, down, scale, sampler, steps, guidance, temperature, fit,
        composite, seed, randomise,
    ]  # fmt: skip

    def on_edit(content: bytes | None, cells: Any, *values: Any) -> Iterator[tuple]:
        yield from run(models, limits, content, cells or {}, dict(zip(FIELDS, values, strict=True)))

    def on_upload(path: str | None, name: str, how: str) -> tuple:
        return shown(models, limits, name, how, taken(path))

    def on_mask(path: str | None, content: bytes | None, name: str, how: str) -> dict[str, Any]:
        return masked(models, limits, name, how, content, taken(path))

    def on_take(value: dict | None, at: dict | None, name: str, how: str) -> tuple:
        content = image_result(value, at)
        if content is None:
            return {"token": secrets.token_hex(8), "error": NOTHING_MADE}, *[gr.skip()] * 3
        labels = [value["settings"][key] or ANY for key in ("class_id", "style")]
        same = value["settings"]["model"] == name
        return *shown(models, limits, name, how, content), *(labels if same else [gr.skip()] * 2)

    def on_again(content: bytes | None, name: str, how: str) -> dict[str, Any]:
        return shown(models, limits, name, how, content)[0] if content else gr.skip()

    def on_model(name: str, how: str, content: bytes | None) -> list[Any]:
        new = models.info(name)
        recommended = defaults(new)
        return [
            gr.Dropdown(class_choices(new), value=ANY),
            gr.Dropdown(choices(new.styles, "Any style"), value=ANY, visible=bool(new.styles)),
            recommended.sampler,
            gr.Slider(maximum=min(limits.max_steps, new.length), value=recommended.steps),
            recommended.guidance_scale,
            recommended.temperature,
            on_again(content, name, how),
        ]

    def on_reuse(kept: Session | None, name: str, how: str, event: gr.EventData) -> list[Any]:
        if not kept:
            raise gone()
        if event.what == "seed":
            return [gr.skip(), gr.skip(), kept["task"].settings.of_picture(event.picture).seed, False]
        return [
            *shown(models, limits, name, how, edit_result(models, limits, kept, event.picture)),
            gr.skip(),
            gr.skip(),
        ]

    def on_save(kept: Session | None, event: gr.EventData) -> dict[str, str]:
        if not kept:
            raise gone()
        info = models.info(kept["task"].settings.model)
        return parcel(*save_edit(info, kept, limits, event.kind, event.picture, event.step))

    quiet = {**PRIVATE, "show_progress": "hidden"}
    ask = "pgm.painters.edit"
    upload.upload(on_upload, [upload, model, fit], [paper, source], **quiet, concurrency_limit=4)
    mask.upload(on_mask, [mask, source, model, fit], paper, **quiet, concurrency_limit=4)
    take.click(
        on_take, [image.session, where, model, fit], [paper, source, class_id, style],
        js="(value, at, ...others) => [value, pgm.at('image'), ...others]", **quiet,
    )  # fmt: skip
    mode.input(None, mode, None, js=f"(name) => {{ {ask}.mode(name); }}", **PRIVATE)
    strength.input(None, strength, None, js=f"(share) => {{ {ask}.strength(share); }}", **PRIVATE)
    for slider in (right, down, scale):
        slider.input(None, [right, down, scale], None, js=f"(...how) => {{ {ask}.move(...how); }}", **PRIVATE)
    fit.input(on_again, [source, model, fit], paper, **quiet)
    model.input(
        on_model, [model, fit, source], [class_id, style, sampler, steps, guidance, temperature, paper], **quiet
    )
    wire_run(
        "edit",
        buttons,
        limits,
        on_edit,
        [source, painted, *fields],
        [stage, session, seed],
        js=f"(source, cells, ...fields) => [source, {ask}.painted(), ...fields]",
    )
    stage.reuse(on_reuse, [session, model, fit], [paper, source, seed, randomise], **quiet)
    stage.save(on_save, session, post, **quiet, concurrency_limit=4)
