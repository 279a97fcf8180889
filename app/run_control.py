"""What every tab that runs a model shares: its buttons, how a run starts, stops and settles, what is told meanwhile."""

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeVar

import gradio as gr

from app.environment import on_gpu
from app.faults import failure, sentence
from app.limits import Limits

log = logging.getLogger(__name__)

NEW_SEEDS = 1_000_000  # seeds drawn here are short enough to read out
WORKER = "device"  # all events that use the model share one queue
GONE = "The server no longer keeps this run; generate it again from its seed."
PRIVATE = {"api_visibility": "private"}
QUICK = {**PRIVATE, "queue": False, "show_progress": "hidden"}

Seeded = TypeVar("Seeded")


class Shelf(Protocol):
    """Models by name, some of them in memory: `app.models.Models` or `app.text_models.TextModels`."""

    def info(self, name: str) -> Any: ...

    def loaded(self) -> list[str]: ...


class RunButtons(NamedTuple):
    """Generate and Stop, of which one shows, and the line that the place in the queue is read from."""

    generate: gr.Button
    stop: gr.Button
    queue: gr.HTML


def run_buttons(channel: str, words: str) -> RunButtons:
    """Lay out the buttons of a tab and the line for its faults; page.js finds them by the channel's name."""
    with gr.Column(elem_id=f"{channel}-act", elem_classes="act"):
        generate = gr.Button(words, variant="primary", size="lg", elem_id=f"{channel}-generate")
        stop = gr.Button("Stop", size="lg", elem_id=f"{channel}-stop")
        gr.HTML(
            html_template=f'<p class="notice" id="{channel}-notice" role="alert"></p>',
            js_on_load=None,
            apply_default_css=False,
        )
        queue = gr.HTML("", elem_id=f"{channel}-queue", elem_classes="queue", js_on_load=None)
    return RunButtons(generate, stop, queue)


def wire_run(
    channel: str,
    buttons: RunButtons,
    limits: Limits,
    handler: Callable[..., Iterator[tuple]],
    inputs: Sequence[gr.components.Component],
    outputs: Sequence[gr.components.Component],
    js: str | None = None,
) -> None:
    """Join buttons, viewer and handler, a generator of values for `outputs`; Stop closes it.

    js: a function of the inputs that the browser calls first and whose result is sent instead.
    """
    buttons.generate.click(None, js=f"() => pgm.start('{channel}')", **PRIVATE)
    event = buttons.generate.click(
        on_gpu(limits.gpu_seconds)(handler),
        inputs,
        outputs,
        js=js,
        concurrency_id=WORKER,
        concurrency_limit=limits.workers,
        trigger_mode="once",
        show_progress="minimal",
        show_progress_on=buttons.queue,
        **PRIVATE,
    )
    event.then(None, js=f"() => pgm.settle('{channel}')", **PRIVATE)
    buttons.stop.click(None, js=f"() => pgm.stop('{channel}')", cancels=[event], **PRIVATE)


def told(rows: Iterator[tuple], things: str) -> Iterator[tuple]:
    """`rows` of (viewer value, session, seed field); a fault becomes one sentence in the viewer's value.

    things: what there should have been fewer of if memory ran out, e.g. "pictures". Closing this closes `rows`.
    """
    try:
        yield from rows
    except ValueError as fault:
        yield {"run": secrets.token_hex(8), "error": sentence(fault)}, gr.skip(), gr.skip()
    except Exception as fault:
        log.exception("a run failed")
        yield {"run": secrets.token_hex(8), "error": failure(fault, things)}, gr.skip(), gr.skip()


def loading(models: Shelf, *names: str) -> str:
    """What to say while those of these models that are not in memory are loaded; blank when all are there.

    Raises ValueError when there is no such model.
    """
    cold = [models.info(name).title for name in names if name not in models.loaded()]
    return f"Loading model{'s' if len(cold) > 1 else ''} {' and '.join(cold)} …" if cold else ""


def awaiting(models: Shelf, *names: str) -> Iterator[tuple]:
    """A row as those of `told` that says which of these models are loaded before the next; none when all are there."""
    words = loading(models, *names)
    if words:
        yield {"run": secrets.token_hex(8), "loading": words}, gr.skip(), gr.skip()


def seeded(settings: Seeded, randomise: bool) -> Seeded:
    """`settings` with a seed drawn anew if asked for."""
    return replace(settings, seed=secrets.randbelow(NEW_SEEDS)) if randomise else settings


def gone() -> gr.Error:
    """What to raise when the server no longer holds what a download or a button needs."""
    return refused(GONE)


def refused(words: Exception | str) -> gr.Error:
    """One sentence in a small message, for an event that has no place of its own for it."""
    return gr.Error(sentence(words), duration=6, print_exception=False)
