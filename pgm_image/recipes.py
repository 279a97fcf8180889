"""Training recipes by name: sizes of the model, how rows are drawn, how to train. A recipe says how to run itself.

python -m pgm_image train --recipe emoji64 --data data/emoji64-codes --out runs/emoji64-pgm
"""

from dataclasses import dataclass, field
from typing import Any

from pgm import recipes
from pgm.masked_transformer import MaskedTransformerConfig
from pgm.partition_transformer import PartitionTransformerConfig
from pgm.training import TrainingConfig
from pgm_image.code_batches import DRAWS, LabelDropout

ModelConfig = PartitionTransformerConfig | MaskedTransformerConfig
ARCHITECTURES = ("pgm", "maskgit")


@dataclass(frozen=True)
class Recipe:
    """What is trained, given the data, and how."""

    architecture: str  # "pgm" or "maskgit"
    sizes: dict[str, Any]
    training: TrainingConfig = field(default_factory=TrainingConfig)
    draw: str = "balanced"  # classes equally often, with replacement; "shuffled": every row once an epoch
    labels: LabelDropout = field(default_factory=LabelDropout)
    mask_schedule: str = "arccos"
    staged_share: float = 0.0  # of rows, staged along the Halton order instead of split into groups (pgm.partitioning)
    beginnings: tuple[int, ...] = ()  # passes of rows that end after so many codes (pgm_image.code_batches)
    epochs: int = 0  # stop after so many passes over the data, though the rate's schedule goes on; 0: at `steps`

    def __post_init__(self) -> None:
        for name, allowed in (("architecture", ARCHITECTURES), ("draw", DRAWS)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        if not 0 <= self.staged_share <= 1:
            raise ValueError(f"staged_share must be in [0, 1], got {self.staged_share!r}")
        for name, none in (("staged_share", 0), ("beginnings", ())):
            if (value := getattr(self, name)) and self.architecture != "pgm":
                raise ValueError(f"{name} must be {none} for {self.architecture}, got {value!r}")

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

    def last_step(self, rows: int, rows_per_step: int) -> int:
        """Where training stops on `rows` training rows: at `epochs` where given, at the end of the schedule at most."""
        if not self.epochs:
            return self.training.steps
        return min(self.training.steps, -(-self.epochs * rows // rows_per_step))


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
# The published ImageNet recipe (arXiv 2505.18883): AdamW at 1e-4, 256 rows a step, bf16 (here where
# the hardware has it), a schedule of a million steps that the released models leave after 100 epochs, about 500,000
# steps, before the rate falls. At 32 rows a pass eight GPUs make one pass a step, one GPU eight.
_IMAGENET = TrainingConfig(
    steps=1_000_000,
    batch_size=32,
    global_batch=256,
    lr=1e-4,
    warmup_steps=2500,
    decay_share=0.1,
    lr_floor=0.01,
    betas=(0.9, 0.999),
    weight_decay=0.03,
    clip=1.0,
    ema_decay=0.0,
    compile=False,
    save_minutes=30.0,
)
_IMAGENET_ROWS = {"draw": "shuffled", "labels": LabelDropout(both=0.1, style=0.0, label=0.0), "epochs": 100}


def _imagenet_pgm(encoder: int, decoder: int) -> Recipe:
    sizes = {"width": 1024, "heads": 16, "encoder_layers": encoder, "decoder_layers": decoder, "dropout": 0.1}
    return Recipe("pgm", sizes, _IMAGENET, **_IMAGENET_ROWS)


_TINY = TrainingConfig(steps=20, batch_size=4, lr=1e-3, warmup_steps=2, ema_decay=0.9, log_every=5, precision="fp32")
_TINY_SIZES = {"width": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}

RECIPES = {
    "emoji64": Recipe(
        "pgm", {"width": 256, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}, _EMOJI
    ),
    "emoji64-maskgit": Recipe("maskgit", {"width": 256, "heads": 4, "layers": 4, "dropout": 0.0}, _EMOJI),
    "imagenet256-pgm-12-12": _imagenet_pgm(12, 12),
    "imagenet256-pgm-14-10": _imagenet_pgm(14, 10),
    "imagenet256-maskgit-large": Recipe(
        "maskgit", {"width": 1024, "heads": 16, "layers": 24, "dropout": 0.1}, _IMAGENET, **_IMAGENET_ROWS
    ),
    "tiny": Recipe("pgm", _TINY_SIZES, _TINY),
}


def find_recipe(name: str) -> Recipe:
    """A recipe by name or from a JSON file, as `pgm.recipes.find_recipe`."""
    return recipes.find_recipe(name, RECIPES, Recipe)
