"""Training of a VQGAN (Esser et al. 2021, section 3.1): L1 + perceptual + commitment, later an adversarial term.

Runs on one process or many (`accelerate launch -m tokenizer train ...`). Every random draw of step k comes from
(seed, k), so a run resumed from a checkpoint continues as if it had never stopped.
"""

import json
import os
import signal
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import broadcast
from diffusers.training_utils import EMAModel
from torch import Tensor

from pgm.devices import resolve_precision
from tokenizer import discriminator as gan
from tokenizer import pixels
from tokenizer.balanced import BalancedSampler
from tokenizer.config import TokenizerConfig
from tokenizer.evaluate import Quality, evaluate
from tokenizer.perceptual import perceptual_loss
from tokenizer.quantizer import CodeUsage, EMACodebook
from tokenizer.schedule import falling, progress, warmup_cosine
from tokenizer.shards import ImageSplit
from tokenizer.train_config import TrainConfig
from tokenizer.vqgan import VQGAN


def _set_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = lr


class Trainer:
    """One training run in one folder: metrics.jsonl, checkpoint.pt, sheets/ and, at the end, export/."""

    def __init__(
        self,
        config: TrainConfig,
        model_config: TokenizerConfig,
        train: ImageSplit,
        held_out: ImageSplit,
        folder: str | Path,
        weights: VQGAN | None = None,
        drawn: np.ndarray | None = None,
    ) -> None:
        """`weights`: a trained model to go on from, in place, with fresh optimiser and averages.

        A checkpoint in `folder` wins over it. drawn: (N, h, w) code grids that a model drew with the codebook of
        `weights`: the adversarial term then judges their pictures too. Raises ValueError where it has no such term.
        """
        size = train.images.shape[1]
        if size != model_config.image_size:
            raise ValueError(f"images have {size} pixels a side, the tokenizer image_size={model_config.image_size}")
        self.accelerator = Accelerator()
        device = self.accelerator.device
        self.config = config = replace(config, precision=resolve_precision(config.precision, device))
        self.folder = Path(folder)
        with torch.random.fork_rng():
            torch.manual_seed(config.seed)
            model = VQGAN(model_config) if weights is None else weights.float()
            net = (
                None
                if config.gan_start is None
                else gan.make_discriminator(config.gan_network, size, config.gan_width, config.gan_layers)
            )
        model = model.train().to(device, memory_format=torch.channels_last)
        if config.freeze_encoder:
            model.encoder.requires_grad_(False)
            model.quant_conv.requires_grad_(False)
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=config.lr, betas=(0.9, 0.99), weight_decay=config.weight_decay)
        self.model = model
        self.wrapped, self.optimizer = self.accelerator.prepare(model, optimizer)
        self.ema = EMAModel(self._averaged(), decay=config.ema, use_ema_warmup=True, power=0.75, foreach=True)
        self.codebook = EMACodebook(model.quantizer, decay=config.codebook_decay)
        self.perceptual = perceptual_loss(config.perceptual)
        if self.perceptual is not None:
            self.perceptual.to(device)
        self.discriminator = self.gan_optimizer = None
        if net is not None:
            net = net.to(device, memory_format=torch.channels_last)
            judging = [p for p in net.parameters() if p.requires_grad]
            gan_optimizer = torch.optim.AdamW(judging, lr=config.gan_lr, betas=(0.5, 0.9))
            self.discriminator, self.gan_optimizer = self.accelerator.prepare(net, gan_optimizer)
        if drawn is not None:
            _check_drawn(drawn, config, model_config)
        self.images, self.drawn = train.images, drawn
        self.sampler = BalancedSampler(*train.labels.T)
        count = min(config.held_out_images, len(held_out))
        self.held_out = held_out.images[np.linspace(0, len(held_out) - 1, count).astype(int)]
        self.usage = CodeUsage(model_config.codebook_size)
        self.step, self.seconds, self.skipped, self.bad_in_a_row = 0, 0.0, 0, 0
        self.stop_requested = False
        if self.accelerator.is_main_process:
            (self.folder / "sheets").mkdir(parents=True, exist_ok=True)
            (self.folder / "train.json").write_text(json.dumps(asdict(config), indent=2) + "\n")
        if (self.folder / "checkpoint.pt").exists():
            self.load_checkpoint()

    def _averaged(self) -> list[Tensor]:
        # Only the decoder side is averaged: the encoder must stay the one the codebook follows.
        return [*self.model.post_quant_conv.parameters(), *self.model.decoder.parameters()]

    # ---- one step ----

    def batch(self) -> Tensor:
        """Images of the current step on this process, (B, 3, S, S) in [-1, 1]."""
        rng = np.random.default_rng([self.config.seed, self.step, self.accelerator.process_index])
        chosen = self.images[self.sampler.draw(self.config.batch_size, rng)]
        images = pixels.from_uint8(torch.from_numpy(chosen)).to(self.accelerator.device)
        return images.contiguous(memory_format=torch.channels_last)

    def train_step(self, images: Tensor) -> dict[str, Tensor]:
        """One optimiser step on (B, 3, S, S); returns scalar losses. A non-finite gradient changes nothing."""
        config = self.config
        adversarial = config.gan_start is not None and self.step >= config.gan_start
        rate = warmup_cosine(self.done, self.step, config.warmup_steps, config.lr_floor)
        _set_rate(self.optimizer, config.lr * rate)
        with self._autocast():
            output = self.wrapped(images, self._bypass(len(images)), self._drawn_codes(adversarial))
        error = output.images.float() - images
        losses = {"l1": error.abs().mean(), "commitment": output.commitment}
        losses["colour"] = cell_colour_loss(error, self.model.config.factor)
        with self._autocast():
            total = losses["l1"] + config.colour_weight * losses["colour"]
            if self.perceptual is not None:
                losses["perceptual"] = self.perceptual(output.images, images)
                total = total + config.perceptual_weight * losses["perceptual"]
            if adversarial:
                made = output.images if output.drawn is None else torch.cat((output.images, output.drawn))
                losses["generator"], weight = self._adversarial(made, total)
                total = total + weight * losses["generator"]
        if not config.freeze_encoder:
            total = total + config.commitment * output.commitment
        self.optimizer.zero_grad()
        self.accelerator.backward(total)
        norm = self.accelerator.clip_grad_norm_(self.model.parameters(), config.clip)
        if not torch.isfinite(norm):
            self._skip()
            return losses
        self.bad_in_a_row = 0
        self.optimizer.step()
        self.ema.step(self._averaged())
        if not config.freeze_encoder:
            generator = torch.Generator().manual_seed(config.seed * 1_000_003 + self.step)
            self.codebook.update(output.latents, output.codes, generator, self._sum, broadcast)
        self.usage.add(output.codes)
        if adversarial:
            _set_rate(self.gan_optimizer, config.gan_lr * rate)
            losses["discriminator"] = self._train_discriminator(images, made.detach())
        return {**losses, "gradient": norm}

    def _bypass(self, count: int) -> Tensor | None:
        share = falling(self.done, self.config.bypass, self.config.bypass_until)
        if self.config.freeze_encoder or share == 0:
            return None
        rng = np.random.default_rng([self.config.seed, self.step, self.accelerator.process_index, 1])
        return torch.from_numpy(rng.random(count) < share).to(self.accelerator.device)

    def _drawn_codes(self, adversarial: bool) -> Tensor | None:
        """As many drawn grids (B, h, w) as images, while they are judged."""
        if self.drawn is None or not adversarial:
            return None
        rng = np.random.default_rng([self.config.seed, self.step, self.accelerator.process_index, 2])
        chosen = self.drawn[rng.integers(len(self.drawn), size=self.config.batch_size)]
        return torch.from_numpy(chosen.astype(np.int64)).to(self.accelerator.device)

    def _moved(self, images: Tensor, turn: int) -> Tensor:
        """Images as the discriminator sees them in the generator's (0) or its own turn (1).

        It cannot learn few pictures by heart when they are moved about (arXiv 2006.10738).
        """
        most = self.config.gan_shift
        if not most:
            return images
        rng = np.random.default_rng([self.config.seed, self.step, self.accelerator.process_index, 3 + turn])
        return pixels.moved(images, torch.from_numpy(rng.integers(-most, most + 1, (len(images), 2))))

    def _adversarial(self, images: Tensor, reconstruction: Tensor) -> tuple[Tensor, Tensor | float]:
        # The bare module: this pass trains the decoder, and its gradients to the discriminator are thrown away.
        scores = self.accelerator.unwrap_model(self.discriminator)(self._moved(images, 0)).float()
        loss = gan.generator_loss(scores)
        if self.config.gan_weighting == "fixed":
            return loss, self.config.gan_weight
        last = self.model.decoder.conv_out.weight
        return loss, self.config.gan_weight * gan.adaptive_weight(reconstruction, loss, last)

    def _train_discriminator(self, real: Tensor, fake: Tensor) -> Tensor:
        with self._autocast():
            shown = self._moved(torch.cat([real, fake.to(real.dtype)]), 1)
            scores = self.discriminator(shown).float().split((len(real), len(fake)))
        loss = gan.discriminator_loss(*scores)
        self.gan_optimizer.zero_grad()
        self.accelerator.backward(loss)
        norm = self.accelerator.clip_grad_norm_(self.discriminator.parameters(), self.config.clip)
        if torch.isfinite(norm):
            self.gan_optimizer.step()
        return loss

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.accelerator.device.type, torch.bfloat16, enabled=self.config.precision == "bf16")

    def _sum(self, tensor: Tensor) -> Tensor:
        return self.accelerator.reduce(tensor, reduction="sum")

    def _skip(self) -> None:
        self.optimizer.zero_grad()
        self.skipped += 1
        self.bad_in_a_row += 1
        if self.bad_in_a_row >= self.config.max_bad_batches:
            self.save_checkpoint()
            raise FloatingPointError(
                f"stopped at step {self.step}: {self.bad_in_a_row} batches in a row gave a non-finite gradient; "
                f"lower lr={self.config.lr} or use precision='fp32'"
            )

    # ---- the run ----

    @property
    def done(self) -> float:
        """Share of the run completed, 0..1."""
        return progress(self.step, self.seconds, self.config.steps, self.config.minutes)

    def run(self) -> Path | None:
        """Train to the end and return the export folder, or None when SIGTERM asked to stop (state is saved)."""
        previous = signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stop_requested", True))
        last, saved, stop = time.monotonic(), time.monotonic(), False
        try:
            while self.done < 1 and not stop:
                losses = self.train_step(self.batch())
                self.step += 1
                now = time.monotonic()
                stop = self._agree(now - last)
                last = now
                if self.step % self.config.log_every == 0:
                    self.log({name: value.item() for name, value in losses.items()})
                if now - saved > 60 * self.config.save_minutes:
                    self.report()
                    self.save_checkpoint()
                    saved = time.monotonic()
            self.report()
            self.save_checkpoint()
        finally:
            signal.signal(signal.SIGTERM, previous)
        return self.export() if self.done >= 1 else None

    def _agree(self, seconds: float) -> bool:
        # All processes count the same time and stop at the same step, whichever of them was asked to.
        mine = torch.tensor([seconds, float(self.stop_requested)], device=self.accelerator.device)
        total = self._sum(mine)
        self.seconds += total[0].item() / self.accelerator.num_processes
        return total[1].item() > 0

    def log(self, values: dict[str, float]) -> None:
        """Append one line to metrics.jsonl."""
        if not self.accelerator.is_main_process:
            return
        line = {"step": self.step, "seconds": round(self.seconds, 1), "lr": self.optimizer.param_groups[0]["lr"]}
        line |= {name: round(value, 6) for name, value in values.items()}
        line |= {"revived": self.codebook.revived, "skipped": self.skipped}
        with open(self.folder / "metrics.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")

    def report(self) -> Quality:
        """Held-out quality with the averaged decoder, into the metrics, and a sheet: originals over reconstructions."""
        training_usage = {"train_usage": self.usage.usage, "train_perplexity": self.usage.perplexity}
        self.usage.reset()  # a new window begins
        self.ema.store(self._averaged())
        self.ema.copy_to(self._averaged())
        quality = evaluate(self.model, self.held_out)
        if self.accelerator.is_main_process:
            chosen = self.held_out[np.linspace(0, len(self.held_out) - 1, min(48, len(self.held_out))).astype(int)]
            images = pixels.from_uint8(torch.from_numpy(chosen))
            decoded = self.model.decode(self.model.encode(images)).cpu()
            pixels.sheet([images, decoded]).save(self.folder / "sheets" / f"{self.step:06d}.png")
        self.ema.restore(self._averaged())
        self.log({f"held_out_{name}": value for name, value in quality._asdict().items()} | training_usage)
        if self.accelerator.is_main_process:
            print(
                f"step {self.step}  {self.seconds / 60:.1f} min  held-out PSNR {quality.psnr:.2f} dB  "
                f"usage {quality.usage:.1%}  perplexity {quality.perplexity:.0f}",
                flush=True,
            )
        return quality

    # ---- files ----

    def save_checkpoint(self) -> None:
        """Everything needed to go on, written beside and then renamed, so a kill never leaves half a file."""
        if not self.accelerator.is_main_process:
            return
        state = {
            "model_config": self.model.config.to_dict(),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "ema": self.ema.state_dict(),
            "codebook": self.codebook.state_dict(),
            "usage": self.usage.histogram,
            "counters": {"step": self.step, "seconds": self.seconds, "skipped": self.skipped},
        }
        if self.discriminator is not None:
            state["discriminator"] = self.accelerator.unwrap_model(self.discriminator).state_dict()
            state["gan_optimizer"] = self.gan_optimizer.state_dict()
        path = self.folder / "checkpoint.pt"
        torch.save(state, path.with_suffix(".tmp"))
        os.replace(path.with_suffix(".tmp"), path)

    def load_checkpoint(self) -> None:
        """Continue from checkpoint.pt; ValueError when it belongs to another architecture."""
        state = torch.load(self.folder / "checkpoint.pt", map_location="cpu", weights_only=True)
        if TokenizerConfig.from_dict(state["model_config"]) != self.model.config:
            raise ValueError(f"the checkpoint in {str(self.folder)!r} was made with another tokenizer configuration")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.ema.load_state_dict(state["ema"])
        self.ema.to(self.accelerator.device)
        self.codebook.load_state_dict(state["codebook"])
        self.usage.histogram.copy_(state["usage"])
        self.step, self.seconds = state["counters"]["step"], state["counters"]["seconds"]
        self.skipped = state["counters"]["skipped"]
        self._forget_metrics_after(self.step)
        if self.discriminator is not None and "discriminator" in state:
            self.accelerator.unwrap_model(self.discriminator).load_state_dict(state["discriminator"])
            self.gan_optimizer.load_state_dict(state["gan_optimizer"])

    def _forget_metrics_after(self, step: int) -> None:
        path = self.folder / "metrics.jsonl"
        if path.exists() and self.accelerator.is_main_process:
            lines = [line for line in path.read_text().splitlines() if json.loads(line)["step"] <= step]
            path.write_text("".join(f"{line}\n" for line in lines))

    def export(self) -> Path:
        """Encoder, codebook and averaged decoder as a loadable folder."""
        folder = self.folder / "export"
        if self.accelerator.is_main_process:
            self.ema.store(self._averaged())
            self.ema.copy_to(self._averaged())
            self.model.save_pretrained(folder)
            self.ema.restore(self._averaged())
        self.accelerator.wait_for_everyone()
        return folder


