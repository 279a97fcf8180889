"""What a visitor asks of a text model: one run's settings, named like the arguments of `pgm_text.generate`, and for
RMDM (arXiv 2609.12382) the z that texts are generated from.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

import pgm_text
from app.fields import number, one_of, whole
from app.limits import Limits
from app.settings import LARGEST_SEED, looks
from app.text_models import TextPipeline
from pgm_text.model_info import TextModelInfo
from pgm_text.prompt import BLANK_TOKENS, has_blanks
from pgm_text.request import DEFAULT_STEPS, SAMPLERS, TextRequest

MOST_CHARACTERS = 20_000  # of a prompt; what the model can take is counted in tokens, later
SHOWN_PROMPT = 60  # characters of it in a title

# The z drawn with a seed, or a point on the walk between two: (from, to, share).
Latent = int | tuple["Latent", "Latent", float]


@dataclass(frozen=True)
class TextSettings:
    """Settings of one run. Text i has the seed `seed + i`, and its own z unless `z` holds one for all of them.

    walk_to: seed of another z; the texts are then stops between `z` and it, all with the seed `seed`.
    """

    model: str
    prompt: str = ""
    num_texts: int = 1
    length: int | None = None
    steps: int = DEFAULT_STEPS
    sampler: str = "uniform"
    temperature: float = 1.0
    top_p: float = 1.0
    refine_rounds: int = 0
    guidance_scale: float = 0.0
    blank_tokens: int = BLANK_TOKENS
    seed: int = 0
    z: Latent | None = None
    walk_to: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """All settings by name."""
        return asdict(self)

    def seeds(self) -> list[int]:
        """The seed of each text."""
        return [self.seed + (i if self.walk_to is None else 0) for i in range(self.num_texts)]

    def latents(self) -> list[Latent]:
        """The z of each text."""
        if self.walk_to is not None:
            return [_between(self.z, self.walk_to, share) for share in self._shares()]
        return [seed if self.z is None else self.z for seed in self.seeds()]

    def labels(self) -> list[str]:
        """What tells the texts apart, in words."""
        if self.walk_to is None:
            return [f"Seed {seed}" for seed in self.seeds()]
        middle = [f"{share:.0%} of the way" for share in self._shares()[1:-1]]
        return [latent_words(self.z), *middle, latent_words(self.walk_to)]

    def _shares(self) -> list[float]:
        return [i / max(self.num_texts - 1, 1) for i in range(self.num_texts)]

    def title(self) -> str:
        """What is being written, in words."""
        words = " ".join(self.prompt.split())
        return (words[: SHOWN_PROMPT - 1] + "…" if len(words) > SHOWN_PROMPT else words) or "Without a beginning"

    def summary(self, steps: int, latent: bool = False) -> str:
        """How it is made, in one line: in how many steps in fact, second looks apart; `latent` adds what concerns z."""
        parts = [
            self.sampler.capitalize(),
            "1 step" if steps == 1 else f"{steps} steps",
            f"{self.length} tokens" if not has_blanks(self.prompt) else "",
            looks(self.refine_rounds),
            f"temperature {self.temperature:g}",
            f"top-p {self.top_p:g}" if self.top_p < 1 else "",
            f"guidance {self.guidance_scale:g}" if latent and self.guidance_scale else "",
            latent_words(self.z) if latent and self.z is not None and self.walk_to is None else "",
            f"seed {self.seed}",
        ]
        return " · ".join(part for part in parts if part)


def _between(first: Latent, second: Latent, share: float) -> Latent:
    return first if share == 0 else second if share == 1 else (first, second, share)


def latent_words(latent: Latent) -> str:
    """A z in words."""
    if isinstance(latent, int):
        return f"z of seed {latent}"
    first, second, share = latent
    return f"z {share:.0%} of the way from {latent_words(first)} to {latent_words(second)}"


def latent_vector(pipeline: TextPipeline, latent: Latent) -> Tensor:
    """A z as the vector (K,) it stands for."""
    if isinstance(latent, int):
        return pipeline.draw_latents([latent])[0]
    first, second, share = latent
    return pgm_text.slerp(latent_vector(pipeline, first), latent_vector(pipeline, second), share)


def defaults(info: TextModelInfo) -> TextSettings:
    """Settings the page starts with for a model: those its card recommends."""
    return replace(TextSettings(info.name, length=info.length), **how(info.recommended))


def how(settings: Any) -> dict[str, Any]:
    """The part of a card's settings that the form has a control for."""
    fields = (
        "steps", "sampler", "temperature", "top_p", "guidance_scale", "refine_rounds", "blank_tokens", "length",
    )  # fmt: skip
    return {key: settings[key] for key in fields if settings.get(key) is not None}


def usual(info: TextModelInfo) -> str | None:
    """The preset that is the model's recommendation, if there is one."""
    standard = how(info.recommended)
    return next((name for name, values in info.presets.items() if standard | how(values) == standard), None)


def checked(settings: TextSettings, limits: Limits, info: TextModelInfo) -> TextSettings:
    """`settings` with numbers as a web form sends them made exact; ValueError names the first fault. What only the
    tokenizer can know (how many tokens a prompt has) is left to the model's own door.
    """
    count = whole("How many", settings.num_texts, 1, limits.max_texts)
    prompt = settings.prompt or ""
    if not isinstance(prompt, str):
        raise ValueError("The prompt must be text.")
    if len(prompt) > MOST_CHARACTERS:
        raise ValueError(f"The prompt has {len(prompt):,} characters; at most {MOST_CHARACTERS:,} are read.")
    latent = bool(info.latent_width)
    walk_to = None if settings.walk_to is None else whole("The other z", settings.walk_to, 0, LARGEST_SEED)
    return replace(
        settings,
        prompt=prompt,
        num_texts=count,
        length=whole("Length", info.length if settings.length in (None, "") else settings.length, 1, info.length),
        steps=whole("Steps", settings.steps, 1, limits.max_steps),
        sampler=one_of("Sampler", settings.sampler, tuple(SAMPLERS)),
        temperature=number("Temperature", settings.temperature, 0, limits.max_temperature),
        top_p=number("Top-p", settings.top_p, 0.01, 1),
        refine_rounds=whole("Second looks", settings.refine_rounds, 0, limits.max_refine_rounds),
        guidance_scale=number("Guidance", settings.guidance_scale, 0, limits.max_guidance) if latent else 0.0,
        blank_tokens=whole("Length of a blank", settings.blank_tokens, 1, info.length),
        seed=whole("Seed", settings.seed, 0, LARGEST_SEED - count),
        z=settings.z if latent else None,
        walk_to=walk_to if latent else None,
    )


def request_of(pipeline: TextPipeline, settings: TextSettings) -> TextRequest:
    """Checked `settings` as a request to a pipeline; ValueError when they do not fit its model."""
    latent = None
    if settings.z is not None and pipeline.info.latent_width:
        latent = torch.stack([latent_vector(pipeline, one) for one in settings.latents()])
    request = pipeline.request(
        settings.prompt or None,
        num_texts=settings.num_texts,
        length=settings.length,
        steps=settings.steps,
        sampler=settings.sampler,
        temperature=settings.temperature,
        top_p=settings.top_p,
        refine_rounds=settings.refine_rounds,
        guidance_scale=settings.guidance_scale if pipeline.info.latent_width else None,
        blank_tokens=settings.blank_tokens,
        seed=settings.seed,
        z=latent,
    )
    return replace(request, seeds=tuple(settings.seeds()))
