"""z_0 of every row of a corpus on disk: latents-<split>.npy float16 (rows, K), beside their representation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor


def write_latents(folder: str | Path, split: str, z: Tensor) -> None:
    """Write z (rows, K) of a split."""
    np.save(Path(folder) / f"latents-{split}.npy", z.cpu().numpy().astype(np.float16))


def read_latents(folder: str | Path, split: str) -> Tensor:
    """z_0 of a split, (rows, K) float16, in the order of the token rows. Raises ValueError where there is none."""
    path = Path(folder) / f"latents-{split}.npy"
    if not path.is_file():
        raise ValueError(f"{path} is missing; `python -m pgm_text fit-representation` writes it")
    return torch.from_numpy(np.load(path))
