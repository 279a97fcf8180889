"""Trainings that the sharding tests start, one after the other: JSON [[folder, steps, kind, settings], ...]."""

import json
import sys

import torch
from accelerate.state import GradientState

from pgm.masked_transformer import MaskedTransformer, MaskedTransformerConfig
from pgm.objectives import training_loss
from pgm.partition_transformer import PartitionTransformer, PartitionTransformerConfig
from pgm.training import Trainer, TrainingConfig


def batch(index: int, process: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(100 * index + process)
    return {
        "codes": torch.randint(0, 12, (4, 16), generator=generator),
        "hidden": torch.rand(4, 16, generator=generator) < 0.5,
        "classes": torch.randint(-1, 5, (4,), generator=generator),
    }


def build(kind: str) -> torch.nn.Module:
    torch.manual_seed(0)
    sizes = {"width": 16, "heads": 2, "num_classes": 5, "dropout": 0.0}
    if kind == "masked":
        model = MaskedTransformer(MaskedTransformerConfig(codebook_size=12, grid=4, layers=2, **sizes))
    else:
        special, layers = {"vocab_size": 14, "mask_id": 12, "bos_id": 13}, {"encoder_layers": 2, "decoder_layers": 2}
        model = PartitionTransformer(PartitionTransformerConfig(length=16, **special, **layers, **sizes))
    for parameter in model.parameters():  # gates and heads that start at zero would hide mistakes
        torch.nn.init.normal_(parameter, std=0.2)
    return model


def loss(model: torch.nn.Module, rows: dict[str, torch.Tensor]) -> torch.Tensor:
    return training_loss(model, rows["codes"], rows["hidden"], rows["classes"])


def report(model: torch.nn.Module, folder: object, step: int) -> dict[str, float]:
    return {"weights": sum(p.numel() for p in model.parameters())}


def main() -> None:
    standard = {"lr": 3e-3, "warmup_steps": 2, "precision": "fp32", "log_every": 1, "ema_decay": 0.9, "steps": 8}
    for folder, steps, kind, settings in json.loads(sys.argv[1]):
        GradientState._reset_state()  # accelerate keeps the accumulation of the first run of a process
        Trainer(build(kind), loss, batch, TrainingConfig(**standard | settings), folder, report).run(until=steps)


if __name__ == "__main__":
    main()
