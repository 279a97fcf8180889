"""What a visitor does on the image tab and sees on a stage, for tests in a browser."""

import base64
import io
import time
from typing import Any

import numpy as np
from PIL import Image

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
RUN_AXE = """async (rules) => (await axe.run(document, { runOnly: rules })).violations.map((rule) => {
  const said = (node) => `${node.target.join(" ")} (${(node.any[0] ?? node.all[0])?.message})`;
  return `${rule.id}: ${rule.nodes.map(said).join("; ")}`;
})"""
STEPS_SHOWN = "() => document.querySelectorAll('.viewer-ticks i[data-made]').length"


def pixels(page: Any, viewer: str = "#image-viewer") -> np.ndarray:
    """(H, W, 3) uint8 of a viewer's canvas."""
    data = page.evaluate(f"() => document.querySelector('{viewer} .viewer-canvas').toDataURL('image/png')")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data.split(",")[1]))).convert("RGB")).copy()


def faults_found(page: Any) -> list[str]:
    """What axe-core, which the page has to hold, finds to mend on the page as it stands."""
    return page.evaluate(RUN_AXE, RULES)


def generate(page: Any, wait_for: str = "done") -> None:
    """Press Generate and wait for the end, unless told not to."""
    page.get_by_role("button", name="Generate", exact=True).click()
    if wait_for == "done":
        page.wait_for_selector(".viewer[data-state=done]", timeout=60_000)
        page.wait_for_timeout(900)  # the last glow fades


def freed(served: Any, closed: int, seconds: float = 15) -> None:
    """Demand that the pipeline's run is ended, `closed` in all, within so many seconds."""
    for _ in range(round(seconds / 0.1)):
        if served.pipeline.closed >= closed and not served.pipeline.running:
            break
        time.sleep(0.1)
    assert served.pipeline.closed == closed and served.pipeline.running == 0


def unfold(page: Any, name: str) -> None:
    """Open the fold of this name on the tab that shows, and wait until what is typed into its fields stays.

    Gradio makes the fields of a fold when it is first opened and, one frame later, sets them to their first values once
    more: text that is typed within that frame, which takes long on a busy machine, is lost.
    """
    fold = page.locator("button.label-wrap", has_text=name).locator("visible=true")
    fold.click()
    fold.locator("xpath=..").locator("input, textarea").first.wait_for(state="attached")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
