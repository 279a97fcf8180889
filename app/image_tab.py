"""The image tab: rail of controls, stage of the reveal, and the plain functions behind them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr

from app.downloads import save
from app.history import build_history
from app.image_form import (
    ANY,
    choices,
    class_choices,
    defaults,
    dressed,
    form_values,
    preset_values,
    restore,
    reuse,
    settings_of,
    usual,
)
from app.limits import Limits
from app.models import Models
from app.reveal import reveal
from app.run_control import PRIVATE, QUICK, gone, refused, run_buttons, seeded, told, wire_run
from app.settings import Settings, checked
from app.viewer import Record, mailbox, parcel, viewer
from pgm.orders import order_names
from pgm.schedules import schedule_names

EMPTY = "Choose a class and press Generate. The picture appears code by code."


class ImageTab(NamedTuple):
    """What other tabs use of this one."""

    session: gr.State  # the last value of the viewer, see `app.reveal`; None before the first run
    history: Record  # its `.bring` event brings settings


def run(
    models: Models, limits: Limits, settings: Settings, randomise: bool
) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None, int | Any]]:
    """Values of viewer, session and seed field while a picture comes in. A fault becomes one sentence in the value."""
    return told(_rows(models, limits, settings, randomise), "pictures")


def _rows(models: Models, limits: Limits, settings: Settings, randomise: bool) -> Iterator[tuple]:
    settings = checked(seeded(settings, randomise), limits)
    for value in reveal(models.pipeline(settings.model), settings):
        yield value, value, settings.seed if not value["steps"] else gr.skip()


def build_image_tab(models: Models, limits: Limits, model: gr.Dropdown) -> ImageTab:
    """Lay out the tab inside the current Blocks and wire it. `model` is the choice in the page's head."""
    start = models.names()[0]
    info = models.info(start)
    first = defaults(info)
    counts = [count for count in (1, 2, 4, 8, 16) if count <= limits.max_images]
    presets = list(info.presets)

    with gr.Row(elem_id="image-studio", elem_classes="studio"):
        with gr.Column(elem_id="image-rail", elem_classes="rail"):
            class_id = gr.Dropdown(
                class_choices(info),
                value=first.class_id,
                label="Class",
                info="What the picture should show. Type to search.",
                elem_id="image-class",
            )
            style = gr.Dropdown(
                choices(info.styles, "Any style"),
                value=ANY,
                label="Style",
                info="Whose way of drawing to follow.",
                elem_id="image-style",
            )
            count = gr.Radio(
                counts,
                value=1,
                label="How many",
                info="They appear together, each from its own seed.",
                elem_id="image-count",
                elem_classes="segments",
            )
            buttons = run_buttons("image", "Generate")
            with gr.Column(elem_classes="folds"):
                with gr.Accordion("How", open=False, elem_classes="fold"):
                    preset = gr.Radio(
                        presets,
                        value=usual(info),
                        label="Effort",
                        info="Sets the controls below as the model's card recommends.",
                        elem_id="image-preset",
                        elem_classes="segments",
                    )
                    sampler = gr.Radio(
                        [(name.capitalize(), name) for name in order_names()],
                        value=first.sampler,
                        label="Order (sampler)",
                        info="Which cells come first: spread evenly, surest first, by chance, or row by row.",
                        elem_id="image-sampler",
                        elem_classes="segments",
                    )
                    steps = gr.Slider(
                        1,
                        min(limits.max_steps, info.length),
                        value=first.steps,
                        step=1,
                        label="Steps",
                        info="More steps: fewer codes at a time, slower, usually better.",
                        elem_id="image-steps",
                        buttons=[],
                    )
                    guidance = gr.Slider(
                        0,
                        limits.max_guidance,
                        value=first.guidance_scale,
                        step=0.1,
                        label="How strongly to follow the class (guidance)",
                        info="0 is off and twice as fast; high values give typical, less varied pictures.",
                        elem_id="image-guidance",
                        buttons=[],
                    )
                with gr.Accordion("More", open=False, elem_classes="fold", elem_id="image-more"):
                    seed = gr.Number(
                        0,
                        precision=0,
                        label="Seed",
                        info="The same seed and settings give the same picture again.",
                        elem_id="image-seed",
                    )
                    randomise = gr.Checkbox(
                        True,
                        label="New seed every time",
                        elem_id="image-randomise",
                    )
                    temperature = gr.Slider(
                        0,
                        limits.max_temperature,
                        value=first.temperature,
                        step=0.05,
                        label="Temperature",
                        info="How daring each choice is. 0 always takes the likeliest code.",
                        elem_id="image-temperature",
                        buttons=[],
                    )
                    top_k = gr.Number(
                        first.top_k or 0,
                        precision=0,
                        minimum=0,
                        label="Only the k likeliest codes (top-k)",
                        info="0 allows every code.",
                        elem_id="image-top-k",
                    )
                    schedule = gr.Radio(
                        [(name.capitalize(), name) for name in schedule_names()],
                        value=first.schedule,
                        label="Schedule",
                        info="How many codes each step fills. Arccos starts with few and ends with many.",
                        elem_id="image-schedule",
                        elem_classes="segments",
                    )
                    roll = gr.Checkbox(
                        first.roll,
                        label="Shift the Halton order for each picture",
                        elem_id="image-roll",
                    )
                    upload = gr.UploadButton(
                        "Bring back settings from a PNG",
                        file_types=[".png"],
                        type="filepath",
                        size="sm",
                        elem_id="image-restore",
                    )
        with gr.Column(elem_id="image-stage", elem_classes="stage"):
            size = (info.image_size, info.image_size)
            stage = viewer("image", info.grid, size, first.steps, EMPTY)
            post = mailbox()
        rare = gr.State({})  # settings without a control that came with a picture or a link
        fields = [
            model,
            class_id,
            style,
            count,
            sampler,
            steps,
            guidance,
            temperature,
            top_k,
            schedule,
            roll,
            rare,
            seed,
            randomise,
        ]
        with gr.Column(elem_classes="below"):
            past = build_history(models, limits, fields)

    session = gr.State(None)

    def on_generate(*values: Any) -> Iterator[tuple]:
        yield from run(models, limits, *settings_of(*values))

    def on_model(name: str) -> list[Any]:
        values = form_values(defaults(models.info(name)))
        presets = gr.Radio(list(models.info(name).presets), value=usual(models.info(name)))
        return [*dressed(models, limits, values)[1:3], presets, *dressed(models, limits, values)[4:8], {}]

    def on_preset(name: str, choice: str | None) -> tuple:
        return (*preset_values(models.info(name), choice), {}) if choice else (gr.skip(),) * 5

    def on_reuse(value: dict | None, event: gr.EventData) -> list[Any]:
        return dressed(models, limits, reuse(value, event.what, event.picture))

    def on_restore(path: str | None) -> list[Any]:
        try:
            return dressed(models, limits, restore(models, limits, taken(path)))
        except ValueError as fault:
            raise refused(fault) from fault

    def on_save(value: dict | None, event: gr.EventData) -> dict[str, str]:
        if not value:
            raise gone()
        return parcel(*save(value, event.kind, event.picture, event.step))

    wire_run("image", buttons, limits, on_generate, fields, [stage, session, seed])
    model.input(on_model, model, [class_id, style, preset, sampler, steps, guidance, temperature], **QUICK)
    preset.input(on_preset, [model, preset], [sampler, steps, guidance, temperature], **QUICK)
    for control in (sampler, steps, guidance):
        control.input(None, None, preset, js="() => null", **PRIVATE)
    stage.reuse(on_reuse, session, fields, **QUICK)
    stage.save(on_save, session, post, **PRIVATE, show_progress="hidden", concurrency_limit=4)
    upload.upload(on_restore, upload, fields, **PRIVATE, show_progress="hidden")
    return ImageTab(session, past)


def taken(path: str | None) -> bytes:
    """Content of an uploaded file, which is deleted at once; blank when there is none."""
    if not path:
        return b""
    content = Path(path).read_bytes()
    Path(path).unlink(missing_ok=True)
    return content
