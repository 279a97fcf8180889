"""Settings of a tokenizer training run, saved as train.json in the run's folder and shown as command-line options."""

from dataclasses import dataclass, field

from pgm.devices import check_precision
from tokenizer import discriminator
from tokenizer.perceptual import NETWORKS


def _option(default, text: str):
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class TrainConfig:
    """Give exactly one of `steps` and `minutes`."""

    steps: int | None = _option(None, "length of the run in optimiser steps, or")
    minutes: float | None = _option(None, "in minutes of training time, counted across resumes")
    batch_size: int = _option(16, "images per process and step")
    lr: float = _option(1e-3, "peak learning rate: linear warm-up, then cosine")
    lr_floor: float = _option(0.01, "last learning rate as a share of the peak")
    warmup_steps: int = _option(50, "steps of warm-up")
    weight_decay: float = _option(1e-4, "of AdamW")
    clip: float = _option(1.0, "largest norm of the gradient")
    ema: float = _option(0.998, "decay of the averaged decoder weights")
    commitment: float = _option(0.25, "weight of the commitment term, which moves only the encoder")
    perceptual: str = _option("mobilenet", f"network of the perceptual loss: {', '.join(NETWORKS)}")
    perceptual_weight: float = _option(0.1, "weight of the perceptual loss beside L1")
    colour_weight: float = _option(1.0, "weight of L1 between the mean colours of cells, which L1 alone learns last")
    gan_start: int | None = _option(None, "first step with the adversarial loss; without it there is none")
    gan_weight: float = _option(0.1, "weight of the adversarial loss")
    gan_weighting: str = _option("adaptive", "adaptive (gan_weight times the reconstruction's gradient norm) or fixed")
    gan_lr: float = _option(1e-4, "peak learning rate of the discriminator")
    gan_network: str = _option("patch", "discriminator: patch (of pixels) or mobilenet (of a fixed network's features)")
    gan_shift: int = _option(0, "most pixels by which what the discriminator sees is moved about")
    gan_width: int = _option(64, "channels of the discriminator's first layer")
    gan_layers: int = _option(3, "strided layers of the discriminator; each doubles the patch it judges")
    freeze_encoder: bool = _option(False, "train the decoder alone; codes made earlier stay valid")
    bypass: float = _option(0.5, "share of images decoded from unquantised latents at the start of the run")
    bypass_until: float = _option(0.6, "share of the run over which `bypass` falls to 0")
    codebook_decay: float = _option(0.99, "decay of the codebook's running means")
    precision: str = _option("auto", "bf16, fp32, or auto: bf16 where the device has it in hardware")
    seed: int = _option(0, "of initial weights and batches")
    max_bad_batches: int = _option(10, "batches in a row with a non-finite gradient before giving up")
    log_every: int = _option(20, "steps between lines of metrics.jsonl")
    save_minutes: float = _option(3.0, "between checkpoints, held-out evaluations and sample sheets")
    held_out_images: int = _option(256, "evaluated each time, spread evenly over the held-out split")

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise ValueError(f"give either steps or minutes, got steps={self.steps!r} and minutes={self.minutes!r}")
        for name in (
            "steps",
            "minutes",
            "batch_size",
            "lr",
            "clip",
            "gan_lr",
            "gan_width",
            "gan_layers",
            "max_bad_batches",
            "log_every",
            "save_minutes",
            "held_out_images",
        ):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive, got {value!r}")
        for name in (
            "warmup_steps",
            "weight_decay",
            "commitment",
            "perceptual_weight",
            "colour_weight",
            "gan_weight",
            "gan_shift",
        ):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be >= 0, got {getattr(self, name)!r}")
        for name in ("ema", "codebook_decay", "lr_floor", "bypass"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be in [0, 1), got {getattr(self, name)!r}")
        check_precision(self.precision)
        for name, allowed in (
            ("perceptual", NETWORKS),
            ("gan_weighting", discriminator.WEIGHTINGS),
            ("gan_network", discriminator.NETWORKS),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}")
