"""The text tab: rail of controls, stage of the texts that come in, and the plain functions behind them."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import gradio as gr

from app import text_form
from app.limits import Limits
from app.run_control import PRIVATE, QUICK, gone, refused, run_buttons, seeded, told, wire_run
from app.text_compare import in_step
from app.text_files import save
from app.text_form import COMPARE, FIELDS, KEEP, MODES, NEW, Z_MODES, asked
from app.text_models import KINDS, TextModels
from app.text_reveal import reveal_one
from app.text_settings import Latent, defaults, latent_words, usual
from app.viewer import Record, mailbox, parcel
from pgm_text.model_info import TextModelInfo
from pgm_text.request import SAMPLERS

FOLDER = Path(__file__).parent
SAMPLER_WORDS = "Which tokens come first: as many each step, by chance (two ways), or the surest first."
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
    values = in_step(texts, settings) if compared else reveal_one(texts.pipeline(settings.model), settings)
    with closing(values):
        for index, value in enumerate(values):
            yield value, value, settings.seed if index == 0 else gr.skip()


def text_viewer(texts: TextModels, limits: Limits, name: str) -> Record:
    """Stage, timeline and numbers of texts; its value comes from `app.text_reveal` or `app.text_compare`.

    Events: `.reuse` ({what: "seed" | "settings", side, text}), `.keep` ({text}) and `.save` ({kind, step}).
    """
    script = "\n".join((FOLDER / part).read_text(encoding="utf-8") for part in ("timeline.js", "text.js"))
    return Record(
        html_template=(FOLDER / "text.html").read_text(encoding="utf-8"),
        js_on_load=f'{script}\n/* events: "reuse", "keep", "save" */\nmountText(element, trigger, props, watch);',
        apply_default_css=False,
        elem_id="text-viewer",
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
    counts = [count for count in (1, 2, 4, 8) if count <= limits.max_texts]
    with gr.Row(elem_id="text-studio", elem_classes="studio"):
        with gr.Column(elem_id="text-rail", elem_classes="rail"):
            mode = gr.Radio(
                MODES,
                value=text_form.ONE,
                label="Show",
                info="Side by side sets PGM, MDLM and RMDM to the same task.",
                elem_id="text-mode",
                elem_classes="segments",
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
            count = gr.Radio(
                counts,
                value=1,
                label="How many",
                info="They appear together, each from its own seed.",
                elem_id="text-count",
                elem_classes="segments",
            )
            buttons = run_buttons("text", "Generate")
            with gr.Column(elem_classes="folds"):
                with gr.Accordion("How", open=False, elem_classes="fold"):
                    preset = gr.Radio(
                        list(info.presets),
                        value=usual(info),
                        label="Effort",
                        info="Sets the controls below as the model's card recommends.",
                        elem_id="text-preset",
                        elem_classes="segments",
                        visible=bool(info.presets),
                    )
                    steps = gr.Slider(
                        1,
                        limits.max_steps,
                        value=first.steps,
                        step=1,
                        label="Steps",
                        info="More steps: fewer words at a time, slower, usually better.",
                        elem_id="text-steps",
                        buttons=[],
                    )
                    length = gr.Slider(
                        1,
                        info.length,
                        value=first.length,
                        step=1,
                        label="Length in tokens",
                        info="The most a text may have, your prompt included; it may end earlier.",
                        elem_id="text-length",
                        buttons=[],
                    )
                    sampler = gr.Radio(
                        [(name.capitalize(), name) for name in SAMPLERS],
                        value=first.sampler,
                        label="Order (sampler)",
                        info=SAMPLER_WORDS,
                        elem_id="text-sampler",
                        elem_classes="segments",
                    )
                with gr.Accordion("More", open=False, elem_classes="fold"):
                    seed = gr.Number(
                        0,
                        precision=0,
                        label="Seed",
                        info="The same seed and settings give the same text again.",
                        elem_id="text-seed",
                    )
                    randomise = gr.Checkbox(True, label="New seed every time", elem_id="text-randomise")
                    temperature = gr.Slider(
                        0,
                        limits.max_temperature,
                        value=first.temperature,
                        step=0.05,
                        label="Temperature",
                        info="How daring each choice is. 0 takes the likeliest token, and texts repeat themselves.",
                        elem_id="text-temperature",
                        buttons=[],
                    )
                    top_p = gr.Slider(
                        0.05,
                        1,
                        value=first.top_p,
                        step=0.01,
                        label="Only the likeliest tokens (top-p)",
                        info="Chooses among tokens that together hold this share of the probability. 1 allows all.",
                        elem_id="text-top-p",
                        buttons=[],
                    )
                    blank = gr.Slider(
                        1,
                        min(16, info.length),
                        value=first.blank_tokens,
                        step=1,
                        label="Length of a blank in tokens",
                        info="How much room a blank of the prompt has.",
                        elem_id="text-blank",
                        buttons=[],
                    )
                latent_fold = gr.Accordion(
                    "The z of the text",
                    open=False,
                    elem_classes=["fold", "not-compare"],
                    elem_id="text-latent",
                    visible=bool(info.latent_width),
                )
                with latent_fold:
                    z_mode = gr.Radio(
                        Z_MODES,
                        value=NEW,
                        label="Where z comes from",
                        info=NO_Z_YET,
                        elem_id="text-z-mode",
                        elem_classes="segments",
                    )
                    walk_to = gr.Number(
                        1,
                        precision=0,
                        label="Walk to the z of seed",
                        info="All texts of a walk share one seed, so that only z changes.",
                        elem_id="text-walk-to",
                    )
                    stops = gr.Slider(
                        2,
                        min(text_form.MOST_STOPS, limits.max_texts),
                        value=min(5, limits.max_texts),
                        step=1,
                        label="Stops of the walk",
                        info="Texts from the kept z to the other one, both included.",
                        elem_id="text-stops",
                        buttons=[],
                    )
                    guidance = gr.Slider(
                        0,
                        limits.max_guidance,
                        value=first.guidance_scale,
                        step=0.1,
                        label="How strongly to follow z (guidance)",
                        info="0 is off and twice as fast.",
                        elem_id="text-guidance",
                        buttons=[],
                    )
        with gr.Column(elem_id="text-stage", elem_classes="stage"):
            stage = text_viewer(texts, limits, names[0])
            post = mailbox()

    session, kept = gr.State(None), gr.State(None)
    fields = [
        mode, model, prompt, count, steps, length, sampler, temperature, top_p, blank, z_mode, walk_to, stops, guidance,
        seed, randomise,
    ]  # fmt: skip

    def on_generate(held: Latent | None, *values: Any) -> Iterator[tuple]:
        yield from run(texts, limits, dict(zip(FIELDS, values, strict=True)), held)

    def on_model(name: str) -> list[Any]:
        settings = defaults(texts.info(name))
        return [*text_form.recommended(settings), settings.blank_tokens, settings.guidance_scale]

    def on_other_model(name: str) -> list[Any]:
        return [*_dressed(texts.info(name)), gr.HTML(**stage_settings(texts, limits, name))]

    def on_preset(name: str, choice: str | None) -> tuple:
        return text_form.preset_values(texts.info(name), choice) if choice else (gr.skip(),) * 5

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

    def on_save(value: dict | None, event: gr.EventData) -> dict[str, str]:
        if not value:
            raise gone()
        try:
            return parcel(*save(value, event.kind, event.step))
        except (ValueError, TypeError, IndexError) as fault:
            raise refused(fault) from fault

    how_fields = [steps, length, sampler, temperature, top_p]
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
    stage.save(on_save, session, post, **PRIVATE, show_progress="hidden", concurrency_limit=4)


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
