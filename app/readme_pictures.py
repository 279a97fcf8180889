"""Draws the pictures of the README anew from the bundled model, as after every change of its weights.

    python -m app.readme_pictures            samples.png, reveal.webp and page.png in assets/pictures
    python -m app.readme_pictures reveal     one of them

The samples have the recommended settings and one seed for all, so nobody chose among them; the reveal's are chosen.
"""

import argparse
import shutil

import numpy as np
from PIL import Image

from app.downloads import HOLD_SECONDS, frames, pace_of
from app.page import build, launch_settings
from app.reveal import reveal
from app.settings import Settings
from pgm_image import load, registry
from pgm_image.evaluation.sheet import sample_sheet

FOLDER = registry.ASSETS / "pictures"
CLASSES = (
    *("smiling face", "angry face", "monster face", "heart", "person", "bird", "reptile or amphibian", "flower"),
    *("fruit", "meal", "boat", "clock or time", "writing tool", "lock or key"),
)
SEED = 0  # of all pictures
CHOSEN = (("smiling face", "noto"), ("heart", "twemoji"), ("lock or key", "fluent-3d"), ("clock or time", "noto-v1"))
SIDE, GAP = 160, 12  # pixels of the reveal
WINDOW = {"width": 1280, "height": 900}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def draw_samples() -> None:
    """samples.png: classes down, styles across."""
    pipeline = load(registry.DEFAULT_MODEL)
    styles = pipeline.info.styles
    rows = [[pipeline.generate(name, style=style, seed=SEED)[0] for style in styles] for name in CLASSES]
    sheet = sample_sheet([[np.asarray(picture) for picture in row] for row in rows], CLASSES, styles)
    sheet.save(FOLDER / "samples.png", optimize=True)


def draw_reveal() -> None:
    """reveal.webp: the chosen pictures beside one another as they appear, on no background."""
    pipeline = load(registry.DEFAULT_MODEL)
    films = []
    for class_id, style in CHOSEN:
        settings = Settings(registry.DEFAULT_MODEL, class_id, style, seed=SEED, **pipeline.info.recommended)
        *_, value = reveal(pipeline, settings)
        films.append(frames(value, 0))
    width = len(films) * (SIDE + GAP) - GAP
    steps = []
    for together in zip(*films, strict=True):
        steps.append(Image.new("RGBA", (width, SIDE)))
        for place, frame in enumerate(together):
            steps[-1].paste(frame.resize((SIDE, SIDE), Image.Resampling.LANCZOS), (place * (SIDE + GAP), 0))
    pace = pace_of(len(steps))
    durations = [pace] * (len(steps) - 1) + [pace + round(1000 * HOLD_SECONDS)]
    path = FOLDER / "reveal.webp"
    steps[0].save(path, save_all=True, append_images=steps[1:], duration=durations, loop=0, quality=85, method=6)


def draw_page() -> None:
    """page.png: the page after its first run, in Chromium."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise SystemExit(f"no browser: none of {', '.join(BROWSERS)} is on the path")
    page = build()
    _, url, _ = page.launch(**launch_settings(page), prevent_thread_lock=True, quiet=True, inbrowser=False)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
            tab = browser.new_page(viewport=WINDOW, color_scheme="light")
            tab.goto(url)
            tab.get_by_role("button", name="Generate", exact=True).click()
            tab.wait_for_selector(".viewer[data-state=done]", timeout=120_000)
            tab.wait_for_timeout(900)  # the last glow fades
            tab.screenshot(path=FOLDER / "page.png")
            browser.close()
    finally:
        page.close(verbose=False)


PICTURES = {"samples": draw_samples, "reveal": draw_reveal, "page": draw_page}


def main() -> None:
    """Draw the pictures that were asked for, or all."""
    parser = argparse.ArgumentParser("python -m app.readme_pictures", description=main.__doc__)
    names = (*PICTURES, "all")  # Python 3.11 checks even an empty list of arguments against the choices
    parser.add_argument("pictures", nargs="*", default="all", choices=names, metavar="PICTURE", help=", ".join(names))
    asked = parser.parse_args().pictures
    for name in PICTURES if "all" in asked else asked:
        PICTURES[name]()


if __name__ == "__main__":
    main()
