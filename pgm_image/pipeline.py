"""PGMPipeline: transformer, tokenizer and labels together, used like a diffusers pipeline."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from pgm.arguments import one_of, whole_number
from pgm.compiled_pass import Compilation
from pgm.devices import resolve_device, resolve_dtype
from pgm.models import load_model, make_predictor, save_model
from pgm.partition_transformer import PartitionTransformer
from pgm.pipeline import Callback, Pipeline
from pgm.refinement import all_steps, noise_for, sample_and_refine
from pgm.sampling import Step
from pgm_image import edits
from pgm_image.labels import NULL
from pgm_image.model_info import ModelInfo, read_info, write_info
from pgm_image.request import Request, make_request
from tokenizer.pixels import to_pil
from tokenizer.vqgan import VQGAN

OUTPUT_TYPES = ("pil", "np", "pt", "codes", "latent")


class PGMPipeline(Pipeline):
    """Class-conditional image generation, code by code.

    >>> pipe = PGMPipeline.from_pretrained("emoji64")
    >>> pipe("bird", style="noto", seed=3)[0].save("bird.png")
    """

    def __init__(self, transformer: nn.Module, tokenizer: VQGAN, info: ModelInfo):
        super().__init__(transformer, info)
        self.tokenizer = tokenizer.eval()

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
        compile: str = "off",
        checkpoints: str | Path | None = None,
        **download: Any,
    ) -> "PGMPipeline":
        """Load a bundled or public model by name, a folder in our layout, or a hub id ("user/model").

        device, dtype: None picks for the machine (see `pgm.devices`); attention: auto, sdpa, xformers or math;
        compile: "auto" runs a Partition Transformer through `torch.compile` where that works, for many pictures on a
        GPU (the first ones wait for it); checkpoints: folder with files of public models (see `public_loading`);
        download: `revision`, `cache_dir`, `local_files_only`, `token`, as in huggingface_hub. Raises ValueError in one
        sentence when the model is unknown, incomplete or cannot be had.
        """
        from pgm_image.registry import find_folder, public_model

        compile = one_of("compile", compile, get_args(Compilation))
        device, dtype = resolve_device(device), dtype if dtype is not None else torch_dtype
        public = public_model(name)
        if public:
            from pgm_image.public_loading import load_public

            info, number_format = public.info(), resolve_dtype(dtype, device, public.parameters)
            transformer, tokenizer = load_public(public, device, number_format, checkpoints, **download)
        else:
            folder = find_folder(name, **download)
            info = read_info(folder)
            transformer = load_model(folder / "transformer", resolve_dtype(dtype, device, info.parameters), device)
            tokenizer = VQGAN.from_pretrained(folder / "tokenizer").to(device)  # convolutions stay in float32
        transformer.set_attention_backend(attention)
        if isinstance(transformer, PartitionTransformer):
            transformer.set_compilation(compile)
        return cls(transformer, tokenizer, info)

    def save_pretrained(
        self, folder: str | Path, dtype: torch.dtype | None = None, max_shard: str | None = None
    ) -> None:
        """Write model_index.json, transformer/ and tokenizer/; floating weights as `dtype` if given.

        max_shard: largest size of a file of the transformer, e.g. "2GB" (default: what ordinary git can carry).
        """
        folder = Path(folder)
        write_info(self.info, folder)
        save_model(self.transformer, folder / "transformer", dtype, max_shard)
        self.tokenizer.save_pretrained(folder / "tokenizer", dtype)

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> "PGMPipeline":
        """Move to a device and, the transformer only, to a dtype. Returns itself."""
        if device is not None:
            device = resolve_device(device)
            self.transformer.to(device)
            self.tokenizer.to(device)
        if dtype is not None:
            self.transformer.to(dtype)
        return self

    @property
    def components(self) -> dict[str, nn.Module]:
        return {"transformer": self.transformer, "tokenizer": self.tokenizer}

    @property
    def classes(self) -> list[str]:
        return list(self.info.classes)

    @property
    def styles(self) -> list[str]:
        return list(self.info.styles)

    @property
    def grid(self) -> tuple[int, int]:
        return self.info.grid

    @property
    def image_size(self) -> int:
        return self.info.image_size

    # -- generating ---------------------------------------------------------------------------------------------

    def __call__(self, class_id: Any, **arguments: Any) -> Any:
        """See `generate`."""
        return self.generate(class_id, **arguments)

    def generate(
        self,
        class_id: Any,
        *,
        batch_size: int = 16,
        output_type: str = "pil",
        progress: bool = False,
        callback_on_step_end: Callback | None = None,
        **arguments: Any,
    ) -> Any:
        """Generate pictures; all other arguments are those of `pgm_image.request.make_request`.

        batch_size: pictures computed together (it does not change them); output_type: "pil" (list of images), "np"
        ((N, H, W, 3) float32 in [0, 1]), "pt" ((N, 3, H, W) likewise), "codes" or "latent" ((N, h, w) int64);
        progress: show a bar; callback_on_step_end(pipeline, step, total steps, {"step": Step}) is called after every
        step and may call `pipeline.interrupt()`, after which unfinished pictures come back as far as they are known.
        Raises ValueError for a bad argument before anything is computed.
        """
        size = whole_number("batch_size", batch_size, 1)
        output_type = one_of("output_type", output_type, OUTPUT_TYPES)
        request = self.request(class_id, **arguments)
        return self._output(self._run(request, None, size, progress, callback_on_step_end), output_type)

    def generate_steps(self, class_id: Any, **arguments: Any) -> Iterator[Step]:
        """The generator of steps behind `generate`, all pictures in one batch; closing it ends the work.

        Arguments are checked when this is called, not when the first step is asked for.
        """
        return self.steps(self.request(class_id, **arguments))

    def request(self, class_id: Any, generator: Any = None, **arguments: Any) -> Request:
        """Checked arguments. `generator`, as in diffusers, is a torch.Generator that the seed is drawn from."""
        if generator is not None:
            if arguments.get("seed"):
                raise ValueError(f"give either seed or generator, got both (seed={arguments['seed']!r})")
            if not isinstance(generator, torch.Generator):
                raise ValueError(f"generator must be a torch.Generator, got {type(generator).__name__}")
            arguments["seed"] = int(torch.randint(2**31, (), generator=generator, device=generator.device))
        return make_request(self.info, class_id, **arguments)

    def steps(self, request: Request, known_codes: Tensor | None = None) -> Iterator[Step]:
        """Run a checked request; known_codes: (B, L) int64, -1 where codes are to be generated."""
        config, device = request.sampling, self.device
        with torch.no_grad():
            classes, styles = (torch.tensor(labels, device=device) for labels in (request.classes, request.styles))
            condition = self.transformer.condition(classes, styles)
            null = None
            if config.guidance_scale:
                nulls = torch.full_like(classes, NULL)
                null = self.transformer.condition(nulls, nulls)
        predictor = make_predictor(self.transformer, condition, null, request.visible_length)
        noise = noise_for(config, list(request.seeds), self.info.length)
        return sample_and_refine(predictor, noise, self.info.grid, config, device, known_codes)

    def _run(
        self, request: Request, known_codes: Tensor | None, size: int, progress: bool, callback: Callback | None
    ) -> Tensor:
        """Run a request in parts of `size` pictures -> codes (B, L), fewer rows when interrupted."""
        parts = [
            (request.part(start, start + size), None if known_codes is None else known_codes[start : start + size])
            for start in range(0, len(request), size)
        ]
        return self._codes(parts, all_steps(request.sampling, self.info.length), progress, callback)

    # -- editing ------------------------------------------------------------------------------------------------

    def edit(self, image: Any, mask: Any, class_id: Any = None, **arguments: Any) -> list[Image.Image]:
        """Generate the painted part of a picture anew; see `pgm_image.edit`."""
        running, arguments = _apart(arguments)
        return self.run_edit(edits.repaint(self.info, image, mask, class_id, **arguments), **running)

    def edit_steps(self, image: Any, mask: Any, class_id: Any = None, **arguments: Any) -> Iterator[Step]:
        """The generator of steps behind `edit`, all results in one batch; closing it ends the work."""
        return edits.repaint(self.info, image, mask, class_id, **arguments).steps(self)

    def variations(self, image: Any, strength: float = 0.5, **arguments: Any) -> list[Image.Image]:
        """Generate a share of a picture's codes anew; see `pgm_image.variations`."""
        running, arguments = _apart(arguments)
        return self.run_edit(edits.variations(self.info, image, strength, **arguments), **running)

    def outpaint(self, image: Any, **arguments: Any) -> list[Image.Image]:
        """Move or shrink a picture and fill what is left open; see `pgm_image.outpaint`."""
        running, arguments = _apart(arguments)
        return self.run_edit(edits.outpaint(self.info, image, **arguments), **running)

    def run_edit(
        self,
        task: edits.Edit,
        *,
        batch_size: int = 16,
        progress: bool = False,
        callback_on_step_end: Callback | None = None,
    ) -> list[Image.Image]:
        """Run a checked edit; arguments as in `generate`."""
        size = whole_number("batch_size", batch_size, 1)
        known = task.known_codes(self.tokenizer)
        codes = self._run(task.request, known, size, progress, callback_on_step_end)
        return task.part(0, len(codes)).results(self.decode(codes))

    # -- decoding -----------------------------------------------------------------------------------------------

    def decode(self, codes: Tensor) -> list[Image.Image]:
        """codes (B, L) or (B, h, w) int64 -> RGB pictures; cells with code -1 are white paper."""
        return to_pil(self.decode_tensor(codes))

    def decode_tensor(self, codes: Tensor, batch_size: int = 64) -> Tensor:
        """codes (B, L) or (B, h, w), -1 = unknown -> (B, 3, H, W) float32 in [-1, 1] on the CPU."""
        grid = codes.reshape(len(codes), *self.info.grid)
        return torch.cat([self._decode_part(part) for part in grid.split(batch_size)])

    def _decode_part(self, grid: Tensor) -> Tensor:
        unknown = grid < 0
        pictures = self.tokenizer.decode(torch.where(unknown, self._paper_code(), grid)).cpu()
        cell = self.tokenizer.config.factor
        paper = unknown.cpu().repeat_interleave(cell, 1).repeat_interleave(cell, 2)[:, None]
        return torch.where(paper, 1.0, pictures)

    def _paper_code(self) -> int:
        # The code of white: neighbours of an unknown cell are then decoded as if beside blank paper.
        if not hasattr(self, "_paper"):
            size = self.info.image_size
            codes = self.tokenizer.encode(torch.ones(1, 3, size, size))
            self._paper = int(codes[0, codes.shape[1] // 2, codes.shape[2] // 2])
        return self._paper

    def _output(self, codes: Tensor, output_type: str) -> Any:
        if output_type in ("codes", "latent"):
            return codes.cpu().reshape(len(codes), *self.info.grid)
        if output_type == "pil":
            return self.decode(codes)
        # Through the same 8-bit conversion as the files, so that all output types agree.
        pixels = np.stack([np.asarray(picture) for picture in self.decode(codes)]).astype(np.float32) / 255
        return pixels if output_type == "np" else torch.from_numpy(pixels).permute(0, 3, 1, 2)


def _apart(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of `run_edit`, and those of the edit itself."""
    running = {k: arguments[k] for k in ("batch_size", "progress", "callback_on_step_end") if k in arguments}
    return running, {k: v for k, v in arguments.items() if k not in running}
