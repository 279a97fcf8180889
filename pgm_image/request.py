"""One generation as asked for, checked at the door: after this nothing about the arguments can go wrong.

Checking needs a model's index only, so a bad argument is reported before any weight is read.
"""

from dataclasses import dataclass
from typing import Any, get_args

from pgm.arguments import MAX_SEED, one_of, real_number, share, whole_number
from pgm.guidance import guidance_schedule_names
from pgm.orders import order_names
from pgm.predictors import VisibleLength
from pgm.refinement import refinement_arguments
from pgm.sampling import SamplingConfig
from pgm.schedules import schedule_names
from pgm_image.labels import resolve_labels
from pgm_image.model_info import ModelInfo


@dataclass(frozen=True)
class Request:
    """Labels and seeds, one per picture, and how to sample them."""

    classes: tuple[int, ...]  # -1 = no class
    styles: tuple[int, ...]  # -1 = no style
    seeds: tuple[int, ...]
    sampling: SamplingConfig
    visible_length: VisibleLength = "full"

    def __len__(self) -> int:
        return len(self.seeds)

    def part(self, start: int, stop: int) -> "Request":
        """The request for pictures start..stop-1; each of them comes out as in the whole."""
        return Request(
            self.classes[start:stop],
            self.styles[start:stop],
            self.seeds[start:stop],
            self.sampling,
            self.visible_length,
        )


def make_request(
    info: ModelInfo,
    class_id: Any,
    *,
    style: Any = None,
    num_images: Any = 1,
    steps: Any = None,
    sampler: str | None = None,
    guidance_scale: Any = None,
    guidance_schedule: str | None = None,
    temperature: Any = None,
    top_k: Any = None,
    top_p: Any = None,
    schedule: str | None = None,
    seed: Any = 0,
    roll: bool | None = None,
    confidence_temperature: Any = None,
    resample_known: bool | None = None,
    temperature_warmup: Any = None,
    temperature_anneal: Any = None,
    encoder_refresh: Any = None,
    refine_rounds: Any = None,
    refine_share: Any = None,
    refine_steps: Any = None,
    refine_score: str | None = None,
    visible_length: VisibleLength = "full",
) -> Request:
    """Check every argument of `generate` against a model; None takes the model's recommended setting.

    Picture i has seed `seed` + i; several classes come one after the other, `num_images` of each; `style` is one for
    all or one per class. temperature_anneal: the first step's temperature is this multiple of `temperature`, the last
    one's `temperature` itself, linearly between. encoder_refresh: every so many steps all known codes are encoded, at
    the others only new ones (1 = off; partition models only). refine_rounds: how often, once all codes are there, those
    that fit the others worst are drawn anew (0 = never): the share refine_share in the first round, fewer in later
    ones, each in refine_steps steps; refine_score: "likelihood" or "typicality" (see `pgm.refinement.fits`). Raises
    ValueError that names the argument, the value and what is allowed.
    """
    classes = resolve_labels(class_id, info.classes, "class_id", info.words)
    styles = _styles(style, info, len(classes))
    count = whole_number("num_images", num_images, 1)
    total = count * len(classes)
    settings = {**info.recommended}
    asked = {
        "steps": steps,
        "sampler": sampler,
        "guidance_scale": guidance_scale,
        "guidance_schedule": guidance_schedule,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "schedule": schedule,
        "roll": roll,
        "confidence_temperature": confidence_temperature,
        "resample_known": resample_known,
        "temperature_warmup": temperature_warmup,
        "temperature_anneal": temperature_anneal,
        "encoder_refresh": encoder_refresh,
        "refine_rounds": refine_rounds,
        "refine_share": refine_share,
        "refine_steps": refine_steps,
        "refine_score": refine_score,
    }
    settings.update({key: value for key, value in asked.items() if value is not None})
    first = whole_number("seed", seed, 0, MAX_SEED - total)
    if visible_length not in get_args(VisibleLength):
        raise ValueError(f"visible_length must be 'full' or 'reference', got {visible_length!r}")
    sampling = _sampling(settings, info)
    if sampling.encoder_refresh > 1 and (info.architecture != "pgm" or visible_length == "reference"):
        raise ValueError(
            "encoder_refresh must be 1 for masked models and with visible_length 'reference', "
            f"got {sampling.encoder_refresh!r}"
        )
    return Request(
        classes=tuple(c for c in classes for _ in range(count)),
        styles=tuple(s for s in styles for _ in range(count)),
        seeds=tuple(range(first, first + total)),
        sampling=sampling,
        visible_length=visible_length,
    )


def _sampling(settings: dict[str, Any], info: ModelInfo) -> SamplingConfig:
    defaults = SamplingConfig()
    top_k, top_p = settings.get("top_k"), settings.get("top_p")
    return SamplingConfig(
        steps=whole_number("steps", settings.get("steps", min(defaults.steps, info.length)), 1, info.length),
        order=one_of("sampler", settings.get("sampler", "halton"), order_names()),
        schedule=one_of("schedule", settings.get("schedule", "arccos"), schedule_names()),
        guidance_scale=real_number("guidance_scale", settings.get("guidance_scale", 0.0)),
        guidance_schedule=one_of(
            "guidance_schedule", settings.get("guidance_schedule", "linear"), guidance_schedule_names()
        ),
        temperature=real_number("temperature", settings.get("temperature", 1.0)),
        temperature_warmup=whole_number("temperature_warmup", settings.get("temperature_warmup", 0), 0),
        temperature_anneal=real_number("temperature_anneal", settings.get("temperature_anneal", 1.0), positive=True),
        top_k=None if top_k is None else whole_number("top_k", top_k, 1),
        top_p=None if top_p is None else share("top_p", top_p),
        roll=bool(settings.get("roll", False)),
        confidence_temperature=real_number(
            "confidence_temperature", settings.get("confidence_temperature", defaults.confidence_temperature)
        ),
        confidence_counts="pgm" if info.architecture == "pgm" else "maskgit",
        resample_known=bool(settings.get("resample_known", False)),
        encoder_refresh=whole_number("encoder_refresh", settings.get("encoder_refresh", 1), 1),
        **refinement_arguments(settings),
    )


def _styles(style: Any, info: ModelInfo, classes: int) -> list[int]:
    if style is not None and not info.styles:
        raise ValueError(f"style must be None for {info.name!r}, which has no styles, got {style!r}")
    styles = resolve_labels(style, info.styles, "style")
    if len(styles) not in (1, classes):
        raise ValueError(f"style must be one for all or one per class ({classes}), got {len(styles)}")
    return styles * classes if len(styles) == 1 else styles
