"""Training loop on accelerate: one process or many, bf16, EMA, checkpoints that resume to the same result.

Whoever trains gives a model, a loss and a function from step number to batch; nothing else differs between images
and text. Because a batch depends on (seed, step, process) only, a run that was killed goes on as if it had not been.
"""

import json
import math
import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from diffusers.training_utils import EMAModel
from torch import Tensor, nn
from tqdm.auto import tqdm

from pgm import sharding
from pgm.devices import check_precision, resolve_precision
from pgm.kept_memory import keep_freed_memory
from pgm.models import load_model, save_model
from pgm.optimizers import make_optimizer, optimizer_names
from pgm.predictors import evaluating
from pgm.processes import process_state
from pgm.weights import config_dict, save_weights

Batch = dict[str, Tensor]
CHECKPOINT = "checkpoint.pt"  # of a run without `shard`
LARGE = 50_000_000  # parameters, from which an export is written as few files instead of many small ones


@dataclass(frozen=True)
class TrainingConfig:
    """How to train; saved as training.json in the run's folder. Defaults are the published image recipe."""

    steps: int = 1_000_000
    batch_size: int = 256  # per process and forward pass
    accumulation: int = 1  # forward passes per optimiser step
    global_batch: int = 0  # rows per optimiser step over all processes; 0: whatever the two above and they give
    optimizer: str = "adamw"  # or "muon" for the matrices of the layers, see `pgm.optimizers`
    lr: float = 1e-4
    warmup_steps: int = 2500
    decay_share: float = 0.1  # last share of the steps in which lr falls along a cosine ...
    lr_floor: float = 0.01  # ... until it is this share of its peak
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.03
    clip: float = 1.0  # largest gradient norm
    ema_decay: float = 0.0  # 0: no EMA
    precision: str = "auto"  # bf16 where the device has it in hardware, else fp32; or one of the two
    compile: bool = False
    shard: bool = False  # split parameters and optimiser over processes (FSDP) instead of a copy in each
    seed: int = 0
    log_every: int = 50  # steps
    save_minutes: float = 5.0  # between checkpoints and reports
    max_bad_batches: int = 10  # consecutive non-finite losses before giving up

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "accumulation", "lr", "log_every", "save_minutes", "max_bad_batches"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)!r}")
        if self.global_batch < 0:
            raise ValueError(f"global_batch must be >= 0, got {self.global_batch!r}")
        for name in ("decay_share", "lr_floor", "ema_decay"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)!r}")
        if self.optimizer not in optimizer_names():
            raise ValueError(f"optimizer must be one of {', '.join(optimizer_names())}, got {self.optimizer!r}")
        if self.optimizer != "adamw" and self.shard:
            raise ValueError(f"optimizer must be adamw with shard, got {self.optimizer!r}")
        check_precision(self.precision)

    def divided(self, processes: int) -> "TrainingConfig":
        """The same with `batch_size` (at most what it was) and `accumulation` that make up `global_batch` rows a step.

        Raises ValueError when they cannot be divided evenly.
        """
        if not self.global_batch:
            return self
        share, rest = divmod(self.global_batch, processes)
        if rest or not share:
            raise ValueError(
                f"global_batch must be a multiple of the number of processes, got {self.global_batch} for {processes}"
            )
        passes = next(n for n in range(1, share + 1) if share % n == 0 and share // n <= self.batch_size)
        return replace(self, batch_size=share // passes, accumulation=passes)


def learning_rate(config: TrainingConfig, step: int) -> float:
    """Linear warm-up from 0, constant, then a cosine to 0 over the last `decay_share`, held at `lr_floor * lr`."""
    if step < config.warmup_steps:
        return config.lr * step / config.warmup_steps
    start = config.steps * (1 - config.decay_share)
    if step <= start:
        return config.lr
    progress = min(1.0, (step - start) / (config.steps - start))
    return config.lr * max(config.lr_floor, (1 + math.cos(math.pi * progress)) / 2)


class Trainer:
    """One run in one folder: training.json, metrics.jsonl, a checkpoint and exported weights."""

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[[nn.Module, Batch], Tensor],
        batch: Callable[[int, int], Batch],
        config: TrainingConfig,
        folder: str | Path,
        report: Callable[[nn.Module, Path, int], dict[str, float]] | None = None,
    ):
        """loss(model, batch) -> scalar; batch(index, process) -> tensors, a pure function, where index counts forward
        passes; report(model, folder, step) is called with averaged weights at every checkpoint and returns metrics.

        Goes on from checkpoint.pt (or checkpoint.json with `shard`) when `folder` has one. Raises ValueError when it
        belongs to another model or was made with another `shard`, and for accelerate's own FSDP, whose place it takes.
        """
        if os.environ.get("ACCELERATE_USE_FSDP", "").lower() in ("1", "true", "yes"):
            raise ValueError("accelerate is set up for FSDP; launch it with --multi_gpu and give --shard here instead")
        self.folder, self.batch, self.loss, self.report = Path(folder), batch, loss, report
        own, other = (sharding.POINTER, CHECKPOINT) if config.shard else (CHECKPOINT, sharding.POINTER)
        if (self.folder / other).exists():
            asked = "with" if config.shard else "without"
            raise ValueError(
                f"{self.folder} holds {other}, which a run {asked} --shard cannot go on from; give another folder"
            )
        precision = resolve_precision(config.precision, process_state().device)
        self.config = config = replace(config, precision=precision)
        self.accelerator = Accelerator(
            mixed_precision="bf16" if precision == "bf16" else "no", gradient_accumulation_steps=config.accumulation
        )
        if self.accelerator.device.type == "cpu":
            keep_freed_memory()
        self.model = model.to(self.accelerator.device)
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        if config.shard:
            sharding.shard(model, self.accelerator.device)
        optimizer = make_optimizer(model, config.optimizer, config.lr, config.betas, config.weight_decay)
        if config.shard:
            self.wrapped, self.optimizer = model, optimizer
            if config.compile:
                model.compile()
        else:
            run = torch.compile(model) if config.compile else model
            self.wrapped, self.optimizer = self.accelerator.prepare(run, optimizer)
        self.ema = None
        if config.ema_decay:
            self.ema = EMAModel(model.parameters(), decay=config.ema_decay, foreach=True)
        self.step, self.seconds, self.skipped, self.bad_in_a_row = 0, 0.0, 0, 0
        self.losses: list[float] = []  # since the last line of metrics.jsonl
        self.stop_requested = False
        if self.accelerator.is_main_process:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "training.json").write_text(json.dumps(asdict(config), indent=2) + "\n")
        if (self.folder / own).exists():
            self.load_checkpoint()

    def train_step(self) -> float | None:
        """One optimiser step. Returns the mean loss over processes, or None for a skipped non-finite one."""
        config, total = self.config, 0.0
        # Dropout and label noise of a step depend on its number only, so that resuming changes nothing.
        set_seed((config.seed * 1_000_003 + self.step) % 2**31, device_specific=True)  # numpy takes 32 bits
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(config, self.step + 1)
        self.model.train()
        for part in range(config.accumulation):
            index = self.step * config.accumulation + part
            batch = {
                k: v.to(self.accelerator.device) for k, v in self.batch(index, self.accelerator.process_index).items()
            }
            if config.shard:
                self.wrapped.set_requires_gradient_sync(part == config.accumulation - 1)
            with self.accelerator.accumulate(self.wrapped):
                with self.accelerator.autocast():
                    loss = self.loss(self.wrapped, batch)
                self.accelerator.backward(loss)
                total = total + loss.detach() / config.accumulation
        norm = sharding.whole(self.accelerator.clip_grad_norm_(self.model.parameters(), config.clip))
        finite = bool(torch.isfinite(norm))
        if finite:
            self.optimizer.step()
            if self.ema:
                self.ema.step(self.model.parameters())
        self.optimizer.zero_grad()
        self.step += 1
        if not finite:
            self._count_bad_batch()
            return None
        self.bad_in_a_row = 0
        return self.accelerator.reduce(total, "mean").item()

    def _count_bad_batch(self) -> None:
        self.skipped += 1
        self.bad_in_a_row += 1
        if self.bad_in_a_row >= self.config.max_bad_batches:
            raise FloatingPointError(
                f"stopped at step {self.step}: {self.bad_in_a_row} batches in a row gave a non-finite gradient; "
                f"lower lr={self.config.lr} or use precision='fp32'"
            )

    def run(self, until: int | None = None) -> bool:
        """Train up to step `until` (default: all). Returns False when SIGTERM asked to stop. State is saved."""
        until = self.config.steps if until is None else until
        previous = signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stop_requested", True))
        earlier, began, saved = self.seconds, time.monotonic(), time.monotonic()
        bar = tqdm(total=until, initial=self.step, disable=not self.accelerator.is_main_process, mininterval=5)
        try:
            while self.step < until and not self.stop_requested:
                loss = self.train_step()
                self.seconds = earlier + time.monotonic() - began
                bar.update()
                if loss is not None:
                    self.losses.append(loss)
                if self.step % self.config.log_every == 0 and self.losses:
                    mean = sum(self.losses) / len(self.losses)
                    bar.set_postfix(loss=f"{mean:.3f}")
                    self.log({"loss": mean, "lr": self.optimizer.param_groups[0]["lr"], "skipped": self.skipped})
                    self.losses = []
                if self._agree(time.monotonic() - saved > 60 * self.config.save_minutes):
                    self.save_checkpoint()
                    saved = time.monotonic()
            self.save_checkpoint()
        finally:
            bar.close()
            signal.signal(signal.SIGTERM, previous)
        return not self.stop_requested

    def _agree(self, save_is_due: bool) -> bool:
        """Whether to save now. Clocks and signals differ between processes; all must save, and stop, at one step."""
        if self.accelerator.num_processes > 1:
            mine = [float(self.stop_requested), float(save_is_due and self.accelerator.is_main_process)]
            stop, save = self.accelerator.reduce(torch.tensor(mine, device=self.accelerator.device), "sum").tolist()
            self.stop_requested, save_is_due = bool(stop), bool(save)
        return save_is_due

    def log(self, values: dict[str, float]) -> None:
        """Append one line to metrics.jsonl."""
        if self.accelerator.is_main_process:
            line = {"step": self.step, "seconds": round(self.seconds, 1), **values}
            with open(self.folder / "metrics.jsonl", "a") as file:
                file.write(json.dumps(line) + "\n")

    def save_checkpoint(self) -> None:
        """Everything needed to go on, written beside and renamed so that a kill never leaves half a file."""
        progress = {name: getattr(self, name) for name in ("step", "seconds", "skipped", "losses")}
        if self.config.shard:
            progress["model_config"] = asdict(self.model.config)
            sharding.save_shards(self.folder, self.model, self.optimizer, self.ema, progress)
            self.export(self.folder / "export")
            if self.accelerator.is_main_process and self.report and not self.stop_requested:
                averaged = load_model(self.folder / "export", device=self.accelerator.device)
                self.log(self.report(averaged, self.folder, self.step))
        elif self.accelerator.is_main_process:
            state = {
                "model_config": asdict(self.model.config),
                "model": self.model.state_dict(),
                "optimizer_name": self.config.optimizer,
                "optimizer": self.optimizer.state_dict(),
                "ema": self.ema.state_dict() if self.ema else None,
                **progress,
            }
            path = self.folder / CHECKPOINT
            torch.save(state, path.with_suffix(".tmp"))
            os.replace(path.with_suffix(".tmp"), path)
            self.export(self.folder / "export")
            if self.report and not self.stop_requested:
                self.log(self._with_average(lambda: self.report(self.model, self.folder, self.step)))
        self.accelerator.wait_for_everyone()

    def load_checkpoint(self) -> None:
        """Go on from the checkpoint. Raises ValueError when it was made with another model config or optimiser."""
        path = self.folder / (sharding.POINTER if self.config.shard else CHECKPOINT)
        if self.config.shard:
            state = sharding.read_progress(self.folder)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
        if state["model_config"] != asdict(self.model.config):
            raise ValueError(f"{path} was made with another model config: {state['model_config']}")
        if (before := state.get("optimizer_name", "adamw")) != self.config.optimizer:
            raise ValueError(f"{path} was made with optimizer {before}, got {self.config.optimizer!r}")
        if self.config.shard:
            sharding.load_shards(self.folder, self.model, self.optimizer, self.ema)
        else:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            if self.ema and state["ema"]:
                self.ema.load_state_dict(state["ema"])
                self.ema.to(self.accelerator.device)
        self.step, self.seconds, self.skipped = state["step"], state["seconds"], state["skipped"]
        self.losses = state.get("losses", [])
        if self.accelerator.is_main_process:
            self._forget_metrics_after_checkpoint()

    def _forget_metrics_after_checkpoint(self) -> None:
        # A run killed between two checkpoints has logged steps that are now made again.
        path = self.folder / "metrics.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= self.step]
        if len(kept) < len(lines):
            path.with_suffix(".tmp").write_text("".join(kept))
            os.replace(path.with_suffix(".tmp"), path)

    def export(self, folder: str | Path, dtype: torch.dtype | None = None) -> None:
        """Write averaged weights (or the raw ones without EMA) as a model folder; under `shard` all must call."""
        max_shard = "2GB" if self.parameters > LARGE else None
        if self.config.shard:
            weights = sharding.whole_weights(self.model, self.ema)
            if self.accelerator.is_main_process:
                save_weights(folder, weights, config_dict(self.model.config), dtype, max_shard)
        else:
            self._with_average(lambda: save_model(self.model, folder, dtype, max_shard))

    def _with_average(self, function: Callable[[], Any]) -> Any:
        if not self.ema:
            return function()
        self.ema.store(self.model.parameters())
        self.ema.copy_to(self.model.parameters())
        try:
            return function()
        finally:
            self.ema.restore(self.model.parameters())


def mean_loss(model: nn.Module, batch: Batch, loss: Callable[[nn.Module, Batch], Tensor], size: int = 32) -> float:
    """Loss of a fixed batch without gradients and dropout, in parts of `size` rows."""
    device = next(model.parameters()).device
    rows = len(next(iter(batch.values())))
    with evaluating(model):
        losses = [
            loss(model, {k: v[i : i + size].to(device) for k, v in batch.items()}).item() for i in range(0, rows, size)
        ]
    return sum(losses) / len(losses)
