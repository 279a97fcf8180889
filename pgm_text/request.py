"""One generation as asked for, checked at the door: after this nothing about the arguments can go wrong.

Checking needs a model's index and its tokenizer only, so a bad argument is reported before any weight is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from pgm.arguments import MAX_SEED, one_of, real_number, share, whole_number
from pgm.refinement import refinement_arguments
from pgm.sampling import SamplingConfig
from pgm_text.latents import draw_latents, given_latents
from pgm_text.model_info import TextModelInfo
from pgm_text.prompt import BLANK_TOKENS, Layout, lay_out
from pgm_text.tokenizer import Tokenizer

DEFAULT_STEPS = 32
MOST_STEPS = 4096

# name: (order, schedule) of the sampling loop
SAMPLERS: dict[str, tuple[str, str]] = {
    "uniform": ("random", "even"),  # the same number of tokens at every step, in random order
    "ancestral": ("random", "ancestral"),  # each token when its own clock strikes: MDLM's sampler
    "binomial": ("random", "binomial"),  # a number of tokens drawn at every step
    "confidence": ("confidence", "linear"),  # the tokens the model is surest of, with fading noise
    "raster": ("raster", "even"),  # from left to right, the same number at every step
}


@dataclass(frozen=True)
class TextRequest:
    """Cells, seeds and latents of a set of texts, and how to sample them."""

    layout: Layout
    seeds: tuple[int, ...]
    sampling: SamplingConfig
    z: Tensor | None = None  # (n, K) for models with a latent

    def __len__(self) -> int:
        return len(self.seeds)

    def part(self, start: int, stop: int) -> TextRequest:
        """The request for texts start..stop-1; each of them comes out as in the whole."""
        return replace(self, seeds=self.seeds[start:stop], z=None if self.z is None else self.z[start:stop])


def make_request(
    info: TextModelInfo,
    tokenizer: Tokenizer,
    prompt: str | None = None,
    *,
    num_texts: Any = 1,
    length: Any = None,
    steps: Any = None,
    sampler: str | None = None,
    temperature: Any = None,
    top_p: Any = None,
    top_k: Any = None,
    guidance_scale: Any = None,
    seed: Any = 0,
    z: Any = None,
    blank_tokens: Any = None,
    extend: bool | None = None,
    refine_rounds: Any = None,
    refine_share: Any = None,
    refine_steps: Any = None,
    refine_score: str | None = None,
) -> TextRequest:
    """Check every argument of `generate` against a model; None takes the model's recommended setting.

    prompt: see `pgm_text.prompt`; length: most tokens of a text, prompt included; steps: of the sampler, never more
    than there are tokens to generate (ancestral and binomial apart); temperature: 0 takes the likeliest token, which
    repeats itself; guidance_scale: on z, for models with a latent; z: one vector for all texts or one per text, None
    draws them; blank_tokens: cells of one blank; extend: see `lay_out`; refine_rounds: how often, once all tokens are
    there, those that fit the others worst are drawn anew (0 = never): the share refine_share in the first round, fewer
    in later ones, each in refine_steps steps; refine_score: "likelihood" or "typicality" (see `pgm.refinement.fits`).
    Text i has seed `seed` + i. Raises ValueError that names the argument, the value and what is allowed.
    """
    asked = {
        "steps": steps, "sampler": sampler, "temperature": temperature, "top_p": top_p, "top_k": top_k,
        "guidance_scale": guidance_scale, "blank_tokens": blank_tokens,
        "refine_rounds": refine_rounds, "refine_share": refine_share, "refine_steps": refine_steps,
        "refine_score": refine_score,
    }  # fmt: skip
    settings = {**info.recommended, **{key: value for key, value in asked.items() if value is not None}}
    count = whole_number("num_texts", num_texts, 1)
    first = whole_number("seed", seed, 0, MAX_SEED - count)
    cells = info.length if length is None else whole_number("length", length, 1, info.length)
    if extend not in (None, True, False):
        raise ValueError(f"extend must be True, False or None, got {extend!r}")
    sampling = _sampling(settings, info)
    layout = lay_out(prompt, tokenizer, cells, blank_tokens=settings.get("blank_tokens", BLANK_TOKENS), extend=extend)
    seeds = tuple(range(first, first + count))
    latents = None
    if z is not None:
        latents = given_latents(z, count, info.latent_width)
    elif info.latent_width:
        latents = draw_latents(seeds, info.latent_width)
    return TextRequest(layout, seeds, sampling, latents)


def _sampling(settings: dict[str, Any], info: TextModelInfo) -> SamplingConfig:
    order, schedule = SAMPLERS[one_of("sampler", settings.get("sampler", "uniform"), tuple(SAMPLERS))]
    top_k, top_p = settings.get("top_k"), settings.get("top_p")
    guidance = real_number("guidance_scale", settings.get("guidance_scale", 0.0))
    if guidance and not info.latent_width:
        raise ValueError(f"guidance_scale must be 0 for {info.name!r}, which has no latent, got {guidance!r}")
    return SamplingConfig(
        steps=whole_number("steps", settings.get("steps", DEFAULT_STEPS), 1, MOST_STEPS),
        order=order,
        schedule=schedule,
        guidance_scale=guidance,
        guidance_schedule="constant",
        temperature=real_number("temperature", settings.get("temperature", 1.0)),
        top_k=None if top_k is None else whole_number("top_k", top_k, 1),
        top_p=None if top_p is None else share("top_p", top_p),
        **refinement_arguments(settings),
    )
