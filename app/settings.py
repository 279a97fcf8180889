"""What a visitor asks for: one run's settings, checked once, named like the arguments of `pgm_image.generate`."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlencode

from app.limits import Limits
from pgm.orders import order_names
from pgm.schedules import schedule_names

LARGEST_SEED = 2**53 - 1  # beyond it a browser's number field loses digits


@dataclass(frozen=True)
class Settings:
    """Settings of one run. `class_id` and `style` are names, None for any. Picture i has the seed `seed + i`."""

    model: str
    class_id: str | None
    style: str | None = None
    num_images: int = 1
    sampler: str = "halton"
    steps: int = 16
    guidance_scale: float = 0.0
    temperature: float = 1.0
    top_k: int | None = None
    schedule: str = "arccos"
    roll: bool = False
    seed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """All settings by name."""
        return asdict(self)

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `generate_steps` of the pipeline."""
        return {name: value for name, value in asdict(self).items() if name != "model"}

    def seeds(self) -> list[int]:
        """The seed of each picture."""
        return [self.seed + i for i in range(self.num_images)]

    def of_picture(self, index: int) -> "Settings":
        """Settings that make picture `index` of this run alone."""
        return replace(self, num_images=1, seed=self.seed + index)

    def query(self) -> str:
        """URL query of one picture: opening the page with it brings these settings back. Leaves out what is not set."""
        values = {name: value for name, value in asdict(self).items() if name != "num_images"}
        return urlencode({name: value for name, value in values.items() if value is not None and value is not False})

    def title(self) -> str:
        """What is being made, in words."""
        named = [name for name in (self.class_id, self.style) if name is not None]
        return " · ".join(named) or "Any class"

    def summary(self) -> str:
        """How it is made, in one line."""
        parts = [
            f"{self.sampler.capitalize()}, {self.schedule} schedule",
            f"{self.steps} steps",
            f"guidance {self.guidance_scale:g}",
            f"temperature {self.temperature:g}",
            f"top-k {self.top_k}" if self.top_k else "",
            "order rolled" if self.roll else "",
            self.model,
        ]
        return " · ".join(part for part in parts if part)


def checked(settings: Settings, limits: Limits) -> Settings:
    """`settings` with numbers as a web form sends them (16.0, "5", blank) made exact; ValueError names the first fault.

    What only the model can know (class names, styles) is left to its own door.
    """
    top_k = None if settings.top_k in (None, "", 0) else _whole("Top-k", settings.top_k, 1, 2**20)
    count = _whole("How many", settings.num_images, 1, limits.max_images)
    return replace(
        settings,
        num_images=count,
        steps=_whole("Steps", settings.steps, 1, limits.max_steps),
        guidance_scale=_number("Guidance", settings.guidance_scale, 0, limits.max_guidance),
        temperature=_number("Temperature", settings.temperature, 0, limits.max_temperature),
        top_k=top_k,
        seed=_whole("Seed", settings.seed, 0, LARGEST_SEED - count),
        sampler=_one_of("Sampler", settings.sampler, order_names()),
        schedule=_one_of("Schedule", settings.schedule, schedule_names()),
        roll=_switch("Order roll", settings.roll),
    )


def _whole(name: str, value: Any, low: int, high: int) -> int:
    found = _read(value, lambda text: int(text) if str(text).strip().lstrip("+-").isdigit() else float(text))
    if found is None or found != math.floor(found) or not low <= found <= high:
        allowed = f"from {low:,} to {high:,}" if high < 2**32 else f"from {low} up"
        raise ValueError(f"{name} must be a whole number {allowed}, not {_shown(value)}.")
    return int(found)


def _number(name: str, value: Any, low: float, high: float) -> float:
    found = _read(value, float)
    if found is None or not low <= found <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, not {_shown(value)}.")
    return float(found)


def _read(value: Any, convert: Callable[[Any], float]) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        found = convert(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _switch(name: str, value: Any) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False, "": False, "none": False}
    found = known.get(str(value).strip().lower())
    if found is None:
        raise ValueError(f"{name} must be true or false, not {_shown(value)}.")
    return found


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {_shown(value)}.")
    return value


def _shown(value: Any) -> str:
    return "empty" if value in (None, "") else str(value)[:40]
