"""The viewer of a reveal as a Gradio component, and the mailbox through which a file reaches the visitor's disk."""

import base64
import secrets
from collections.abc import Callable
from typing import Any

import gradio as gr

from app.downloads import has_movies
from app.record import Record, record
from app.run_control import PRIVATE, gone, refused

MAILBOX = """
watch("value", () => {
  const file = props.value;
  if (!file || !file.data) return;
  const bytes = Uint8Array.from(atob(file.data), (letter) => letter.charCodeAt(0));
  const address = URL.createObjectURL(new Blob([bytes], { type: file.type }));
  const link = Object.assign(document.createElement("a"), { href: address, download: file.name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
});
"""


def viewer(
    channel: str,
    grid: tuple[int, int],
    size: tuple[int, int],
    total: int,
    empty: str,
    again: tuple[str, str] | None = None,
    before: bool = False,
) -> Record:
    """Stage, timeline, numbers and pictures of one reveal; its value comes from `app.reveal`.

    channel names the tab ("image"): its buttons are `#<channel>-generate`, `#<channel>-stop`, `#<channel>-notice`.
    grid (rows, columns), size (width, height) in pixels and the number of steps are shown before the first run, with
    `empty` as the sentence that says what to do.
    again: other words and title for the button that reuses settings; before: offer the picture an edit started from.
    Events: `.reuse` ({what: "seed" | "settings", picture}) and `.save` ({kind, picture, step}).
    """
    return record(
        "viewer",
        ("cells.js", "arrivals.js", "timeline.js", "stage.js", "run.js", "viewer.js"),
        "mountViewer(element, trigger, props, watch)",
        f"{channel}-viewer",
        ("reuse", "save"),
        channel=channel,
        grid=list(grid),
        size=list(size),
        total=total,
        empty=empty,
        movies=has_movies(),
        again=list(again or ()),
        before=before,
    )


def mailbox() -> Record:
    """Hands a file to the browser as a download without writing it to the server's disk; its value is a `parcel`."""
    return Record(html_template="<span></span>", js_on_load=MAILBOX, apply_default_css=False)


def wire_saves(
    stage: Record, kept: gr.State, post: Record, save: Callable[[Any, gr.EventData], tuple[str, str, bytes]]
) -> None:
    """Join a stage's `.save` with a mailbox. save: what is kept of the run, and the event, to name, type and content;
    its ValueError is told in one sentence.
    """

    def on_save(value: Any, event: gr.EventData) -> dict[str, str]:
        if not value:
            raise gone()
        try:
            return parcel(*save(value, event))
        except (ValueError, TypeError, IndexError) as fault:
            raise refused(fault) from fault

    stage.save(on_save, kept, post, **PRIVATE, show_progress="hidden", concurrency_limit=4)


def parcel(name: str, media_type: str, content: bytes) -> dict[str, str]:
    """Value of a mailbox that makes the browser save `content` as `name`; two equal parcels are two downloads."""
    return {"name": name, "type": media_type, "data": base64.b64encode(content).decode(), "token": secrets.token_hex(8)}
