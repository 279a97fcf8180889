"""A language of two templates, small enough to enumerate: what parallel sampling loses, and what a latent gives back.

RMDM, arXiv 2609.12382, section 3.1. Every text has L words; a fair coin picks the template, and each word is its
template's own except with probability `slip`. The latent z ~ N(0, 1) tells the template by its sign, so its prior is
matched exactly and only the second stage is studied. Smoothed with strength s, z' = sqrt(1 - s^2) z + s noise leaves
P(first template | z') = Phi(sqrt(1 - s^2) z' / s), hence everything below is exact but for the trained networks.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from pgm.diffusion_transformer import DiffusionTransformer, DiffusionTransformerConfig
from pgm.models import make_predictor
from pgm.noise import draw_noise
from pgm.noise_schedule import hidden_mask, sample_times
from pgm.predictors import evaluating
from pgm.sampling import SamplingConfig, sample
from pgm_text.algorithms import mdlm, rmdm
from pgm_text.conditional_dependency import total_correlation
from pgm_text.latents import draw_latents
from pgm_text.representation import smooth

BOS, FIRST, SECOND, MASK = 0, 1, 2, 3


@dataclass(frozen=True)
class TwoTemplates:
    """The language. texts: all 2^L of them in the order of `enumerate_texts`."""

    length: int = 4
    slip: float = 0.02
    smoothing: float = 0.3

    def enumerate_texts(self) -> Tensor:
        """(2^L, L) int64 of FIRST and SECOND."""
        return torch.tensor(list(product((FIRST, SECOND), repeat=self.length)))

    def given_template(self, template: int) -> Tensor:
        """Joint probabilities (2,) * L of the words of a template (FIRST or SECOND)."""
        word = torch.tensor([1 - self.slip, self.slip], dtype=torch.float64)
        word = word if template == FIRST else word.flip(0)
        joint = torch.ones((), dtype=torch.float64)
        for _ in range(self.length):
            joint = joint[..., None] * word
        return joint

    def joint(self, first: float | Tensor = 0.5) -> Tensor:
        """Joint probabilities when the first template has probability `first`, (..., 2, ..., 2)."""
        share = torch.as_tensor(first, dtype=torch.float64)[(..., *[None] * self.length)]
        return share * self.given_template(FIRST) + (1 - share) * self.given_template(SECOND)

    def draw(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Texts (count, L) and their z_0 (count, 1)."""
        z = torch.randn(count, 1, generator=generator)
        slips = torch.rand(count, self.length, generator=generator) < self.slip
        return torch.where((z > 0) != slips, FIRST, SECOND), z

    def truth(self, points: int = 4001) -> dict[str, float]:
        """Total correlation in nats of all words: without z, given z', and given z itself (0: words independent)."""
        z = torch.linspace(-6, 6, points, dtype=torch.float64)
        density = (-(z**2) / 2).exp()
        keep = (1 - self.smoothing**2) ** 0.5
        first = torch.special.ndtr(keep * z / self.smoothing)
        given = total_correlation(self.joint(first), density / density.sum())
        return {"without z": total_correlation(self.joint()).item(), "given z'": given.item(), "given z": 0.0}


def train_model(language: TwoTemplates, latent: bool, *, steps: int = 400, seed: int = 0) -> DiffusionTransformer:
    """A small MDLM, or RMDM with `latent`, trained on fresh texts of the language for `steps` batches of 64."""
    config = DiffusionTransformerConfig(
        vocab_size=4, length=language.length, width=32, heads=2, layers=2, mask_id=MASK, bos_id=BOS,
        latent_width=int(latent), condition_width=16, dropout=0.0,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = DiffusionTransformer(config)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    algorithm = rmdm if latent else mdlm
    for _ in range(steps):
        words, z = language.draw(64, generator)
        tokens = torch.cat((torch.full((64, 1), BOS), words), dim=1)
        t = sample_times(torch.rand(64, generator=generator), sampling_eps=0.05)
        hidden = hidden_mask(torch.rand(tokens.shape, generator=generator), t)
        hidden[:, 0] = False
        batch = {"tokens": tokens, "hidden": hidden, "t": t}
        if latent:
            batch["z"] = smooth(z, language.smoothing, torch.randn(z.shape, generator=generator))
        optimizer.zero_grad()
        algorithm.loss(model, batch).backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def model_total_correlation(model: nn.Module, language: TwoTemplates, z: Tensor | None = None) -> float:
    """KL in nats of what the model says word by word from what it says of all words at once, by enumeration.

    z: (n, 1), over which the mean is taken, or None.
    """
    texts = language.enumerate_texts()
    tokens = torch.cat((torch.full((len(texts), 1), BOS), texts), dim=1)
    content = torch.arange(language.length + 1)
    algorithm = rmdm if z is not None else mdlm
    total = 0.0
    with evaluating(model):
        for latent in [None] if z is None else z:
            rows = None if latent is None else latent.expand(len(tokens), -1)

            def nll(hidden: Tensor, rows: Tensor | None = rows) -> Tensor:
                return algorithm.token_nll(model, tokens, hidden.expand(len(tokens), -1), rows).double()

            at_once = -nll(content > 0).sum(1)
            in_turn = -torch.stack([nll(content > i)[:, i + 1] for i in range(language.length)]).sum(0)
            total += (in_turn.exp() * (in_turn - at_once)).sum().item()
    return total / (1 if z is None else len(z))


def sampled_distribution(model: nn.Module, language: TwoTemplates, steps: int, count: int = 2000) -> Tensor:
    """Frequencies (2^L,) of generated texts, through the sampling loop, z drawn once per text."""
    seeds = list(range(count))
    z = draw_latents(seeds, 1) if model.config.latent_width else None
    with torch.no_grad():
        predictor = make_predictor(model, model.condition(torch.zeros(count), z))
    config = SamplingConfig(steps=steps, order="random", schedule="even")
    # BOS is an ordinary id here, and never learnt to be predicted.
    *_, last = sample(predictor, draw_noise(seeds, language.length), (1, language.length), config)
    place = 2 ** torch.arange(language.length - 1, -1, -1)
    index = ((last.codes == SECOND).long() * place).sum(1)
    return torch.bincount(index, minlength=2**language.length).double() / count


def study(language: TwoTemplates | None = None, *, training_steps: int = 400, seed: int = 0) -> dict[str, Any]:
    """Truth and models side by side: total correlation with and without z, and distance to the truth at few steps."""
    language = language or TwoTemplates()
    truth = language.joint().flatten()
    models = {name: train_model(language, name == "rmdm", steps=training_steps, seed=seed) for name in ("mdlm", "rmdm")}
    z = torch.randn(64, 1, generator=torch.Generator().manual_seed(seed))
    steps = sorted({1, 2, language.length})
    distance = {
        name: {
            str(count): (sampled_distribution(model, language, count) - truth).abs().sum().item() / 2 for count in steps
        }
        for name, model in models.items()
    }
    return {
        "language": {"templates": 2, **vars(language)},
        "total_correlation_truth": language.truth(),
        "total_correlation_models": {
            "mdlm": model_total_correlation(models["mdlm"], language),
            "rmdm, given z'": model_total_correlation(models["rmdm"], language, z),
        },
        "total_variation_to_truth_at_steps": distance,
    }
