"""The form of the text tab as plain values: into settings, and settings back into the form."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import gradio as gr

from app.fields import one_of, whole
from app.limits import Limits
from app.settings import LARGEST_SEED
from app.text_models import TextModels
from app.text_settings import Latent, TextSettings, checked, defaults, how
from pgm_text.model_info import TextModelInfo

ONE, COMPARE = "one", "compare"
MODES = [("One model", ONE), ("Side by side", COMPARE)]
NEW, KEEP, WALK = "new", "keep", "walk"
Z_MODES = [("New each time", NEW), ("Keep", KEEP), ("Walk", WALK)]
NOTHING_KEPT = "No z is kept yet: press Keep z under a text first."
FIELDS = (
    "mode", "model", "prompt", "num_texts", "steps", "length", "sampler", "refine_rounds", "temperature", "top_p",
    "blank_tokens", "z_mode", "walk_to", "stops", "guidance_scale", "seed", "randomise",
)  # fmt: skip
EXAMPLES = ("lantern (noun): ", "____ (noun): a person who ____", "quietly (adverb): ")  # where a model names none
MOST_STOPS = 8


def asked(
    texts: TextModels, limits: Limits, form: Mapping[str, Any], kept: Latent | None
) -> tuple[str, TextSettings, bool]:
    """What to show (ONE or COMPARE), checked settings, and whether to draw a new seed. ValueError names a fault.

    kept: the z that the visitor keeps, if any. Blank fields take what the model's card recommends.
    """
    mode = one_of("Show", form.get("mode") or ONE, (ONE, COMPARE))
    name = form.get("model") or (texts.names() or [""])[0]
    info = texts.info(name)
    given = {key: form[key] for key in TextSettings.__dataclass_fields__ if form.get(key) not in (None, "")}
    settings = replace(defaults(info), **{**given, "model": name, "z": None, "walk_to": None})
    if mode == COMPARE:  # a plain race of models
        settings = replace(settings, refine_rounds=0)
    z_mode = one_of("z", form.get("z_mode") or NEW, (NEW, KEEP, WALK))
    if info.latent_width and mode == ONE and z_mode != NEW:
        if kept is None:
            raise ValueError(NOTHING_KEPT)
        settings = replace(settings, z=kept)
        if z_mode == WALK:
            stops = whole("Stops", form.get("stops"), 2, min(MOST_STOPS, limits.max_texts))
            other = whole("The other z", form.get("walk_to"), 0, LARGEST_SEED)
            settings = replace(settings, walk_to=other, num_texts=stops)
    return mode, checked(settings, limits, info), bool(form.get("randomise"))


def examples(info: TextModelInfo) -> list[str]:
    """Prompts to try with a model."""
    return list(info.examples or EXAMPLES)


def preset_values(info: TextModelInfo, preset: str) -> tuple[Any, ...]:
    """Steps, length, sampler, second looks, temperature and top-p of a preset; where it is silent those recommended."""
    return recommended(replace(defaults(info), **how(info.presets.get(preset, {}))))


def recommended(settings: TextSettings) -> tuple[Any, ...]:
    """Values of the controls that a model's card speaks of."""
    return (
        settings.steps, settings.length, settings.sampler, settings.refine_rounds, settings.temperature, settings.top_p,
    )  # fmt: skip


def reuse(value: dict[str, Any], what: str, side: int, text: int) -> list[Any]:
    """Values of all fields from a run: the seed of a text alone ("seed"), or everything with a new seed ("settings").
    Model and second looks stay as they are where several models were compared.
    """
    side = value["sides"][side]
    found: dict[str, Any] = {"seed": side["seeds"][text], "randomise": False}
    if what != "seed":
        named = {key: side["settings"][key] for key in FIELDS if key in side["settings"] and key != "seed"}
        if side["settings"]["walk_to"] is not None:
            named |= {"stops": named.pop("num_texts")}
        found = {key: held for key, held in named.items() if held is not None} | {"randomise": True}
        if value["kind"] == COMPARE:
            found.pop("model")
            found.pop("refine_rounds")
    return [found.get(key, gr.skip()) for key in FIELDS]


def latent_of(value: dict[str, Any], text: int) -> Latent:
    """The z of one text of a run."""
    settings = value["sides"][0]["settings"]
    return TextSettings(**settings).latents()[text]
