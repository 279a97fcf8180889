"""The text tab: rail of controls, stage of the texts that come in, and the plain functions behind them."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import gradio as gr

from app import text_form
from app.controls import (
    daring,
    efforts,
    guidance_strength,
    how_many,
    order_choice,
    second_looks,
    seed_choice,
    segments,
    slider,
    step_count,
)
from app.limits import Limits
from app.record import Record, record
from app.run_control import PRIVATE, QUICK, awaiting, gone, run_buttons, seeded, told, wire_run
from app.text_compare import in_step
from app.text_files import save
from app.text_form import COMPARE, FIELDS, KEEP, MODES, NEW, Z_MODES, asked
from app.text_models import KINDS, TextModels
from app.text_reveal import reveal_one
from app.text_settings import Latent, defaults, latent_words, usual
from app.viewer import mailbox, wire_saves
from pgm_text.model_info import TextModelInfo
from pgm_text.request import SAMPLERS

STEP_WORDS = "More steps: fewer words at a time, slower, usually better."
LENGTH_WORDS = "The most a text may have, your prompt included; it may end earlier."
SAMPLER_WORDS = "Which tokens come first: as many each step, by chance (two ways), the surest, or left to right."
NO_Z_YET = "RMDM writes every text from a z of its own: what the text is about. Keep one with the button under a text."
CHIPS = """
const place = element.querySelector(".text-examples");
const fill = () => place.replaceChildren(...(props.prompts || []).map((prompt) => {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: prompt.trim() });
  button.addEventListener("click", () => trigger("pick", { prompt }));
  return button;
}));
watch("prompts", fill);
fill();
/* events: "pick" */
"""


def run(
    texts: TextModels, limits: Limits, form: Mapping[str, Any], kept: Latent | None
) -> Iterator[tuple[dict[str, Any], dict[str, Any] | Any, int | Any]]:
    """Values of viewer, session and seed field while texts come in. A fault becomes one sentence in the value."""
    return told(_rows(texts, limits, form, kept), "texts")


def _rows(texts: TextModels, limits: Limits, form: Mapping[str, Any], kept: Latent | None) -> Iterator[tuple]:
    mode, settings, randomise = asked(texts, limits, form, kept)
    settings = seeded(settings, randomise)
    compared = mode == COMPARE
    yield from awaiting(texts, *(texts.beside(settings.model)[0] if compared else [settings.model]))
    values = in_step(texts, settings) if compared else reveal_one(texts.pipeline(settings.model), settings)
    with closing(values):
        for index, value in enumerate(values):
            yield value, value, settings.seed if index == 0 else gr.skip()


def text_viewer(texts: TextModels, limits: Limits, name: str) -> Record:
    """Stage, timeline and numbers of texts; its value comes from `app.text_reveal` or `app.text_compare`.

    Events: `.reuse` ({what: "seed" | "settings", side, text}), `.keep` ({text}) and `.save` ({kind, step}).
    """
    return record(
        "text",
        ("arrivals.js", "timeline.js", "stage.js", "run.js", "text.js"),
        "mountText(element, trigger, props, watch)",
        "text-viewer",
        ("reuse", "keep", "save"),
        **stage_settings(texts, limits, name),
        empty={
            "one": "Write a beginning or choose an example, then press Generate. Words appear in any order.",
            "compare": "The same seed, steps and length, written by every kind of model. Press Generate.",
        },
    )


def stage_settings(texts: TextModels, limits: Limits, name: str) -> dict[str, Any]:
    """What the empty stage shows of a model."""
    info = texts.info(name)
    names, _ = texts.beside(name)
    return {
        "cells": min(info.length, 64),
        "total": min(defaults(info).steps, limits.max_steps),
        "kinds": {"one": [""], "compare": [KINDS[texts.info(other).architecture] for other in names]},
        "left_out": texts.left_out(name),
    }


def kept_words(kept: Latent | None) -> str:
    """What the choice of z says."""
    return NO_Z_YET if kept is None else f"Kept: {latent_words(kept)}. Walk shows the texts between it and another."


def build_text_tab(texts: TextModels, limits: Limits) -> None:
    """Lay out the tab inside the current Blocks and wire it; one sentence when there is no text model."""
    if texts.missing:
        gr.HTML(f'<p id="text-missing">{_escaped(texts.missing)}</p>', js_on_load=None, apply_default_css=False)
        return
    names = texts.names()
    info = texts.info(names[0])
    first = defaults(info)
    with gr.Row(elem_id="text-studio", elem_classes="studio"):
        with gr.Column(elem_id="text-rail", elem_classes="rail"):
            mode = segments(
                "text",
                "mode",
                MODES,
                text_form.ONE,
                "Show",
                "Side by side sets PGM, MDLM and RMDM to the same task.",
            )
            model = gr.Dropdown(
                [(texts.info(name).title, name) for name in names],
                value=names[0],
                label="Model",
                elem_id="text-model",
                elem_classes="not-compare",
                interactive=len(names) > 1,
            )
            prompt = gr.Textbox(
                text_form.examples(info)[0],
                lines=2,
                max_lines=6,
                label="Prompt",
                info="A beginning, or a text with blanks of four underscores. It is kept to the letter.",
                placeholder="Leave empty to let the model choose",
                elem_id="text-prompt",
            )
            chips = Record(
                html_template='<div class="text-examples" role="group" aria-label="Examples"></div>',
                js_on_load=CHIPS,
                apply_default_css=False,
                elem_id="text-examples",
                prompts=text_form.examples(info),
            )
            count = how_many("text", min(limits.max_texts, 8), "They appear together, each from its own seed.")
            buttons = run_buttons("text", "Generate")
            with gr.Column(elem_classes="folds"):
                with gr.Accordion("How", open=False, elem_classes="fold"):
                    preset = efforts("text", list(info.presets), usual(info))
                    steps = step_count("text", limits.max_steps, first.steps, STEP_WORDS)
                    length = slider(
                        "text", "length", (1, info.length, 1), first.length, "Length in tokens", LENGTH_WORDS
                    )
                    sampler = order_choice("text", SAMPLERS, first.sampler, SAMPLER_WORDS)
                    rounds = second_looks("text", limits, first.refine_rounds, "tokens", "not-compare")
                with gr.Accordion("More", open=False, elem_classes="fold"):
                    seed, randomise = seed_choice("text", "The same seed and settings give the same text again.")
                    temperature = daring(
                        "text", limits, first.temperature, "0 takes the likeliest token, and texts repeat themselves."
                    )
                    top_p = slider(
                        "text",
                        "top-p",
                        (0.05, 1, 0.01),
                        first.top_p,
                        "Only the likeliest tokens (top-p)",
                        "Chooses among tokens that together hold this share of the probability. 1 allows all.",
                    )
                    blank = slider(
                        "text",
                        "blank",
                        (1, min(16, info.length), 1),
                        first.blank_tokens,
                        "Length of a blank in tokens",
                        "How much room a blank of the prompt has.",
                    )
                latent_fold = gr.Accordion(
                    "The z of the text",
                    open=False,
                    elem_classes=["fold", "not-compare"],
                    elem_id="text-latent",
                    visible=bool(info.latent_width),
                )
                with latent_fold:
                    z_mode = segments("text", "z-mode", Z_MODES, NEW, "Where z comes from", NO_Z_YET)
                    walk_to = gr.Number(
                        1,
                        precision=0,
                        label="Walk to the z of seed",
                        info="All texts of a walk share one seed, so that only z changes.",
                        elem_id="text-walk-to",
                    )
                    most_stops = min(text_form.MOST_STOPS, limits.max_texts)
                    stops = slider(
                        "text",
                        "stops",
                        (2, most_stops, 1),
                        min(5, most_stops),
                        "Stops of the walk",
                        "Texts from the kept z to the other one, both included.",
                    )
                    guidance = guidance_strength("text", limits, first.guidance_scale, "z")
        with gr.Column(elem_id="text-stage", elem_classes="stage"):
            stage = text_viewer(texts, limits, names[0])
            post = mailbox()

    session, kept = gr.State(None), gr.State(None)
    fields = [
        mode, model, prompt, count, steps, length, sampler, rounds, temperature, top_p, blank, z_mode, walk_to,
        stops, guidance, seed, randomise,
    ]  # fmt: skip

    def on_generate(held: Latent | None, *values: Any) -> Iterator[tuple]:
        yield from run(texts, limits, dict(zip(FIELDS, values, strict=True)), held)

    def on_model(name: str) -> list[Any]:
        settings = defaults(texts.info(name))
        return [*text_form.recommended(settings), settings.blank_tokens, settings.guidance_scale]

    def on_other_model(name: str) -> list[Any]:
        return [*_dressed(texts.info(name)), gr.HTML(**stage_settings(texts, limits, name))]

    def on_preset(name: str, choice: str | None) -> tuple:
        return text_form.preset_values(texts.info(name), choice) if choice else (gr.skip(),) * 6

    def on_pick(event: gr.EventData) -> str:
        return str(event.prompt)

    def on_reuse(value: dict | None, event: gr.EventData) -> list[Any]:
        if not value:
            raise gone()
        return text_form.reuse(value, event.what, event.side, event.text)

    def on_keep(value: dict | None, event: gr.EventData) -> tuple:
        if not value:
            raise gone()
        latent = text_form.latent_of(value, event.text)
        return latent, gr.Radio(value=KEEP, info=kept_words(latent)), gr.Accordion(open=True), True

    how_fields = [steps, length, sampler, rounds, temperature, top_p]
    wire_run("text", buttons, limits, on_generate, [kept, *fields], [stage, session, seed])
    mode.change(None, mode, None, js="(mode) => { document.documentElement.dataset.text = mode; }", **PRIVATE)
    model.input(on_model, model, [*how_fields, blank, guidance], **QUICK)
    model.change(on_other_model, model, [preset, length, latent_fold, chips, stage], **QUICK)
    preset.input(on_preset, [model, preset], how_fields, **QUICK)
    for control in how_fields:
        control.input(None, None, preset, js="() => null", **PRIVATE)
    chips.pick(on_pick, None, prompt, **QUICK)
    stage.reuse(on_reuse, session, fields, **QUICK)
    stage.keep(on_keep, session, [kept, z_mode, latent_fold, randomise], **QUICK)
    wire_saves(stage, session, post, lambda value, event: save(value, event.kind, event.step))


def _dressed(info: TextModelInfo) -> list[Any]:
    """What a model has of its own, however it was chosen: efforts, most tokens, a z, examples."""
    return [
        gr.Radio(list(info.presets), value=usual(info), visible=bool(info.presets)),
        gr.Slider(maximum=info.length),
        gr.Accordion(visible=bool(info.latent_width)),
        gr.HTML(prompts=text_form.examples(info)),
    ]


def _escaped(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
