"""The tokens tab: what the tokenizer makes of a picture, and what changes when a code does."""

import base64
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from app import tokens
from app.environment import on_gpu
from app.faults import failure, sentence
from app.image_tab import taken
from app.limits import Limits
from app.models import Models
from app.record import Record, record
from app.reveal import picture_at
from app.run_control import WORKER, loading
from tokenizer.image_files import SUFFIXES, open_picture

log = logging.getLogger(__name__)

EMPTY = "Choose a picture or drop one here, or take the one from the Image tab."
NOTHING = "There is no picture in the Image tab yet; generate one there first."
WORDS = """
A picture is cut into cells. For each cell the tokenizer keeps one number, the entry of its *codebook* that fits best;
the decoder paints the picture back from these numbers alone. Point at a cell to see its code and every other cell with
it; click it to put another code there.
"""


def token_viewer(name: str, models: Models) -> Record:
    """Picture, rebuilt picture, difference and codes of one picture; its value comes from `app.tokens`.

    Events: `.look` ({model, code}) and `.swap` ({model, codes, original: data URL}); their answers are props.
    """
    info = models.info(name)
    return record(
        "tokens",
        ("cells.js", "stage.js", "run.js", "tokens.js"),
        "mountTokens(element, trigger, props, watch)",
        "tokens-viewer",
        ("look", "swap"),
        grid=list(info.grid),
        size=[info.image_size, info.image_size],
        empty=EMPTY,
        looked=None,
        swapped=None,
    )


def codes_of(value: dict[str, Any], picture: int, step: int) -> list[int]:
    """The codes a reveal had for a picture after a step, row by row, -1 where unknown."""
    codes = [-1] * (value["grid"][0] * value["grid"][1])
    for one in value["steps"][: step + 1]:
        for cell, code in zip(one["filled"][picture], one["codes"][picture], strict=True):
            codes[cell] = code
    return codes


def take(models: Models, value: dict[str, Any] | None, place: dict[str, int] | None) -> dict[str, Any]:
    """Value of the token viewer for the picture that is on the stage of the image tab. ValueError when none is."""
    if not value or not value["steps"]:
        raise ValueError(NOTHING)
    place = place or {}
    step = min(max(int(place.get("step", -1)), 0), len(value["steps"]) - 1)
    picture = min(max(int(place.get("picture", 0)), 0), value["count"] - 1)
    name = value["settings"]["model"]
    title = f"{value['title']}, seed {value['seeds'][picture]}"
    chosen = codes_of(value, picture, step)
    return tokens.read_tokens(models.pipeline(name), picture_at(value, step, picture), title, chosen)


def build_tokens_tab(models: Models, limits: Limits, model: gr.Dropdown, session: gr.State) -> None:
    """Lay out the tab inside the current Blocks and wire it; `session` holds the last run of the image tab."""
    with gr.Row(elem_id="tokens-studio", elem_classes="studio"):
        with gr.Column(elem_id="tokens-rail", elem_classes="rail"):
            gr.Markdown(WORDS, elem_classes="rail-words")
            with gr.Column(elem_id="tokens-act", elem_classes="act"):
                upload = gr.UploadButton(
                    "Choose a picture",
                    file_types=list(SUFFIXES),
                    type="filepath",
                    variant="primary",
                    size="lg",
                    elem_id="tokens-upload",
                )
                current = gr.Button("From the Image tab", size="lg", elem_id="tokens-current")
                gr.HTML(
                    html_template='<p class="notice" id="tokens-notice" role="alert"></p>',
                    js_on_load=None,
                    apply_default_css=False,
                )
                queue = gr.HTML("", elem_id="tokens-queue", elem_classes="queue", js_on_load=None)
        with gr.Column(elem_id="tokens-stage", elem_classes="stage"):
            stage = token_viewer(models.names()[0], models)
    place = gr.JSON(visible=False)

    def told(work: Any, *names: str) -> Iterator[dict[str, Any]]:
        """That a model is being loaded, if it has to be; then the outcome of `work`, or one sentence."""
        words = loading(models, *names)
        if words:
            yield {"loading": words}
        yield answered(work)

    def answered(work: Any) -> dict[str, Any]:
        """The outcome of `work`, or one sentence."""
        try:
            return work()
        except ValueError as fault:
            return {"error": sentence(fault)}
        except Exception as fault:
            log.exception("the tokenizer failed")
            return {"error": failure(fault)}

    def on_upload(name: str, path: str) -> Iterator[dict[str, Any]]:
        title = Path(path).name[:80]
        content = taken(path)

        def work() -> dict[str, Any]:
            return tokens.read_tokens(models.pipeline(name), open_picture(content, limits.max_pixels), title)

        yield from told(work, name)

    def on_current(value: dict | None, at: dict | None) -> Iterator[dict[str, Any]]:
        yield from told(lambda: take(models, value, at), *([value["settings"]["model"]] if value else []))

    def on_look(event: gr.EventData) -> Any:
        return gr.HTML(looked=answered(lambda: tokens.similar(models.pipeline(str(event.model)), event.code)))

    def on_swap(event: gr.EventData) -> Any:
        def work() -> dict[str, Any]:
            pipeline = models.pipeline(str(event.model))
            most = pipeline.info.image_size**2
            original = open_picture(base64.b64decode(str(event.original).partition(",")[2]), most)
            return tokens.swapped(pipeline, list(event.codes), original)

        return gr.HTML(swapped={**answered(work), "token": event.token})

    private = {"api_visibility": "private", "show_progress": "hidden"}
    heavy = {**private, "concurrency_id": WORKER, "concurrency_limit": limits.workers}
    gpu = on_gpu(limits.gpu_seconds)
    busy = "() => pgm.start('tokens')"
    upload.upload(None, js=busy, **private)
    reading = {**heavy, "show_progress": "minimal", "show_progress_on": queue, "trigger_mode": "once"}
    upload.upload(gpu(on_upload), [model, upload], stage, **reading)
    current.click(None, js=busy, **private)
    current.click(gpu(on_current), [session, place], stage, js="(value) => [value, pgm.at('image')]", **reading)
    stage.look(gpu(on_look), None, stage, **heavy)
    stage.swap(gpu(on_swap), None, stage, trigger_mode="always_last", **heavy)
