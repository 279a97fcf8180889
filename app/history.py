"""Past pictures, kept by the visitor's own browser, and settings that come in from outside: a past picture, a PNG
dropped on the page, a link. The server keeps none of it; it is asked only to check settings and to write files.
"""

import base64
import io
import secrets
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

from app.downloads import MEDIA_TYPES, file_name, png
from app.faults import sentence
from app.image_form import RESTORE_ERROR, bring, dressed
from app.limits import Limits
from app.models import Models
from app.record import Record, record
from app.settings import Settings
from app.viewer import mailbox, parcel
from tokenizer.image_files import open_picture

MAX_PICTURES = 60  # the browser drops the oldest beyond this
MAX_CHARACTERS = 3_500_000  # of all pictures together; browsers give a page about five million
MAX_PIXELS = 4_000_000  # of a picture that comes back to be saved
BROKEN = "This past picture is damaged; generate it again from its settings."


def history() -> Record:
    """The strip of past pictures. Events: `.bring` ({settings, keep_seed} or {fault}) and `.keep` ({pictures}).

    It also reads settings from the page's address and from a PNG dropped anywhere but on an upload field.
    """
    return record(
        "history",
        ("history.js",),
        "mountHistory(element, trigger, props, watch)",
        "image-history",
        ("bring", "keep"),
        most=MAX_PICTURES,
        room=MAX_CHARACTERS,
        refusal=RESTORE_ERROR,
        keys=[name for name in Settings.__dataclass_fields__ if name != "num_images"],
    )


def past_files(pictures: Sequence[Mapping[str, Any]]) -> tuple[str, str, bytes]:
    """File name, media type and content of past pictures ({settings, picture: data URL}): one PNG, or a ZIP of many.

    Raises ValueError for anything the page would not have kept.
    """
    if not 1 <= len(pictures) <= MAX_PICTURES:
        raise ValueError(f"from 1 to {MAX_PICTURES} pictures can be saved together, got {len(pictures)}")
    files: dict[str, bytes] = {}
    for one in pictures:
        name, content = _past_png(one)
        while name in files:
            name = name.replace(".png", "+.png")
        files[name] = content
    if len(files) == 1:
        [(name, content)] = files.items()
        return name, MEDIA_TYPES["png"], content
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return "pictures.zip", MEDIA_TYPES["zip"], buffer.getvalue()


def _past_png(one: Mapping[str, Any]) -> tuple[str, bytes]:
    try:
        settings = dict(one["settings"])
        content = base64.b64decode(one["picture"].partition(",")[2], validate=True)
        fields = {key: settings[key] for key in ("model", "class_id", "style", "seed")}
        name = file_name(Settings(**fields))
        return f"{name}.png", png(open_picture(content, MAX_PIXELS), settings)
    except (ValueError, TypeError, KeyError, AttributeError) as fault:
        raise ValueError(BROKEN) from fault


def build_history(models: Models, limits: Limits, fields: Sequence[gr.components.Component]) -> Record:
    """Lay out the strip and wire it to the form of the image tab. Returns it, so that other forms may listen too."""
    strip = history()
    post = mailbox()

    def on_bring(event: gr.EventData) -> list[Any]:
        if event.fault:
            return [*[gr.skip()] * len(fields), told(str(event.fault)[:200])]
        try:
            values = dressed(models, limits, bring(models, limits, dict(event.settings)))
        except (ValueError, TypeError) as fault:
            return [*[gr.skip()] * len(fields), told(fault)]
        if not event.keep_seed:
            values[-2:] = [gr.skip(), True]
        return [*values, told("")]

    def on_keep(event: gr.EventData) -> dict[str, str]:
        try:
            return parcel(*past_files(list(event.pictures or ())))
        except (ValueError, TypeError) as fault:
            raise gr.Error(str(fault), duration=6, print_exception=False) from fault

    private = {"api_visibility": "private", "show_progress": "hidden"}
    strip.bring(on_bring, None, [*fields, strip], queue=False, **private)
    strip.keep(on_keep, None, post, concurrency_limit=4, **private)
    return strip


def told(fault: Exception | str) -> dict[str, Any]:
    """Value of the strip after settings were brought: a sentence when they could not be used, else blank. The token
    makes two equal answers two answers.
    """
    return {"fault": sentence(fault), "token": secrets.token_hex(8)}
