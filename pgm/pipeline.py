"""What image and text pipelines share: a transformer with its settings, run part by part, that can be interrupted."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from pgm.sampling import Step

Callback = Callable[[Any, int, int, dict[str, Any]], Any]  # pipeline, step, total steps, {"step": Step}


class Pipeline(ABC):
    """A transformer and what is known of it (`info`, with `recommended` settings and `presets`)."""

    def __init__(self, transformer: nn.Module, info: Any):
        self.transformer, self.info = transformer.eval(), info
        self._interrupt = False

    @property
    def device(self) -> torch.device:
        return next(self.transformer.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        return next(self.transformer.parameters()).dtype

    @property
    def recommended(self) -> dict[str, Any]:
        """Settings used where nothing else is asked for."""
        return dict(self.info.recommended)

    @property
    def presets(self) -> dict[str, dict[str, Any]]:
        """Named sets of settings, e.g. Draft, Balanced, Best."""
        return {name: dict(values) for name, values in self.info.presets.items()}

    def interrupt(self) -> None:
        """End a running `generate` after the current step (from a callback or another thread)."""
        self._interrupt = True

    @abstractmethod
    def steps(self, *part: Any) -> Iterator[Step]:
        """Run one checked request; each kind of pipeline has its own."""

    def _codes(
        self, parts: Sequence[tuple[Any, ...]], steps_each: int, progress: bool, callback: Callback | None
    ) -> Tensor:
        """Run `steps(*part)` for every part -> codes (B, L) on the CPU, fewer rows when interrupted."""
        codes: list[Tensor] = []
        self._interrupt = False
        with tqdm(total=len(parts) * steps_each, disable=not progress, unit="step") as bar:
            for part in parts:
                last = None
                for last in self.steps(*part):
                    bar.update()
                    if callback:
                        callback(self, last.index, last.total, {"step": last})
                    if self._interrupt:
                        break
                codes.append(last.codes.cpu())
                if self._interrupt:
                    break
        return torch.cat(codes)
