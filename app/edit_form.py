"""An edit as a visitor asks for it: the picture's file, the mode, what is painted, and the settings of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from PIL import Image

from app.image_form import defaults
from app.limits import Limits
from app.models import Models
from app.settings import Settings, checked
from pgm_image import edits
from pgm_image.frame import FITS, Frame
from pgm_image.masks import read_mask
from pgm_image.model_info import ModelInfo
from tokenizer.image_files import open_upright

MODES = (("Repaint", "repaint"), ("Outpaint", "outpaint"), ("Variations", "variation"), ("Class swap", "swap"))
NO_PICTURE = "Upload a picture first, or take the one from the Image tab."
NO_PAINT = {
    "repaint": "Paint over what should be redrawn first.",
    "swap": "Paint what should stay first.",
}


@dataclass(frozen=True)
class Task:
    """One edit. Everything that runs it, or makes a file of its result, is derived from this."""

    content: bytes  # the picture's file as it was uploaded
    mode: str
    settings: Settings
    cells: tuple[int, ...] = ()  # painted on the grid; in mode "swap" these stay
    mask: bytes | None = None  # a file instead of cells
    strength: float = 0.5
    right: float = 0.0
    down: float = 0.0
    scale: float = 1.0
    fit: str = "whole"
    composite: bool = True

    def picture(self, limits: Limits) -> Image.Image:
        """The upright picture; ValueError when the file holds none or too large a one."""
        return open_source(self.content, limits)

    def edit(self, info: ModelInfo, limits: Limits) -> edits.Edit:
        """The checked edit. Raises ValueError naming the first fault."""
        picture = self.picture(limits)
        arguments = {**self.settings.arguments(), "fit": self.fit, "composite": self.composite}
        class_id = arguments.pop("class_id")
        if self.mode == "outpaint":
            return edits.outpaint(info, picture, (self.right, self.down), self.scale, class_id, **arguments)
        if self.mode == "variation":
            return edits.variations(info, picture, self.strength, class_id, **arguments)
        arguments["invert"] = self.mode == "swap"
        if self.mask is not None:
            mask = open_upright(self.mask, limits.max_pixels)
            return edits.repaint(info, picture, mask, class_id, **arguments)
        return edits.edit_cells(info, picture, self.cells, class_id, **arguments)

    def title(self) -> str:
        """What is being made, in words."""
        mode = next(words for words, name in MODES if name == self.mode)
        return f"{mode} · {self.settings.title()}"

    def summary(self, edit: edits.Edit) -> str:
        """How it is made, in one line."""
        count = int(edit.cells[0].sum())
        kept = "the rest as it was" if self.composite else "the model's own picture"
        return f"{count} of {edit.cells[0].size} codes drawn anew, {kept} · {self.settings.summary()}"


def edit_defaults(info: ModelInfo) -> Settings:
    """Settings the tab starts with for a model: those its card recommends for edits."""
    return defaults(info.for_editing())


def open_source(content: bytes | None, limits: Limits) -> Image.Image:
    """An uploaded file as an upright picture, RGB or RGBA; one sentence when it is none."""
    if not content:
        raise ValueError(NO_PICTURE)
    return edits.read_image(open_upright(content, limits.max_pixels))


def painted_cells(info: ModelInfo, picture: Image.Image, mask: bytes, fit: str, limits: Limits) -> list[int]:
    """Cells (row-major numbers) that a mask file touches."""
    painted = read_mask(open_upright(mask, limits.max_pixels), *picture.size)
    cells = Frame(*picture.size, info.image_size, info.grid, fit).touched(painted)
    return [int(cell) for cell in cells.flatten().nonzero()[0]]


def task_of(models: Models, limits: Limits, content: bytes | None, painted: Any, form: Mapping[str, Any]) -> Task:
    """A checked task from what the page or a program sends; ValueError names the first fault.

    painted: {"cells": [index]} or the bytes of a mask file; form: values by the names of `Task` and `Settings`, blanks
    take what the model's card recommends.
    """
    if not content:
        raise ValueError(NO_PICTURE)
    info = models.info(form.get("model") or models.names()[0])
    mode = form.get("mode") or "repaint"
    if mode not in {name for _, name in MODES}:
        raise ValueError(f"Mode must be one of {', '.join(name for _, name in MODES)}, not {str(mode)[:40]}.")
    fit = form.get("fit") or "whole"
    if fit not in FITS:
        raise ValueError(f"Fit must be one of {', '.join(FITS)}, not {str(fit)[:40]}.")
    base = replace(edit_defaults(info), class_id=None, style=None)
    names = (
        "class_id", "style", "num_images", "sampler", "steps", "guidance_scale", "refine_rounds", "temperature", "seed",
    )  # fmt: skip
    given = {name: form[name] for name in names if form.get(name) not in (None, "")}
    settings = checked(replace(base, **given), replace(limits, max_steps=min(limits.max_steps, info.length)))
    mask = painted if isinstance(painted, bytes) else None
    cells = _cells(painted) if mask is None else ()
    if mode in NO_PAINT and mask is None and not cells:
        raise ValueError(NO_PAINT[mode])
    return Task(
        content=content,
        mode=mode,
        settings=settings,
        cells=cells,
        mask=mask,
        strength=_share("Strength", form.get("strength"), 0.5, 0, 1),
        right=_share("Shift to the right", form.get("right"), 0, -0.99, 0.99),
        down=_share("Shift down", form.get("down"), 0, -0.99, 0.99),
        scale=_share("Size", form.get("scale"), 1, 0.01, 1),
        fit=fit,
        composite=bool(form.get("composite", True)),
    )


def _cells(painted: Any) -> tuple[int, ...]:
    cells = painted.get("cells") if isinstance(painted, Mapping) else None
    if not isinstance(cells, Sequence) or isinstance(cells, str | bytes):
        return ()
    return tuple(cells)


def _share(name: str, value: Any, blank: float, low: float, high: float) -> float:
    if value in (None, ""):
        return blank
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, not {str(value)[:40]}.")
    return float(value)
