"""Training recipes by name: sizes of the model and how to train it. A recipe says how to run itself.

python -m pgm_image train --recipe emoji64 --data data/emoji64-codes --out runs/emoji64-pgm
"""

from dataclasses import dataclass
from typing import Any

from pgm.masked_transformer import MaskedTransformerConfig
from pgm.partition_transformer import PartitionTransformerConfig
from pgm.training import TrainingConfig

ModelConfig = PartitionTransformerConfig | MaskedTransformerConfig


@dataclass(frozen=True)
class Recipe:
    """What is trained, given the data, and how."""

    architecture: str  # "pgm" or "maskgit"
    sizes: dict[str, Any]
    training: TrainingConfig

    def model_config(self, grid: tuple[int, int], codebook_size: int, classes: int, styles: int) -> ModelConfig:
        """Config of the model for data with this grid, codebook and numbers of labels."""
        if self.architecture == "maskgit":
            if grid[0] != grid[1]:
                raise ValueError(f"the masked transformer needs a square grid of codes, got {grid}")
            return MaskedTransformerConfig(
                codebook_size=codebook_size, grid=grid[0], num_classes=classes, num_styles=styles, **self.sizes
            )
        return PartitionTransformerConfig(
            vocab_size=codebook_size + 2,
            length=grid[0] * grid[1],
            mask_id=codebook_size,
            bos_id=codebook_size + 1,
            num_classes=classes,
            num_styles=styles,
            **self.sizes,
        )


# Small models on a small set: a high rate, little decay of the averages, no dropout while the data is not yet learnt.
_EMOJI = TrainingConfig(
    steps=20_000,
    batch_size=32,
    lr=1e-3,
    warmup_steps=200,
    decay_share=0.4,
    lr_floor=0.02,
    betas=(0.9, 0.98),
    ema_decay=0.999,
    compile=True,
)

RECIPES = {
    "emoji64": Recipe(
        "pgm", {"width": 256, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}, _EMOJI
    ),
    "emoji64-maskgit": Recipe("maskgit", {"width": 256, "heads": 4, "layers": 4, "dropout": 0.0}, _EMOJI),
    "tiny": Recipe(
        "pgm",
        {"width": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0},
        TrainingConfig(steps=20, batch_size=4, lr=1e-3, warmup_steps=2, ema_decay=0.9, log_every=5, precision="no"),
    ),
}


def find_recipe(name: str) -> Recipe:
    """A recipe by name; ValueError listing all."""
    if name not in RECIPES:
        raise ValueError(f"recipe must be one of {', '.join(RECIPES)}, got {name!r}")
    return RECIPES[name]
