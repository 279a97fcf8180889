"""The compare tab: reveals in step beside each other, and a sweep over steps and guidance."""

import io
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import gradio as gr

from app import compare, sweep
from app.controls import class_menu, guidance_strength, order_choice, seed_choice, segments, step_count, style_menu
from app.downloads import file_name
from app.image_form import ANY, brought, choices, class_choices, defaults
from app.limits import Limits
from app.models import Models
from app.record import Record, record
from app.run_control import PRIVATE, QUICK, awaiting, run_buttons, seeded, told, wire_run
from app.settings import Settings, checked
from app.viewer import mailbox, wire_saves
from pgm.orders import order_names

SWEEP = "sweep"
MODES = [("PGM / MaskGIT", compare.TWIN), ("Orders", compare.ORDERS), ("Sweep", SWEEP)]
SAME = "Everything else stays the same."
EMPTY = {
    compare.TWIN: "The same class, seed and settings, drawn by both kinds of model. Press Compare.",
    compare.ORDERS: "The same class and seed in three orders. Press Compare.",
    SWEEP: "One seed, drawn with every pair of steps and guidance. Press Compare.",
}


def compare_viewer(models: Models, name: str) -> Record:
    """Stages beside each other over one timeline, or a sheet; its value comes from `app.compare` or `app.sweep`.

    Events: `.save` ({kind: "png" | "csv", step}).
    """
    info = models.info(name)
    return record(
        "compare",
        ("cells.js", "timeline.js", "stage.js", "run.js", "compare.js"),
        "mountCompare(element, trigger, props, watch)",
        "compare-viewer",
        ("save",),
        grid=list(info.grid),
        size=[info.image_size, info.image_size],
        mode=first_mode(models, name),
        labels={
            compare.TWIN: list(compare.KINDS.values()),
            compare.ORDERS: [order.capitalize() for order in compare.COMPARED_ORDERS],
        },
        empty=EMPTY,
        blocked=compare.no_twin(models, name),
    )


def first_mode(models: Models, name: str) -> str:
    """What is compared unless the visitor says otherwise."""
    return compare.ORDERS if compare.no_twin(models, name) else compare.TWIN


def run(
    models: Models, limits: Limits, mode: str, settings: Settings, lists: Sequence[str], randomise: bool
) -> Iterator[tuple[dict[str, Any], dict[str, Any] | Any, int | Any]]:
    """Values of viewer, session and seed field while a comparison comes in. A fault becomes one sentence."""
    return told(_rows(models, limits, mode, settings, lists, randomise), "pictures")


def _rows(
    models: Models, limits: Limits, mode: str, settings: Settings, lists: Sequence[str], randomise: bool
) -> Iterator[tuple]:
    settings = replace(checked(seeded(settings, randomise), limits), refine_rounds=0)  # a plain race of samplers
    twin = models.twin(settings.model) if mode == compare.TWIN else None
    yield from awaiting(models, settings.model, *([twin] if twin else []))
    if mode == SWEEP:
        values = sweep.sweep(models.pipeline(settings.model), sweep.planned(settings, *lists, limits))
    else:
        values = compare.in_step(models, compare.sides(models, mode, settings))
    with closing(values):
        for index, value in enumerate(values):
            yield value, value, settings.seed if index == 0 else gr.skip()


def save(value: dict[str, Any], kind: str, step: int) -> tuple[str, str, bytes]:
    """File name, media type and content of a comparison: "png", one labelled picture, or "csv"."""
    is_sweep = value["kind"] == SWEEP
    settings = value["settings"] if is_sweep else value["sides"][0]["settings"]
    name = f"{file_name(Settings(**settings))}-{'sweep' if is_sweep else 'comparison'}.{kind}"
    if kind == "csv":
        return name, "text/csv", (sweep if is_sweep else compare).table(value).encode("utf-8")
    if kind != "png" or not (value["cells"] if is_sweep else 0 <= step < len(value["sides"][0]["steps"])):
        raise ValueError("there is no such picture in this comparison")
    buffer = io.BytesIO()
    (sweep.sheet(value) if is_sweep else compare.sheet(value, step)).save(buffer, "png", optimize=True)
    return name, "image/png", buffer.getvalue()


