"""The edit tab: a picture to paint on, the reveal of what is drawn anew in its place, and the functions behind them."""

import io
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import gradio as gr

from app.controls import (
    class_menu,
    daring,
    guidance_strength,
    how_many,
    order_choice,
    second_looks,
    seed_choice,
    segments,
    slider,
    step_count,
    style_menu,
)
from app.edit_form import MODES, edit_defaults, open_source, painted_cells, task_of
from app.edit_reveal import Session, result, reveal_edit, save_edit
from app.faults import sentence
from app.image_form import ANY, choices, class_choices
from app.image_tab import ORDER_WORDS, ImageTab, taken
from app.limits import Limits
from app.models import Models
from app.painter import canvas, painter
from app.reveal import picture_at
from app.run_control import PRIVATE, awaiting, gone, run_buttons, seeded, told, wire_run
from app.viewer import mailbox, viewer, wire_saves
from pgm.orders import order_names
from pgm_image.frame import FITS

STRENGTH = 0.5
EMPTY = "Upload a picture, drop one here, or take the one from the Image tab. Then paint what should change."
NOTHING_MADE = "There is no picture in the Image tab yet; generate one first."
FIELDS = (
    "model", "mode", "class_id", "style", "num_images", "strength", "right", "down", "scale", "sampler", "steps",
    "guidance_scale", "refine_rounds", "temperature", "fit", "composite", "seed", "randomise",
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
    yield from awaiting(models, task.settings.model)
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
    first = edit_defaults(info)
    with gr.Row(elem_id="edit-studio", elem_classes="studio"):
        with gr.Column(elem_id="edit-rail", elem_classes="rail"):
            mode = segments(
                "edit",
                "mode",
                list(MODES),
                "repaint",
                "Edit",
                "Redraw what you paint, fill new room, vary all of it, or change all but a part.",
            )
            with gr.Column(elem_classes="only-variation"):
                share = "The share of the codes that is drawn anew."
                strength = slider("edit", "strength", (0.05, 1, 0.05), STRENGTH, "Strength", share)
            with gr.Column(elem_classes="only-outpaint"):
                shifts = (-0.9, 0.9, 0.05)
                left, up = "As a share of the width; below 0 to the left.", "As a share of the height; below 0 up."
                right = slider("edit", "right", shifts, 0, "Shift to the right", left)
                down = slider("edit", "down", shifts, 0, "Shift down", up)
                scale = slider("edit", "scale", (0.25, 1, 0.05), 1, "Size", "1 is as it is, 0.5 half as wide and high.")
            class_id = class_menu("edit", info, ANY, "What the new part should show.")
            style = style_menu("edit", info)
            count = how_many("edit", min(limits.max_images, 8), "Different results, each from its own seed.")
            buttons = run_buttons("edit", "Redraw")
            with gr.Column(elem_classes="folds"):
                with gr.Accordion("How", open=False, elem_classes="fold"):
                    sampler = order_choice("edit", order_names(), first.sampler, ORDER_WORDS)
                    most = min(limits.max_steps, info.length)
                    steps = step_count("edit", most, first.steps, "At most; never more than there are cells to draw.")
                    guidance = guidance_strength("edit", limits, first.guidance_scale)
                    rounds = second_looks("edit", limits, first.refine_rounds)
                with gr.Accordion("More", open=False, elem_classes="fold", elem_id="edit-more"):
                    seed, randomise = seed_choice(
                        "edit", "The same seed, picture and settings give the same result again."
                    )
                    temperature = daring("edit", limits, first.temperature, "0 always takes the likeliest code.")
                    fit = segments(
                        "edit",
                        "fit",
                        [("All of it", FITS[0]), ("Central square", FITS[1])],
                        FITS[0],
                        "What the model sees",
                        "All of a picture that is not square is shown on white.",
                    )
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
        model, mode, class_id, style, count, strength, right, down, scale, sampler, steps, guidance, rounds,
        temperature, fit,        composite, seed, randomise,
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
        recommended = edit_defaults(new)
        return [
            gr.Dropdown(class_choices(new), value=ANY),
            gr.Dropdown(choices(new.styles, "Any style"), value=ANY, visible=bool(new.styles)),
            recommended.sampler,
            gr.Slider(maximum=min(limits.max_steps, new.length), value=recommended.steps),
            recommended.guidance_scale,
            recommended.refine_rounds,
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

    def saved(kept: Session, event: gr.EventData) -> tuple[str, str, bytes]:
        info = models.info(kept["task"].settings.model)
        return save_edit(info, kept, limits, event.kind, event.picture, event.step)

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
    for move in (right, down, scale):
        move.input(None, [right, down, scale], None, js=f"(...how) => {{ {ask}.move(...how); }}", **PRIVATE)
    fit.input(on_again, [source, model, fit], paper, **quiet)
    model.input(
        on_model, [model, fit, source], [class_id, style, sampler, steps, guidance, rounds, temperature, paper], **quiet
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
    wire_saves(stage, session, post, saved)
