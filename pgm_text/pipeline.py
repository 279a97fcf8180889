"""TextPipeline: transformer, tokenizer and, for RMDM, the representation together, used like a diffusers pipeline."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pgm.arguments import one_of, whole_number
from pgm.devices import resolve_device, resolve_dtype
from pgm.diffusion_transformer import DiffusionTransformer
from pgm.models import load_model, make_predictor, save_model
from pgm.noise import Noise
from pgm.pipeline import Callback, Pipeline
from pgm.refinement import all_steps, noise_for, sample_and_refine
from pgm.sampling import Step
from pgm_text.checkpoints import PUBLIC_CHECKPOINTS, download_checkpoint, read_checkpoint
from pgm_text.constraints import ConstrainedPredictor, forbidden_tokens
from pgm_text.latents import draw_latents
from pgm_text.model_info import TextModelInfo, read_info, write_info
from pgm_text.registry import checkpoint_info, find_folder, is_checkpoint
from pgm_text.representation import Representation
from pgm_text.request import TextRequest, make_request
from pgm_text.sentence_encoder import MINILM, SentenceEncoder
from pgm_text.tokenizer import Tokenizer, gpt2_tokenizer

OUTPUT_TYPES = ("text", "ids")


class TextPipeline(Pipeline):
    """Text generation, a few tokens at a time in any order.

    >>> pipe = TextPipeline.from_pretrained("dictionary-pgm")
    >>> pipe("lantern (noun): ", seed=3)
    """

    def __init__(
        self,
        transformer: nn.Module,
        tokenizer: Tokenizer,
        info: TextModelInfo,
        representation: Representation | None = None,
    ):
        super().__init__(transformer, info)
        self.tokenizer, self.representation = tokenizer, representation

    # -- loading and saving -------------------------------------------------------------------------------------

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | str | None = None,
        torch_dtype: torch.dtype | str | None = None,
        attention: str = "auto",
        **download: Any,
    ) -> TextPipeline:
        """Load a bundled model, a published checkpoint by name or as a file, a folder in our layout, or a hub id.

        device, dtype: None picks for the machine (see `pgm.devices`); attention: auto, sdpa, xformers or math;
        download: `revision`, `cache_dir`, `local_files_only`, `token`, as in huggingface_hub. Raises ValueError in one
        sentence when the model is unknown, incomplete or cannot be had.
        """
        device, dtype = resolve_device(device), dtype if dtype is not None else torch_dtype
        representation = None
        if is_checkpoint(name):
            path = download_checkpoint(str(name), **download) if str(name) in PUBLIC_CHECKPOINTS else Path(name)
            tokenizer = gpt2_tokenizer()
            transformer = read_checkpoint(path)
            info = _checked_info(checkpoint_info(name), transformer, tokenizer)
            transformer.to(device, resolve_dtype(dtype, device, info.parameters))
        else:
            folder = find_folder(name, **download)
            info = read_info(folder)
            transformer = load_model(folder / "transformer", resolve_dtype(dtype, device, info.parameters), device)
            tokenizer = Tokenizer.load(folder)
            if (folder / "representation").is_dir():
                representation = Representation.load(folder / "representation")
        transformer.set_attention_backend(attention)
        return cls(transformer, tokenizer, info, representation)

    def save_pretrained(self, folder: str | Path, dtype: torch.dtype | None = None) -> None:
        """Write model_index.json, transformer/, tokenizer.json and, if there is one, representation/."""
        folder = Path(folder)
        write_info(self.info, folder)
        save_model(self.transformer, folder / "transformer", dtype)
        self.tokenizer.save(folder)
        if self.representation is not None:
            self.representation.save(folder / "representation")

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> TextPipeline:
        """Move the transformer to a device and a dtype. Returns itself."""
        if device is not None:
            self.transformer.to(resolve_device(device))
        if dtype is not None:
            self.transformer.to(dtype)
        return self

    @property
    def length(self) -> int:
        """Most tokens of a text."""
        return self.info.length

    # -- generating ---------------------------------------------------------------------------------------------

    def __call__(self, prompt: str | None = None, **arguments: Any) -> Any:
        """See `generate`."""
        return self.generate(prompt, **arguments)

    def generate(
        self,
        prompt: str | None = None,
        *,
        batch_size: int = 16,
        output_type: str = "text",
        progress: bool = False,
        callback_on_step_end: Callback | None = None,
        **arguments: Any,
    ) -> Any:
        """Generate texts; all other arguments are those of `pgm_text.request.make_request`.

        batch_size: texts computed together (it does not change them); output_type: "text" (list of str) or "ids"
        ((n, L) int64); progress: show a bar; callback_on_step_end(pipeline, step, total steps, {"step": Step}) is
        called after every step and may call `pipeline.interrupt()`, after which unfinished texts come back as far as
        they are known. Raises ValueError for a bad argument before anything is computed.
        """
        size = whole_number("batch_size", batch_size, 1)
        output_type = one_of("output_type", output_type, OUTPUT_TYPES)
        request = self.request(prompt, **arguments)
        if request.sampling.temperature == 0:
            warnings.warn("temperature 0 takes the likeliest token everywhere: texts repeat themselves", stacklevel=2)
        parts = [(request.part(start, start + size),) for start in range(0, len(request), size)]
        ids = self._codes(parts, all_steps(request.sampling, len(request.layout)), progress, callback_on_step_end)
        return ids if output_type == "ids" else self.decode(ids)

    def generate_steps(self, prompt: str | None = None, **arguments: Any) -> Iterator[Step]:
        """The generator of steps behind `generate`, all texts in one batch; closing it ends the work.

        `step.codes` (B, L) has the same number of cells at every step, -1 where unknown; `decode` and `pieces` show
        them. Arguments are checked when this is called, not when the first step is asked for.
        """
        return self.steps(self.request(prompt, **arguments))

    def request(self, prompt: str | None = None, **arguments: Any) -> TextRequest:
        """Checked arguments."""
        return make_request(self.info, self.tokenizer, prompt, **arguments)

    def steps(self, request: TextRequest) -> Iterator[Step]:
        """Run a checked request. The end of the text behind its last cell is given to the network, but not yielded."""
        config, device, count = request.sampling, self.device, len(request)
        cells = len(request.layout)
        ids = torch.tensor(request.layout.ids)
        tail = self._tail(cells)
        with torch.no_grad():
            sigma = torch.zeros(count, device=device)
            z = None if request.z is None else request.z.to(device)
            condition = self.transformer.condition(sigma, z)
            null = self.transformer.condition(sigma, None) if config.guidance_scale else None
        table = forbidden_tokens(self.tokenizer, self.transformer.config.vocab_size).to(device)
        constraints = torch.tensor((*request.layout.constraints, *[0] * tail), device=device)
        predictor = ConstrainedPredictor(make_predictor(self.transformer, condition, null), constraints, table)
        noise = _widened(noise_for(config, list(request.seeds), cells), tail)
        known = torch.cat((ids, torch.full((tail,), self.tokenizer.eos_id))).expand(count, -1)
        for step in sample_and_refine(predictor, noise, (1, cells + tail), config, device, known):
            yield replace(step, codes=step.codes[:, :cells], known=step.known[:, :cells], filled=step.filled[:, :cells])

    def _tail(self, cells: int) -> int:
        """End tokens to put behind the cells of a text that ends there.

        One says it all to a partition transformer, which runs on known tokens only; a masked transformer was trained
        on full rows, so it gets a full row.
        """
        if self.info.layout != "entries":
            return 0
        room = self.transformer.config.length - cells
        return room if isinstance(self.transformer, DiffusionTransformer) else min(room, 1)

    # -- text and latents ---------------------------------------------------------------------------------------

    def decode(self, codes: Tensor, unknown: str = "____") -> list[str]:
        """codes (B, L) int64, -1 = unknown -> texts, each up to its first end token where texts end."""
        ends = self.info.layout == "entries"
        return [self.tokenizer.decode(row, stop_at_end=ends, unknown=unknown) for row in codes.cpu()]

    def pieces(self, codes: Tensor, unknown: str = "") -> list[list[str]]:
        """codes (B, L) -> one string per cell, special tokens by name, unknown cells as `unknown`."""
        return [self.tokenizer.pieces(row, unknown) for row in codes.cpu()]

    def draw_latents(self, seeds: Sequence[int]) -> Tensor:
        """The z that texts with these seeds are generated from: (n, K)."""
        if not self.info.latent_width:
            raise ValueError(f"model {self.info.name!r} has no latent z")
        return draw_latents(list(seeds), self.info.latent_width)

    def latents_of(self, texts: Sequence[str], encoder: Any = None) -> Tensor:
        """z of given texts, (n, K), to generate texts like them; needs a representation and its sentence encoder."""
        if self.representation is None:
            raise ValueError(f"model {self.info.name!r} has no representation/, which turns texts into z")
        if encoder is None:
            if self.representation.config.encoder != MINILM:
                raise ValueError(f"encoder must be given: z come from {self.representation.config.encoder!r}")
            encoder = SentenceEncoder.minilm()
        return self.representation(encoder.encode(list(texts)))


def _widened(noise: Noise, tail: int) -> Noise:
    """Room for `tail` known positions behind; what they hold is never used."""

    def widen(values: Tensor | None) -> Tensor | None:
        return values if values is None else nn.functional.pad(values, (0, tail), value=0.5)

    return replace(
        noise,
        codes=widen(noise.codes),
        order=widen(noise.order),
        confidence=widen(noise.confidence),
        rounds=tuple(_widened(own, tail) for own in noise.rounds),
    )


def _checked_info(info: TextModelInfo, transformer: nn.Module, tokenizer: Tokenizer) -> TextModelInfo:
    config = transformer.config
    if config.vocab_size != tokenizer.vocab_size:
        raise ValueError(
            f"{info.name} has a vocabulary of {config.vocab_size}, GPT-2's tokenizer with a mask has "
            f"{tokenizer.vocab_size}: it is not one of the OpenWebText models"
        )
    partition = not isinstance(transformer, DiffusionTransformer)
    parameters = sum(parameter.numel() for parameter in transformer.parameters())
    return replace(info, architecture="pgm" if partition else "mdlm", length=config.length, parameters=parameters)