def build_compare_tab(models: Models, limits: Limits, model: gr.Dropdown, history: Record) -> None:
    """Lay out the tab inside the current Blocks and wire it. `model` is the choice in the page's head; settings that
    are brought to the page (`history.bring`) fill this form too.
    """
    start = models.names()[0]
    info = models.info(start)
    first = defaults(info)
    with gr.Row(elem_id="compare-studio", elem_classes="studio"):
        with gr.Column(elem_id="compare-rail", elem_classes="rail"):
            mode = segments(
                "compare",
                "mode",
                MODES,
                first_mode(models, start),
                "What to compare",
                compare.about_twins(models, start) or SAME,
            )
            class_id = class_menu("compare", info, first.class_id, "What the pictures should show.")
            style = style_menu("compare", info, first.style)
            buttons = run_buttons("compare", "Compare")
            with gr.Column(elem_classes="folds"), gr.Accordion("How", open=False, elem_classes="fold"):
                sampler = order_choice("compare", order_names(), first.sampler, "Which cells come first.", "not-orders")
                most = min(limits.max_steps, info.length)
                steps = step_count("compare", most, first.steps, "More steps: fewer codes at a time.", "not-sweep")
                guidance = guidance_strength("compare", limits, first.guidance_scale, "the class", "", "not-sweep")
                many_steps = gr.Textbox(
                    "4, 8, 16, 32",
                    label="Steps, one row for each",
                    info=f"Up to {sweep.MAX_SIDE} numbers; {limits.max_sweep} pictures in all.",
                    elem_id="compare-many-steps",
                    elem_classes="only-sweep",
                )
                many_guidance = gr.Textbox(
                    "0, 1, 2, 4",
                    label="Guidance, one column for each",
                    info="0 is off.",
                    elem_id="compare-many-guidance",
                    elem_classes="only-sweep",
                )
                seed, randomise = seed_choice("compare", "The same for all pictures here.")
        with gr.Column(elem_id="compare-stage", elem_classes="stage"):
            stage = compare_viewer(models, start)
            post = mailbox()

    session = gr.State(None)
    form = [class_id, style, sampler, steps, guidance, seed, randomise]

    def on_compare(name: str, mode: str, lists_steps: str, lists_guidance: str, *values: Any) -> Iterator[tuple]:
        chosen_class, chosen_style, order, count, strength, number, anew = values
        settings = replace(
            defaults(models.info(name)),
            class_id=chosen_class or None,
            style=chosen_style or None,
            sampler=order,
            steps=count,
            guidance_scale=strength,
            seed=number,
        )
        yield from run(models, limits, mode, settings, (lists_steps, lists_guidance), anew)

    def on_model(name: str, choice: str) -> list[Any]:
        choice = first_mode(models, name) if choice == compare.TWIN else choice
        return [
            *filled(defaults(models.info(name))),
            gr.Radio(value=choice, info=compare.about_twins(models, name) or SAME),
            gr.HTML(blocked=compare.no_twin(models, name)),
        ]

    def filled(settings: Settings) -> list[Any]:
        known = models.info(settings.model)
        return [
            gr.Dropdown(class_choices(known), value=settings.class_id or ANY),
            gr.Dropdown(choices(known.styles, "Any style"), value=settings.style or ANY, visible=bool(known.styles)),
            settings.sampler,
            gr.Slider(maximum=min(limits.max_steps, known.length), value=settings.steps),
            settings.guidance_scale,
        ]

    def on_bring(event: gr.EventData) -> list[Any]:
        try:
            settings = brought(models, limits, dict(event.settings))
        except (ValueError, TypeError):  # the image tab tells why
            return [gr.skip()] * len(form)
        return [*filled(settings), settings.seed if event.keep_seed else gr.skip(), not event.keep_seed]

    wire_run(
        "compare",
        buttons,
        limits,
        on_compare,
        [model, mode, many_steps, many_guidance, *form],
        [stage, session, seed],
    )
    mode.change(None, mode, None, js="(mode) => { document.documentElement.dataset.compare = mode; }", **PRIVATE)
    model.change(on_model, [model, mode], [*form[:5], mode, stage], **QUICK)
    history.bring(on_bring, None, form, **QUICK)
    wire_saves(stage, session, post, lambda value, event: save(value, event.kind, event.step))
