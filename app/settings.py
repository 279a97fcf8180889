"""What a visitor asks for: one run's settings, checked once, named like the arguments of `pgm_image.generate`."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args
from urllib.parse import urlencode

from app.fields import number, one_of, switch, whole
from app.limits import Limits
from pgm.guidance import guidance_schedule_names
from pgm.orders import order_names
from pgm.predictors import VisibleLength
from pgm.refinement import MOST_STEPS
from pgm.sampling import RefineScore
from pgm.schedules import schedule_names

LARGEST_SEED = 2**53 - 1  # beyond it a browser's number field loses digits
RARE = (
    "guidance_schedule", "top_p", "confidence_temperature", "temperature_warmup", "temperature_anneal",
    "resample_known", "refine_share", "refine_steps", "refine_score", "encoder_refresh", "visible_length",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Settings of one run. `class_id` and `style` are names, None for any. Picture i has the seed `seed + i`.

    Those in `RARE` have no control on the page: they come with a picture or a link, and None is as the model's card
    says.
    """

    model: str
    class_id: str | None
    style: str | None = None
    num_images: int = 1
    sampler: str = "halton"
    steps: int = 16
    guidance_scale: float = 0.0
    refine_rounds: int = 0
    temperature: float = 1.0
    top_k: int | None = None
    schedule: str = "arccos"
    roll: bool = False
    seed: int = 0
    guidance_schedule: str | None = None
    top_p: float | None = None
    confidence_temperature: float | None = None
    temperature_warmup: int | None = None
    temperature_anneal: float | None = None
    resample_known: bool | None = None
    refine_share: float | None = None
    refine_steps: int | None = None
    refine_score: str | None = None
    encoder_refresh: int | None = None
    visible_length: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """All settings by name."""
        return asdict(self)

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `generate_steps` of the pipeline."""
        values = {name: value for name, value in asdict(self).items() if name != "model" and name not in RARE}
        return {**values, **self.rare()}

    def rare(self) -> dict[str, Any]:
        """Those of the `RARE` settings that are not left to the model's card."""
        return {name: getattr(self, name) for name in RARE if getattr(self, name) is not None}

    def seeds(self) -> list[int]:
        """The seed of each picture."""
        return [self.seed + i for i in range(self.num_images)]

    def of_picture(self, index: int) -> "Settings":
        """Settings that make picture `index` of this run alone."""
        return replace(self, num_images=1, seed=self.seed + index)

    def query(self) -> str:
        """URL query of one picture: opening the page with it brings these settings back. Leaves out what is not set."""
        values = {name: value for name, value in asdict(self).items() if name != "num_images"}
        return urlencode({name: value for name, value in values.items() if value is not None})

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
            looks(self.refine_rounds),
            f"temperature {self.temperature:g}",
            f"top-k {self.top_k}" if self.top_k else "",
            "order rolled" if self.roll else "",
            *(f"{name.replace('_', ' ')} {value}" for name, value in self.rare().items()),
            self.model,
        ]
        return " · ".join(part for part in parts if part)


def looks(rounds: int) -> str:
    """Rounds of refinement in words; blank when there are none."""
    return f"{rounds} second look{'s' if rounds > 1 else ''}" if rounds else ""


def checked(settings: Settings, limits: Limits) -> Settings:
    """`settings` with numbers as a web form sends them (16.0, "5", blank) made exact; ValueError names the first fault.

    What only the model can know (class names, styles) is left to its own door.
    """
    top_k = None if settings.top_k in (None, "", 0) else whole("Top-k", settings.top_k, 1, 2**20)
    count = whole("How many", settings.num_images, 1, limits.max_images)
    return replace(
        settings,
        num_images=count,
        steps=whole("Steps", settings.steps, 1, limits.max_steps),
        guidance_scale=number("Guidance", settings.guidance_scale, 0, limits.max_guidance),
        refine_rounds=whole("Second looks", settings.refine_rounds, 0, limits.max_refine_rounds),
        temperature=number("Temperature", settings.temperature, 0, limits.max_temperature),
        top_k=top_k,
        seed=whole("Seed", settings.seed, 0, LARGEST_SEED - count),
        sampler=one_of("Sampler", settings.sampler, order_names()),
        schedule=one_of("Schedule", settings.schedule, schedule_names()),
        roll=switch("Order roll", settings.roll),
        **_checked_rare(settings, limits),
    )


def _checked_rare(settings: Settings, limits: Limits) -> dict[str, Any]:
    doors: dict[str, Callable[[str, Any], Any]] = {
        "guidance_schedule": lambda name, value: one_of(name, value, guidance_schedule_names()),
        "top_p": lambda name, value: number(name, value, 0, 1),
        "confidence_temperature": lambda name, value: number(name, value, 0, 1000),
        "temperature_warmup": lambda name, value: whole(name, value, 0, limits.max_steps),
        "temperature_anneal": lambda name, value: number(name, value, 0.01, 100),
        "resample_known": switch,
        "refine_share": lambda name, value: number(name, value, 0.01, 1),
        "refine_steps": lambda name, value: whole(name, value, 1, min(MOST_STEPS, limits.max_steps)),
        "refine_score": lambda name, value: one_of(name, value, get_args(RefineScore)),
        "encoder_refresh": lambda name, value: whole(name, value, 1, limits.max_steps),
        "visible_length": lambda name, value: one_of(name, value, get_args(VisibleLength)),
    }
    return {name: doors[name](name.replace("_", " ").capitalize(), value) for name, value in settings.rare().items()}
