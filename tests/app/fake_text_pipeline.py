"""A stand-in for `pgm_text.TextPipeline`: real tokenizer, prompts and requests, but what comes in is a made-up entry of
a dictionary instead of a network's choice. Fast, exact and cancellable.
"""

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import torch

from pgm.sampling import Step, planned_steps
from pgm_text.latents import draw_latents
from pgm_text.model_info import TextModelInfo
from pgm_text.request import TextRequest, make_request
from pgm_text.tokenizer import Tokenizer, train_tokenizer

LENGTH = 40
NOUNS = ("lantern", "harbour", "meadow", "violin", "copper", "raven", "ladder", "orchard", "saddle", "canvas")
PARTS = (
    "a small {a} that hangs above a {b}",
    "the place where a {a} is kept for the {b}",
    "a person who paints a {a}",
    "a kind of {a} made of {b} and used by sailors at night",
    "the sound of a {a} that falls into a {b}",
)


def entry(seed: int) -> str:
    """A made-up entry of a dictionary."""
    chance = np.random.default_rng(seed)
    noun, a, b = (str(word) for word in chance.choice(NOUNS, 3, replace=False))
    return f"{noun} (noun): {PARTS[int(chance.integers(len(PARTS)))].format(a=a, b=b)}"


@lru_cache(maxsize=1)
def tokenizer() -> Tokenizer:
    return train_tokenizer([entry(seed) for seed in range(300)], 420)


class FakeTextPipeline:
    """Fills the blanks of a prompt with the words of an entry; `architecture` decides what it says it cost."""

    def __init__(self, architecture: str = "pgm", step_seconds: float = 0.02, **changes: object) -> None:
        self.tokenizer = tokenizer()
        values = dict(
            name=f"fake-{architecture}",
            architecture=architecture,
            title=f"Made-up dictionary, {architecture.upper()}",
            length=LENGTH,
            vocab_size=self.tokenizer.vocab_size,
            latent_width=8 if architecture == "rmdm" else 0,
            recommended={"steps": 16, "sampler": "uniform", "temperature": 0.9, "top_p": 0.95},
            presets={"Draft": {"steps": 6}, "Balanced": {"steps": 16}, "Best": {"steps": 32}},
        )
        self.info = TextModelInfo(**{**values, **changes})
        self.step_seconds = step_seconds
        self.started = self.closed = self.running = self.steps_run = 0
        self.requests: list[TextRequest] = []

    def request(self, prompt: str | None = None, **settings: object) -> TextRequest:
        return make_request(self.info, self.tokenizer, prompt, **settings)

    def draw_latents(self, seeds: Sequence[int]) -> torch.Tensor:
        return draw_latents(list(seeds), self.info.latent_width)

    def decode(self, codes: torch.Tensor, unknown: str = "____") -> list[str]:
        return [self.tokenizer.decode(row, unknown=unknown) for row in codes]

    def steps(self, request: TextRequest) -> Iterator[Step]:
        start = time.perf_counter()
        self.started += 1
        self.running += 1
        self.requests.append(request)
        try:
            cells = len(request.layout)
            given = torch.tensor(request.layout.ids)
            codes = given.expand(len(request), -1).clone()
            goal = torch.stack([self._goal(request, i) for i in range(len(request))])
            unknown = (given < 0).nonzero().flatten().numpy()
            orders = [torch.from_numpy(np.random.default_rng(seed).permutation(unknown)) for seed in request.seeds]
            total = min(planned_steps(request.sampling, cells), max(len(unknown), 1))
            computed = masked = before = 0
            for index in range(total):
                time.sleep(self.step_seconds * (3 if self.info.architecture != "pgm" else 1))
                self.steps_run += 1
                end = round(len(unknown) * (index + 1) / total)
                filled = torch.zeros(codes.shape, dtype=torch.bool)
                for row, order in zip(filled, orders, strict=True):
                    row[order[before:end]] = True
                codes = torch.where(filled, goal, codes)
                masked += self.info.length + 1
                computed += self.info.length + 1 if self.info.architecture != "pgm" else cells - len(unknown) + end
                before = end
                yield Step(index, total, codes, codes >= 0, filled, computed, masked, time.perf_counter() - start)
        finally:
            self.running -= 1
            self.closed += 1

    def _goal(self, request: TextRequest, which: int) -> torch.Tensor:
        """(L,) what comes in: the words of an entry, as many as fit, then ends of text."""
        mark = request.seeds[which] if request.z is None else int(1000 * abs(float(request.z[which].sum())))
        text = entry(mark).partition(": ")[2]
        words = self.tokenizer.encode(" " + text if request.layout.ids[0] >= 0 else entry(mark))
        unknown = [cell for cell, token in enumerate(request.layout.ids) if token < 0]
        open_end = bool(unknown) and unknown[-1] == len(request.layout) - 1 and len(unknown) > len(words)
        ends = [self.tokenizer.eos_id] * len(unknown)
        filler = (words + ends) if open_end else (words * len(unknown))
        goal = torch.tensor(request.layout.ids)
        for cell, token in zip(unknown, filler, strict=False):
            goal[cell] = token
        return goal
