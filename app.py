"""Starts the page: `python app.py`, or `gradio app.py` to reload it on every change. Spaces run this file as it is."""

from pathlib import Path

from app.page import build, launch_settings

# The folder beside this file has the same name. `gradio app.py` registers this file as the module `app`; with a path of
# its own it is a package too, so `app.page` still means the folder's.
__path__ = [str(Path(__file__).with_name("app"))]

demo = build()

if __name__ == "__main__":
    try:
        settings = launch_settings(demo)
    except ValueError as fault:
        raise SystemExit(str(fault)) from None
    demo.launch(**settings)
