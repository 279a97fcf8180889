"""A component of the page with a script of its own: fixed markup, a plain dict as its value, and the script that reads
it. The markup never changes; parts that several have in common stand in files of their own.

They are made by a function: Gradio would send the arguments of a constructor of ours to the browser as settings.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr

FOLDER = Path(__file__).parent
PART = re.compile(r"^[ ]*<!-- part: (?P<name>\S+) -->$", re.MULTILINE)


class Record(gr.HTML):
    """A `gr.HTML` whose value is a dict for its script."""

    def api_info(self) -> dict[str, Any]:
        return {"type": "object"}


def record(
    name: str | None, scripts: Sequence[str], mount: str, elem_id: str, events: Sequence[str] = (), **props: Any
) -> Record:
    """The component of `<name>.html`, run by the `scripts` in their order and then the call `mount`; without a name, a
    script that shows nothing of its own.

    events: what its script triggers; each is a listener of the component, e.g. "save" is `.save`.
    props: what the script finds in `props` beside the value.
    """
    code = [(FOLDER / script).read_text(encoding="utf-8") for script in scripts]
    named = ", ".join(f'"{event}"' for event in events)  # Gradio looks for the names of events in the script
    return Record(
        html_template=markup(name) if name else "<span></span>",
        js_on_load="\n".join([*code, f"/* events: {named} */", f"{mount};"]),
        apply_default_css=False,
        elem_id=elem_id,
        **props,
    )


def markup(name: str) -> str:
    """`<name>.html` with every line `<!-- part: other -->` replaced by what `other.html` holds."""
    text = (FOLDER / f"{name}.html").read_text(encoding="utf-8")
    return PART.sub(lambda found: markup(found["name"]).rstrip("\n"), text)