def _check_drawn(drawn: np.ndarray, config: TrainConfig, model: TokenizerConfig) -> None:
    """ValueError for drawn grids that cannot be used."""
    side = model.image_size // model.factor
    if config.gan_start is None:
        raise ValueError("drawn codes are for the adversarial term: give gan_start as well")
    if not config.freeze_encoder:
        raise ValueError("drawn codes need a codebook that stays as it is: give freeze_encoder as well")
    if drawn.ndim != 3 or drawn.shape[1:] != (side, side) or not len(drawn):
        raise ValueError(f"drawn codes must be (N, {side}, {side}), at least one grid, got {drawn.shape}")
    if drawn.min() < 0 or drawn.max() >= model.codebook_size:
        raise ValueError(f"drawn codes must be in 0..{model.codebook_size - 1}, got {drawn.min()}..{drawn.max()}")


def cell_colour_loss(error: Tensor, factor: int) -> Tensor:
    """Mean absolute error of the mean colour of each code's cell, once in RGB and once more in its chroma.

    error: (B, 3, H, W) difference of images in [-1, 1]. Pixelwise L1 is dominated by edges and brightness; early on it
    leaves hues such as green and purple grey.
    """
    cells = F.avg_pool2d(error, factor)  # (B, 3, h, w)
    return cells.abs().mean() + (cells - cells.mean(dim=1, keepdim=True)).abs().mean()
