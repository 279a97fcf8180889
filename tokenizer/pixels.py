"""The one place where 8-bit pixels become network values and back: [-1, 1] is clipped and rounded, never truncated."""

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from tokenizer.image_files import to_rgb


def from_uint8(pixels: Tensor) -> Tensor:
    """pixels: (..., H, W, 3) uint8 -> (..., 3, H, W) float32 in [-1, 1]."""
    return pixels.movedim(-1, -3).float() / 127.5 - 1


def to_uint8(images: Tensor) -> Tensor:
    """images: (..., 3, H, W) float, nominally [-1, 1] -> (..., H, W, 3) uint8, clipped and rounded to nearest."""
    return ((images.float() + 1) * 127.5).clamp(0, 255).round().to(torch.uint8).movedim(-3, -1)


def from_pil(image: Image.Image) -> Tensor:
    """A picture of any mode, made upright RGB -> (3, H, W) float32 in [-1, 1]."""
    return from_uint8(torch.from_numpy(np.array(to_rgb(image))))


def to_pil(images: Tensor) -> list[Image.Image]:
    """images: (B, 3, H, W) float in [-1, 1] -> B RGB pictures."""
    return [Image.fromarray(array) for array in to_uint8(images).cpu().numpy()]


def sheet(rows: Sequence[Tensor], columns: int = 16) -> Image.Image:
    """Pictures above each other for comparison, e.g. original and reconstruction.

    rows: tensors of equal shape (B, 3, H, W) in [-1, 1]; each block of `columns` images shows one line per tensor.
    """
    stacked = torch.stack([to_uint8(row).cpu() for row in rows])  # (R, B, H, W, 3)
    blocks = []
    for start in range(0, stacked.shape[1], columns):
        block = stacked[:, start : start + columns]
        missing = columns - block.shape[1]
        if missing:
            block = torch.cat([block, block.new_full((len(rows), missing, *block.shape[2:]), 255)], 1)
        blocks.append(block.permute(0, 2, 1, 3, 4).flatten(2, 3).flatten(0, 1))  # (R*H, columns*W, 3)
    return Image.fromarray(torch.cat(blocks).numpy())


def moved(images: Tensor, offsets: Tensor) -> Tensor:
    """Each picture of (B, C, H, W) moved by its own offsets (B, 2), down and right in pixels, edges repeated."""
    height, width = images.shape[-2:]
    offsets = offsets.to(images.device)
    rows = (torch.arange(height, device=images.device) - offsets[:, :1]).clamp(0, height - 1)  # (B, H)
    columns = (torch.arange(width, device=images.device) - offsets[:, 1:]).clamp(0, width - 1)  # (B, W)
    which = torch.arange(len(images), device=images.device)[:, None, None]
    return images.permute(0, 2, 3, 1)[which, rows[:, :, None], columns[:, None]].permute(0, 3, 1, 2)
