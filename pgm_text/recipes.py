"""Training recipes by name: sizes of the model, the algorithm, and how to train. A recipe says how to run itself.

python -m pgm_text train --recipe dictionary-pgm --data data/dictionary --out runs/dictionary-pgm

The three dictionary models have the same width and depth, see the same rows with the same masks in the same order, and
take the same number of steps. What differs is what the algorithm needs: PGM's GroupSwap (0.26 M parameters), RMDM's
wider condition (0.6 M). The condition of PGM and MDLM is a constant, so a narrow one loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pgm import recipes
from pgm.training import TrainingConfig

ARCHITECTURES = {"pgm": "partition-transformer", "scorer": "causal-transformer"}  # others: diffusion-transformer


@dataclass(frozen=True)
class TextRecipe:
    """What is trained, given the data, and how."""

    algorithm: str  # of `pgm_text.algorithms`, or "scorer"
    sizes: dict[str, Any]
    training: TrainingConfig = field(default_factory=TrainingConfig)
    smoothing: float = 0.3  # RMDM: share of fresh noise in z
    latent_dropout: float = 0.1  # RMDM: rows that lose their z

    def model_config(self, manifest: dict[str, Any], latent_width: int = 0) -> dict[str, Any]:
        """Config of the model for token shards with this manifest."""
        values = {
            "model_type": ARCHITECTURES.get(self.algorithm, "diffusion-transformer"),
            "vocab_size": manifest["vocab_size"],
            "length": manifest["grid"][1] - 1,  # BOS is not counted
            "mask_id": manifest["mask_id"],
            "bos_id": manifest["bos_id"],
            **self.sizes,
        }
        if values["model_type"] == "partition-transformer":
            values.setdefault("registers", 0)
        if latent_width:
            values["latent_width"] = latent_width
        return values


_DICTIONARY = TrainingConfig(
    steps=20_000,
    batch_size=32,
    lr=1e-3,
    warmup_steps=300,
    decay_share=0.4,
    lr_floor=0.02,
    betas=(0.9, 0.98),
    weight_decay=0.03,
    ema_decay=0.999,
    compile=True,
)
_TINY = TrainingConfig(steps=20, batch_size=8, lr=3e-3, warmup_steps=2, ema_decay=0.9, log_every=5, precision="fp32")
# MLP ratio 3 keeps three models in half precision below 40 MB. No dropout while the data is not yet learnt.
_WIDTH = {"width": 256, "heads": 4, "mlp_ratio": 3, "dropout": 0.0}
_SMALL = {"width": 32, "heads": 2, "dropout": 0.0}

RECIPES = {
    "dictionary-pgm": TextRecipe(
        "pgm", {**_WIDTH, "encoder_layers": 3, "decoder_layers": 3, "condition_width": 16}, _DICTIONARY
    ),
    "dictionary-mdlm": TextRecipe("mdlm", {**_WIDTH, "layers": 6, "condition_width": 16}, _DICTIONARY),
    "dictionary-complementary-mdlm": TextRecipe(
        "complementary-mdlm", {**_WIDTH, "layers": 6, "condition_width": 16}, _DICTIONARY
    ),
    "dictionary-rmdm": TextRecipe("rmdm", {**_WIDTH, "layers": 6, "condition_width": 64}, _DICTIONARY),
    # Left to right, for generative perplexity; never shipped as a generator.
    "dictionary-scorer": TextRecipe("scorer", {**_WIDTH, "layers": 6, "dropout": 0.1}, _DICTIONARY),
    "tiny-pgm": TextRecipe("pgm", {**_SMALL, "encoder_layers": 1, "decoder_layers": 1, "condition_width": 8}, _TINY),
    "tiny-mdlm": TextRecipe("mdlm", {**_SMALL, "layers": 2, "condition_width": 8}, _TINY),
    "tiny-complementary-mdlm": TextRecipe("complementary-mdlm", {**_SMALL, "layers": 2, "condition_width": 8}, _TINY),
    "tiny-rmdm": TextRecipe("rmdm", {**_SMALL, "layers": 2, "condition_width": 16}, _TINY),
    "tiny-scorer": TextRecipe("scorer", {**_SMALL, "layers": 2}, _TINY),
}


def find_recipe(name: str) -> TextRecipe:
    """A recipe by name or from a JSON file, as `pgm.recipes.find_recipe`."""
    return recipes.find_recipe(name, RECIPES, TextRecipe)
