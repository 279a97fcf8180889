"""Training batches from code shards: which rows, groups and dropped labels, a pure function of the step.

Rows are mapped from the files, not read into memory: a million pictures of 1024 codes are 2 GB on disk.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pgm.orders import halton_order
from pgm.partitioning import Stages, draw_groups, mask_probabilities
from pgm_image.labels import NULL
from tokenizer.balanced import BalancedSampler
from tokenizer.shards import read_codes, read_manifest

DRAWS = ("balanced", "shuffled")


@dataclass(frozen=True)
class LabelDropout:
    """Shares of training examples that lose labels, so that guidance and "any class", "any style" work."""

    both: float = 0.1
    style: float = 0.1  # the style alone
    label: float = 0.05  # the class alone

    def apply(self, classes: Tensor, styles: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """classes, styles (B,) int64 -> the same with -1 where dropped."""
        return self.drop(classes, styles, torch.rand(len(classes), generator=generator))

    def drop(self, classes: Tensor, styles: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        """The same with uniforms u (B,) that decide."""
        no_style = u < self.both + self.style
        no_class = (u < self.both) | ((u >= self.both + self.style) & (u < self.both + self.style + self.label))
        return torch.where(no_class, NULL, classes), torch.where(no_style, NULL, styles)


class MappedCodes:
    """Rows of all shards as if they were one array (N, L) uint16, read from the files when asked for."""

    def __init__(self, shards: list[np.ndarray]):
        """shards: memory maps (n, L) uint16, at least one."""
        self.shards = shards
        self.ends = np.cumsum([len(shard) for shard in shards])  # row numbers at which shards end
        self.width = shards[0].shape[1]

    def __len__(self) -> int:
        return int(self.ends[-1])

    def rows(self, index: np.ndarray) -> np.ndarray:
        """index (B,) row numbers -> codes (B, L) uint16."""
        found = np.empty((len(index), self.width), np.uint16)
        which = np.searchsorted(self.ends, index, side="right")
        for shard in np.unique(which):
            here = which == shard
            first = self.ends[shard] - len(self.shards[shard])
            found[here] = self.shards[shard][index[here] - first]
        return found


class ShuffledRows:
    """An endless stream in which every row comes once an epoch, in an order of its own.

    Where an epoch ends within a batch the batch goes on with the next one: all batches are of one size and no row is
    left out. The stream is a pure function of the seed; processes take turns in it.
    """

    def __init__(self, count: int, seed: int):
        self.count, self.seed = count, seed
        self._epoch, self._order = -1, np.empty(0, np.int64)

    def take(self, start: int, count: int) -> np.ndarray:
        """Rows (count,) at places start.. of the stream."""
        parts = []
        while count:
            epoch, offset = divmod(start, self.count)
            if epoch != self._epoch:
                self._epoch = epoch
                self._order = np.random.default_rng([self.seed, epoch]).permutation(self.count)
            part = self._order[offset : offset + count]
            parts.append(part)
            start, count = start + len(part), count - len(part)
        return np.concatenate(parts)


def uniforms_at(seed: int, start: int, count: int, width: int) -> np.ndarray:
    """Rows start.. of an endless table of uniforms (count, width), without computing the rows before.

    A counter-based generator: row i is the same whoever asks for it.
    """
    blocks = -(-width // 4)  # it draws four numbers at a time
    rng = np.random.Generator(np.random.Philox(key=seed).advance(start * blocks))
    return rng.random((count, 4 * blocks))[:, :width]


class CodeBatches:
    """Batches {"codes", "hidden", "classes", "styles", perhaps "stages", "positions"} for `training_loss`.

    With `beginnings` forward passes take turns: one of whole rows, then one for each beginning. Its rows are all staged
    and hold only the first so many codes in Halton order, and there are as many more rows as makes as many codes.
    """

    def __init__(
        self,
        folder: str | Path,
        batch_size: int,
        seed: int = 0,
        split: str = "train",
        dropout: LabelDropout | None = None,
        mask_schedule: str = "arccos",
        draw: str = "balanced",
        processes: int = 1,
        staged_share: float = 0.0,
        beginnings: tuple[int, ...] = (),
    ):
        """folder: code shards of `tokenizer encode`. draw: see `Recipe.draw`; with "shuffled" all `processes` together
        see the same rows, groups and dropped labels at a step, however many they are and in however many passes.
        staged_share: of the whole rows, which are staged along the Halton order instead of split into groups at random.
        beginnings: numbers of codes.

        Raises ValueError when the folder has no such split, or nothing in it, and for a beginning of all codes or more.
        """
        shards = [(codes, labels) for codes, labels in read_codes(folder, split) if len(codes)]
        if not shards:
            raise ValueError(f"split {split!r} of {str(folder)!r} is empty")
        self.codes = MappedCodes([codes for codes, _ in shards])
        self.labels = np.concatenate([labels for _, labels in shards])  # (N, 4)
        self.batch_size, self.seed, self.processes = batch_size, seed, processes
        self.dropout, self.mask_schedule = dropout or LabelDropout(), mask_schedule
        self.staged_share, self.beginnings = staged_share, beginnings
        length = self.codes.width
        if any(not 0 < count < length for count in beginnings):
            raise ValueError(f"beginnings must be from 1 to {length - 1} of {length} codes, got {beginnings}")
        self._rows = [batch_size, *(batch_size * length // count for count in beginnings)]  # of the passes
        self._order = torch.tensor(halton_order(*read_manifest(folder)["grid"]))
        self._stages = Stages(self._order, mask_schedule)
        self._shuffled = ShuffledRows(len(self.codes), seed) if draw == "shuffled" else None
        self._sampler = BalancedSampler(*self.labels.T) if draw == "balanced" else None

    @property
    def rows_per_pass(self) -> float:
        """Rows that a process sees in a forward pass, on average over whole rows and beginnings."""
        return sum(self._rows) / len(self._rows)

    def __call__(self, index: int, process: int = 0) -> dict[str, Tensor]:
        """Batch of forward pass `index` of a process, the same whenever it is asked for."""
        turn = index % len(self._rows)
        share = 1.0 if turn else self.staged_share
        batch = (self._shuffled_batch if self._shuffled else self._balanced_batch)(index, process, turn, share)
        if not turn:
            return batch
        first = self._order[: self.beginnings[turn - 1]]
        shortened = {name: batch[name][:, first] for name in ("codes", "hidden", "stages")}
        return {**batch, **shortened, "positions": first}

    def _balanced_batch(self, index: int, process: int, turn: int, staged_share: float) -> dict[str, Tensor]:
        rng = np.random.default_rng([self.seed, index, process])
        rows = self._sampler.draw(self._rows[turn], rng)
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        codes, classes, styles = self._read(rows)
        classes, styles = self.dropout.apply(classes, styles, generator)
        length = codes.shape[1]
        hidden = draw_groups(len(codes), length, generator, self.mask_schedule)
        batch = {"codes": codes, "hidden": hidden, "classes": classes, "styles": styles}
        if not staged_share:
            return batch
        return self._staged(batch, staged_share, *torch.rand(2, len(codes), generator=generator))

    def _shuffled_batch(self, index: int, process: int, turn: int, staged_share: float) -> dict[str, Tensor]:
        before = index // len(self._rows) * sum(self._rows) + sum(self._rows[:turn])  # rows of a process
        start = before * self.processes + process * self._rows[turn]
        codes, classes, styles = self._read(self._shuffled.take(start, self._rows[turn]))
        length = codes.shape[1]
        extra = 2 if staged_share else 0  # without staged rows all others stay what they are
        u = torch.from_numpy(uniforms_at(self.seed, start, len(codes), 2 + length + extra))
        classes, styles = self.dropout.drop(classes, styles, u[:, 0])
        hidden_share = mask_probabilities(self.mask_schedule, u[:, 1])
        hidden = u[:, 2 : 2 + length] < hidden_share[:, None]
        batch = {"codes": codes, "hidden": hidden, "classes": classes, "styles": styles}
        return self._staged(batch, staged_share, u[:, -2], u[:, -1]) if extra else batch

    def _staged(self, batch: dict[str, Tensor], share: float, chosen: Tensor, steps: Tensor) -> dict[str, Tensor]:
        """The batch with stages, given two uniforms a row: whether it is staged, and in how many steps."""
        stages = torch.where(chosen[:, None] < share, self._stages.at(steps), 0)
        return {**batch, "stages": stages}

    def _read(self, rows: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        codes = torch.from_numpy(self.codes.rows(rows).astype(np.int64))
        labels = torch.from_numpy(self.labels[rows].astype(np.int64))
        return codes, labels[:, 0], labels[:, 1]
