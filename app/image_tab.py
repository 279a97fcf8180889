"""The image tab: rail of controls, stage of the reveal, and the plain functions behind them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr

from app.controls import (
    class_menu,
    daring,
    efforts,
    guidance_strength,
    how_many,
    order_choice,
    second_looks,
    seed_choice,
    segments,
    step_count,
    style_menu,
)
from app.downloads import save
from app.history import build_history
from app.image_form import (
    defaults,
    dressed,
    form_values,
    preset_values,
    restore,
    reuse,
    settings_of,
    usual,
    usual_steps,
)
from app.limits import Limits
from app.models import Models
from app.record import Record
from app.reveal import reveal
from app.run_control import PRIVATE, QUICK, awaiting, refused, run_buttons, seeded, told, wire_run
from app.settings import Settings, checked
from app.viewer import mailbox, viewer, wire_saves
from pgm.orders import order_names
from pgm.schedules import schedule_names

ORDER_WORDS = "Which cells come first: spread evenly, surest first, by chance, or row by row."
STEP_WORDS = "More steps: fewer codes at a time, slower, usually better."
GUIDANCE_WORDS = "; high values give typical, less varied pictures"
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
    yield from awaiting(models, settings.model)
    for value in reveal(models.pipeline(settings.model), settings):
        yield value, value, settings.seed if not value["steps"] else gr.skip()


def build_image_tab(models: Models, limits: Limits, model: gr.Dropdown) -> ImageTab:
    """Lay out the tab inside the current Blocks and wire it. `model` is the choice in the page's head."""
    start = models.names()[0]
    info = models.info(start)
    first = defaults(info)
    with gr.Row(elem_id="image-studio", elem_classes="studio"):
        with gr.Column(elem_id="image-rail", elem_classes="rail"):
            class_id = class_menu("image", info, first.class_id, "What the picture should show.")
            style = style_menu("image", info, first.style)
            count = how_many("image", limits.max_images, "They appear together, each from its own seed.")
            buttons = run_buttons("image", "Generate")
            with gr.Column(elem_classes="folds"):
                with gr.Accordion("How", open=False, elem_classes="fold"):
                    preset = efforts("image", list(info.presets), usual(info))
                    sampler = order_choice("image", order_names(), first.sampler, ORDER_WORDS)
                    steps = step_count("image", min(limits.max_steps, info.length), first.steps, STEP_WORDS)
                    guidance = guidance_strength("image", limits, first.guidance_scale, more=GUIDANCE_WORDS)
                    rounds = second_looks("image", limits, first.refine_rounds)
                with gr.Accordion("More", open=False, elem_classes="fold", elem_id="image-more"):
                    seed, randomise = seed_choice("image", "The same seed and settings give the same picture again.")
                    temperature = daring("image", limits, first.temperature, "0 always takes the likeliest code.")
                    top_k = gr.Number(
                        first.top_k or 0,
                        precision=0,
                        minimum=0,
                        label="Only the k likeliest codes (top-k)",
                        info="0 allows every code.",
                        elem_id="image-top-k",
                    )
                    schedule = segments(
                        "image",
                        "schedule",
                        [(name.capitalize(), name) for name in schedule_names()],
                        first.schedule,
                        "Schedule",
                        "How many codes each step fills. Arccos starts with few and ends with many.",
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
            stage = viewer("image", info.grid, size, usual_steps(info), EMPTY)
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
            rounds,
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
        return [*dressed(models, limits, values)[1:3], presets, *dressed(models, limits, values)[4:9], {}]

    def on_preset(name: str, choice: str | None) -> tuple:
        return (*preset_values(models.info(name), choice), {}) if choice else (gr.skip(),) * 6

    def on_reuse(value: dict | None, event: gr.EventData) -> list[Any]:
        return dressed(models, limits, reuse(value, event.what, event.picture))

    def on_restore(path: str | None) -> list[Any]:
        try:
            return dressed(models, limits, restore(models, limits, taken(path)))
        except ValueError as fault:
            raise refused(fault) from fault

    recommended = [sampler, steps, guidance, rounds, temperature]
    wire_run("image", buttons, limits, on_generate, fields, [stage, session, seed])
    model.input(on_model, model, [class_id, style, preset, *recommended, rare], **QUICK)
    preset.input(on_preset, [model, preset], [*recommended, rare], **QUICK)
    for control in recommended[:-1]:
        control.input(None, None, preset, js="() => null", **PRIVATE)
    stage.reuse(on_reuse, session, fields, **QUICK)
    wire_saves(stage, session, post, lambda value, event: save(value, event.kind, event.picture, event.step))
    upload.upload(on_restore, upload, fields, **PRIVATE, show_progress="hidden")
    return ImageTab(session, past)


def taken(path: str | None) -> bytes:
    """Content of an uploaded file, which is deleted at once; blank when there is none."""
    if not path:
        return b""
    content = Path(path).read_bytes()
    Path(path).unlink(missing_ok=True)
    return content
