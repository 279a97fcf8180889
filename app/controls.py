"""Controls that the forms of several tabs have in common, laid out where they are called.

channel is the tab's name ("image"): the control is found as `#<channel>-<name>`. about: one plain sentence of help.
classes: further classes of the style sheet, such as "not-sweep".
"""

from collections.abc import Sequence
from typing import Any

import gradio as gr

from app.image_form import ANY, choices, class_choices
from app.limits import Limits
from app.run_control import PRIVATE
from pgm_image.model_info import ModelInfo

Choices = Sequence[Any]  # values, or pairs of words and value


def segments(
    channel: str, name: str, offered: Choices, value: Any, label: str, about: str, *classes: str, visible: bool = True
) -> gr.Radio:
    """A few choices as one segmented control."""
    return gr.Radio(
        offered,
        value=value,
        label=label,
        info=about,
        elem_id=f"{channel}-{name}",
        elem_classes=["segments", *classes],
        visible=visible,
    )


def slider(
    channel: str, name: str, range_: tuple[float, float, float], value: float, label: str, about: str, *classes: str
) -> gr.Slider:
    """A number between two others; range_: least, most and step."""
    least, most, step = range_
    return gr.Slider(
        least,
        most,
        value=value,
        step=step,
        label=label,
        info=about,
        elem_id=f"{channel}-{name}",
        elem_classes=list(classes),
        buttons=[],
    )


def class_menu(channel: str, info: ModelInfo, value: str | None, about: str) -> gr.Dropdown:
    """The classes of a model, found by typing; class_pictures.js is told which one is chosen."""
    menu = gr.Dropdown(
        class_choices(info),
        value=value or ANY,
        label="Class",
        info=f"{about} Type to search.",
        elem_id=f"{channel}-class",
    )
    menu.change(None, menu, None, js=f"(name) => {{ pgm.pictured('{channel}', name); }}", **PRIVATE)
    return menu


def style_menu(channel: str, info: ModelInfo, value: str | None = None) -> gr.Dropdown:
    """The styles of a model; hidden when it has none."""
    return gr.Dropdown(
        choices(info.styles, "Any style"),
        value=value or ANY,
        label="Style",
        info="Whose way of drawing to follow.",
        elem_id=f"{channel}-style",
        visible=bool(info.styles),
    )


def how_many(channel: str, most: int, about: str) -> gr.Radio:
    """How many pictures or texts, up to `most`."""
    counts = [count for count in (1, 2, 4, 8, 16) if count <= most]
    return segments(channel, "count", counts, 1, "How many", about)


def efforts(channel: str, presets: Sequence[str], value: str | None) -> gr.Radio:
    """The presets of a model's card; hidden when it has none."""
    about = "Sets the controls below as the model's card recommends."
    return segments(channel, "preset", list(presets), value, "Effort", about, visible=bool(presets))


def order_choice(channel: str, names: Sequence[str], value: str, about: str, *classes: str) -> gr.Radio:
    """In which order codes or tokens come in."""
    offered = [(name.capitalize(), name) for name in names]
    return segments(channel, "sampler", offered, value, "Order (sampler)", about, *classes)


def step_count(channel: str, most: int, value: int, about: str, *classes: str) -> gr.Slider:
    """In how many steps."""
    return slider(channel, "steps", (1, most, 1), value, "Steps", about, *classes)


def guidance_strength(
    channel: str, limits: Limits, value: float, what: str = "the class", more: str = "", *classes: str
) -> gr.Slider:
    """How strongly to follow `what`; more: what else there is to say of it."""
    about = f"0 is off and twice as fast{more}."
    label = f"How strongly to follow {what} (guidance)"
    return slider(channel, "guidance", (0, limits.max_guidance, 0.1), value, label, about, *classes)


def second_looks(channel: str, limits: Limits, value: int, what: str = "codes", *classes: str) -> gr.Slider:
    """In how many rounds the finished result is refined."""
    about = f"The model takes back the {what} that fit worst and draws them anew, this many times. 0 is off."
    label = "Second looks (refinement)"
    return slider(channel, "rounds", (0, limits.max_refine_rounds, 1), value, label, about, *classes)


def daring(channel: str, limits: Limits, value: float, about: str) -> gr.Slider:
    """The temperature."""
    about = f"How daring each choice is. {about}"
    return slider(channel, "temperature", (0, limits.max_temperature, 0.05), value, "Temperature", about)


def seed_choice(channel: str, about: str) -> tuple[gr.Number, gr.Checkbox]:
    """The seed, and whether a new one is drawn for every run."""
    seed = gr.Number(0, precision=0, label="Seed", info=about, elem_id=f"{channel}-seed")
    return seed, gr.Checkbox(True, label="New seed every time", elem_id=f"{channel}-randomise")
