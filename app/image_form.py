"""The form of the image tab as plain values: what a model recommends, and settings going into the form and out of it.

The fields in their order: model, class, style, how many, sampler, steps, guidance, second looks, temperature, top-k,
schedule, roll, rare settings (a dict, see `app.settings.RARE`), seed, new seed every time.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import gradio as gr

from app.limits import Limits
from app.models import Models
from app.settings import RARE, Settings, checked
from pgm.refinement import all_steps
from pgm_image.metadata import read_settings
from pgm_image.model_info import ModelInfo
from pgm_image.request import make_request

ANY = ""  # the value of "any class" and "any style" in the form
WORDS_PER_CLASS = 12  # more names a class can be found by in the menu
RESTORE_ERROR = "That file is not a PNG saved by this page, so it holds no settings to bring back."


def choices(names: Sequence[str], anything: str) -> list[tuple[str, str]]:
    """Dropdown choices: every name, and "any"."""
    return [(anything, ANY), *((name, name) for name in names)]


def class_choices(info: ModelInfo) -> list[tuple[str, str]]:
    """Dropdown choices of classes: "any", all names, then further words that lead to them ("eagle: bird")."""
    taken = {name.casefold() for name in info.classes}
    aliases = []
    for name in info.classes:
        words = [word for word in info.words.get(name, ()) if word.casefold() not in taken][:WORDS_PER_CLASS]
        taken.update(word.casefold() for word in words)
        aliases += [(f"{word}: {name}", name) for word in words]
    return choices(info.classes, "Anything") + aliases


def defaults(info: ModelInfo) -> Settings:
    """Settings the page starts with for a model: those its card recommends, its first class and its first style, since
    a picture in a style of its own comes out better than one in any.
    """
    style = info.styles[0] if info.styles else None
    return replace(Settings(model=info.name, class_id=info.classes[0], style=style), **how(info.recommended))


def how(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a card's settings that the form has a control for."""
    fields = ("sampler", "steps", "guidance_scale", "refine_rounds", "temperature", "top_k", "schedule", "roll")
    return {key: settings[key] for key in fields if key in settings}


def usual(info: ModelInfo) -> str | None:
    """The preset that is the model's recommendation, if there is one."""
    standard = how(info.recommended)
    return next((name for name, values in info.presets.items() if standard | how(values) == standard), None)


def preset_values(info: ModelInfo, preset: str) -> tuple[str, int, float, int, float]:
    """Sampler, steps, guidance, second looks and temperature of a preset; those recommended where it is silent."""
    settings = replace(defaults(info), **how(info.presets.get(preset, {})))
    return settings.sampler, settings.steps, settings.guidance_scale, settings.refine_rounds, settings.temperature


def reuse(value: dict[str, Any] | None, what: str, picture: int) -> list[Any]:
    """Form values from a picture: its seed alone, or all its settings with a new seed. Order as in the form."""
    if not value:
        return [gr.skip()] * 15
    settings = Settings(**value["settings"]).of_picture(picture)
    if what == "seed":
        return [gr.skip()] * 13 + [settings.seed, False]
    return [*form_values(settings)[:-2], gr.skip(), True]


def restore(models: Models, limits: Limits, content: bytes | None) -> list[Any]:
    """Form values, seed included, from a PNG that was saved here; ValueError when it holds none that work here."""
    try:
        found = read_settings(io.BytesIO(content or b""))
    except (ValueError, TypeError, OSError) as fault:
        raise ValueError(RESTORE_ERROR) from fault
    return bring(models, limits, found)


def bring(models: Models, limits: Limits, found: Mapping[str, Any]) -> list[Any]:
    """Form values, seed included, from settings that came with a PNG, a link or the history."""
    return [*form_values(brought(models, limits, found))[:-1], False]


def brought(models: Models, limits: Limits, found: Mapping[str, Any]) -> Settings:
    """Checked settings of whatever was brought: unknown names are passed over, missing ones are as the model's card
    recommends, no class and no style mean any. A picture's own that are silent on second looks are older than these:
    it had none.
    Raises ValueError when they do not work with a model that is here.
    """
    given = {key: found[key] for key in Settings.__dataclass_fields__ if found.get(key) not in (None, "")}
    if {"seed", "steps"} <= given.keys():  # a whole picture's, not a link written by hand
        given = {"refine_rounds": 0, **given}
    if "version" in found:  # all that a picture was made with, where a link leaves out what is as the card says
        given = {"encoder_refresh": 1, **given}
    info = models.info(str(given.get("model", models.names()[0])))
    base = replace(defaults(info), class_id=None, style=None)
    settings = checked(
        replace(base, **{**given, "model": info.name}),
        replace(limits, max_steps=min(limits.max_steps, info.length)),
    )
    if settings.class_id not in (None, *info.classes) or settings.style not in (None, *info.styles):
        raise ValueError(f"The model {info.name} has no class and style called {settings.title()[:80]}.")
    return replace(settings, **_as_the_card_says(info, settings))


def _as_the_card_says(info: ModelInfo, settings: Settings) -> dict[str, None]:
    """The rare settings that are what the model takes anyway, so that nothing has to be carried along for them."""
    request = make_request(info, None)
    usual = {**asdict(request.sampling), "visible_length": request.visible_length}
    return {name: None for name in RARE if getattr(settings, name) == usual[name]}


def usual_steps(info: ModelInfo) -> int:
    """Steps of a run as the model's card recommends it, second looks included."""
    return all_steps(make_request(info, None).sampling, info.length)


def dressed(models: Models, limits: Limits, values: list[Any]) -> list[Any]:
    """Form values where the controls that depend on the model also get that model's choices and bounds."""
    model, class_id, style, count, sampler, steps, *others = values
    if model not in models.names():  # nothing to change but the seed
        return values
    info = models.info(model)
    return [
        model,
        gr.Dropdown(class_choices(info), value=class_id),
        gr.Dropdown(choices(info.styles, "Any style"), value=style, visible=bool(info.styles)),
        count,
        sampler,
        gr.Slider(maximum=min(limits.max_steps, info.length), value=steps),
        *others,
    ]


def form_values(settings: Settings) -> list[Any]:
    """Values of the form's fields for `settings`, in the order of the form."""
    return [
        settings.model,
        settings.class_id or ANY,
        settings.style or ANY,
        settings.num_images,
        settings.sampler,
        settings.steps,
        settings.guidance_scale,
        settings.refine_rounds,
        settings.temperature,
        settings.top_k or 0,
        settings.schedule,
        settings.roll,
        settings.rare(),
        settings.seed,
        True,
    ]


def settings_of(*fields: Any) -> tuple[Settings, bool]:
    """The form's fields, in their order, as settings and whether the seed is to be drawn anew."""
    *values, rare, seed, randomise = fields
    settings = Settings(*values, seed=seed, **(rare or {}))
    return replace(settings, class_id=settings.class_id or None, style=settings.style or None), bool(randomise)
