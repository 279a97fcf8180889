"""Training batches from code shards: balanced draws, groups and dropped labels, a pure function of the step."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pgm.partitioning import draw_groups
from pgm_image.labels import NULL
from tokenizer.balanced import BalancedSampler
from tokenizer.shards import read_codes


@dataclass(frozen=True)
class LabelDropout:
    """Shares of training examples that lose labels, so that guidance and "any class", "any style" work."""

    both: float = 0.1
    style: float = 0.1  # the style alone
    label: float = 0.05  # the class alone

    def apply(self, classes: Tensor, styles: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """classes, styles (B,) int64 -> the same with -1 where dropped."""
        u = torch.rand(len(classes), generator=generator)
        no_style = u < self.both + self.style
        no_class = (u < self.both) | ((u >= self.both + self.style) & (u < self.both + self.style + self.label))
        return torch.where(no_class, NULL, classes), torch.where(no_style, NULL, styles)


class CodeBatches:
    """Batches {"codes", "hidden", "classes", "styles"} for `pgm.objectives.training_loss`."""

    def __init__(
        self,
        folder: str | Path,
        batch_size: int,
        seed: int = 0,
        split: str = "train",
        dropout: LabelDropout | None = None,
        mask_schedule: str = "arccos",
    ):
        """folder: code shards of `tokenizer encode`. Raises ValueError when it has no such split."""
        shards = read_codes(folder, split)
        self.codes = np.concatenate([codes for codes, _ in shards])  # (N, L) uint16
        self.labels = np.concatenate([labels for _, labels in shards])  # (N, 4)
        self.batch_size, self.seed = batch_size, seed
        self.dropout, self.mask_schedule = dropout or LabelDropout(), mask_schedule
        self._sampler = BalancedSampler(*self.labels.T)

    def __call__(self, index: int, process: int = 0) -> dict[str, Tensor]:
        """Batch `index` of a process, the same whenever it is asked for."""
        rng = np.random.default_rng([self.seed, index, process])
        rows = self._sampler.draw(self.batch_size, rng)
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        codes = torch.from_numpy(self.codes[rows].astype(np.int64))
        labels = torch.from_numpy(self.labels[rows].astype(np.int64))
        classes, styles = self.dropout.apply(labels[:, 0], labels[:, 1], generator)
        hidden = draw_groups(len(codes), codes.shape[1], generator, self.mask_schedule)
        return {"codes": codes, "hidden": hidden, "classes": classes, "styles": styles}
