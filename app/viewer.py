"""The viewer of a reveal as a Gradio component, and the mailbox through which a file reaches the visitor's disk.

Both are `gr.HTML` with fixed markup: their value is a plain dict that the script reads, the markup never changes.
They are made by functions: Gradio would send the arguments of a constructor of ours to the browser as settings.
"""

import base64
import secrets
from pathlib import Path
from typing import Any

import gradio as gr

from app.downloads import has_movies

FOLDER = Path(__file__).parent
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


class Record(gr.HTML):
    """A `gr.HTML` whose value is a dict for its script."""

    def api_info(self) -> dict[str, Any]:
        return {"type": "object"}


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
    script = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in ("cells.js", "timeline.js", "viewer.js"))
    return Record(
        html_template=(FOLDER / "viewer.html").read_text(encoding="utf-8"),
        js_on_load=f'{script}\n/* events: "reuse", "save" */\nmountViewer(element, trigger, props, watch);',
        apply_default_css=False,
        elem_id=f"{channel}-viewer",
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


def parcel(name: str, media_type: str, content: bytes) -> dict[str, str]:
    """Value of a mailbox that makes the browser save `content` as `name`; two equal parcels are two downloads."""
    return {"name": name, "type": media_type, "data": base64.b64encode(content).decode(), "token": secrets.token_hex(8)}
