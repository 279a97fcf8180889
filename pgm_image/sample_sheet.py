"""A sheet of samples while training: some classes down, all styles across, always the same seeds."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from pgm.models import make_predictor
from pgm.noise import draw_noise
from pgm.sampling import SamplingConfig, sample
from tokenizer.pixels import sheet
from tokenizer.vqgan import VQGAN


def write_sample_sheet(
    model: nn.Module, tokenizer: str | Path, manifest: dict[str, Any], path: Path, rows: int = 8, guidance: float = 2.0
) -> None:
    """Generate `rows` evenly spaced classes in every style (12 steps, Halton) and save a PNG at `path`."""
    vqgan = VQGAN.from_pretrained(tokenizer)
    grid, styles = tuple(manifest["grid"]), max(1, len(manifest["styles"]))
    device = next(model.parameters()).device
    picked = torch.linspace(0, len(manifest["classes"]) - 1, rows).long()
    classes = picked.repeat_interleave(styles).to(device)
    style_ids = torch.arange(styles).repeat(rows).to(device)
    nulls = torch.full_like(classes, -1)
    with torch.no_grad():
        conditions = model.condition(classes, style_ids), model.condition(nulls, nulls)
    noise = draw_noise(list(range(len(classes))), grid[0] * grid[1])
    config = SamplingConfig(steps=12, guidance_scale=guidance)
    for last in sample(make_predictor(model, *conditions), noise, grid, config, device):
        codes = last.codes
    pictures = vqgan.decode(codes.cpu().reshape(-1, *grid))
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet(list(pictures.split(styles)), columns=styles).save(path)
