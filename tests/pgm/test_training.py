"""The training loop: resuming gives the uninterrupted run, broken batches are skipped, averages are exported."""

import json
import math
import os
import signal

import pytest
import torch

from pgm.models import load_model
from pgm.objectives import training_loss
from pgm.training import Trainer, TrainingConfig, learning_rate

pytestmark = pytest.mark.usefixtures("own_accelerator_state")
TINY = {"lr": 3e-3, "warmup_steps": 2, "precision": "fp32", "log_every": 3, "batch_size": 4}


def batch_of(size=4, bad=(), stop_at=None):
    """Batches that depend on their index only; `bad` ones carry NaN; at `stop_at` the process is asked to stop."""

    def batch(index, process):
        if index == stop_at:
            os.kill(os.getpid(), signal.SIGTERM)
        generator = torch.Generator().manual_seed(100 * index + process)
        codes = torch.randint(0, 12, (size, 16), generator=generator)
        hidden = torch.rand(size, 16, generator=generator) < 0.5
        classes = torch.randint(-1, 5, (size,), generator=generator)
        weight = torch.full((size,), math.nan if index in bad else 1.0)
        return {"codes": codes, "hidden": hidden, "classes": classes, "weight": weight}

    return batch


def loss_of(model, batch):
    return training_loss(model, batch["codes"], batch["hidden"], batch["classes"]) * batch["weight"].mean()


@pytest.fixture(params=["partition", "masked"])
def trainer(request, partition, masked, tmp_path):
    """trainer(folder, batches, **config) -> a Trainer of a tiny model with dropout."""
    make = {"partition": partition, "masked": masked}[request.param]

    def build(name="run", batches=None, seed=0, report=None, dropout=0.1, run_seed=0, **config):
        settings = TrainingConfig(**{**TINY, "steps": 8, "seed": run_seed, **config})
        model = make(seed, dropout=dropout)
        return Trainer(model, loss_of, batches or batch_of(), settings, tmp_path / name, report)

    return build


def metrics(trainer):
    lines = [json.loads(line) for line in (trainer.folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def assert_same_state(first, second):
    for a, b in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(a, b)
    if first.ema:
        assert all(torch.equal(a, b) for a, b in zip(first.ema.shadow_params, second.ema.shadow_params, strict=True))
    moments = [trainer.optimizer.state_dict()["state"] for trainer in (first, second)]
    assert all(torch.equal(moments[0][key]["exp_avg"], moments[1][key]["exp_avg"]) for key in moments[0])
    assert (first.step, first.skipped, first.losses) == (second.step, second.skipped, second.losses)


@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
@pytest.mark.parametrize("cut", [3, 4])
def test_a_resumed_run_equals_an_uninterrupted_one(trainer, ema_decay, cut):
    whole = trainer("whole", ema_decay=ema_decay)
    assert whole.run() is True
    first = trainer("cut", ema_decay=ema_decay)
    assert first.run(until=cut) is True and first.step == cut
    second = trainer("cut", seed=1, ema_decay=ema_decay)  # other weights at first: the checkpoint decides
    assert second.step == cut and second.run() is True
    assert_same_state(whole, second)
    assert metrics(whole) == metrics(second)


def test_resuming_under_bf16(trainer):
    whole = trainer("whole", precision="bf16")
    whole.run()
    trainer("cut", precision="bf16").run(until=4)
    second = trainer("cut", precision="bf16")
    second.run()
    assert_same_state(whole, second)
    assert {parameter.dtype for parameter in second.model.parameters()} == {torch.float32}


@pytest.mark.parametrize(("in_hardware", "computed"), [(True, "bf16"), (False, "fp32")])
def test_a_run_writes_down_which_precision_the_device_had_it_compute_in(trainer, monkeypatch, in_hardware, computed):
    monkeypatch.setattr("pgm.devices.has_bfloat16", lambda device: in_hardware)
    run = trainer(precision="auto", steps=2)
    run.run()
    assert run.accelerator.mixed_precision == {"bf16": "bf16", "fp32": "no"}[computed]
    assert json.loads((run.folder / "training.json").read_text())["precision"] == computed


def test_resuming_with_muon(trainer):
    whole = trainer("whole", optimizer="muon")
    whole.run()
    trainer("cut", optimizer="muon").run(until=4)
    second = trainer("cut", seed=1, optimizer="muon")
    second.run()
    for a, b in zip(whole.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert metrics(whole) == metrics(second)
    with pytest.raises(ValueError, match="was made with optimizer muon, got 'adamw'"):
        trainer("cut")


def test_sigterm_saves_and_says_so(trainer):
    handler = signal.getsignal(signal.SIGTERM)
    whole = trainer("whole")
    whole.run()
    stopped = trainer("stopped", batch_of(stop_at=5))
    assert stopped.run() is False and stopped.step == 6  # the step under way is finished
    assert signal.getsignal(signal.SIGTERM) == handler
    second = trainer("stopped")
    assert second.step == 6 and second.run() is True
    assert_same_state(whole, second)


def test_a_bad_batch_is_skipped_and_counted(trainer):
    run = trainer(batches=batch_of(bad={2}), ema_decay=0.9)
    before = None
    for step in range(4):
        if step == 2:
            before = [parameter.clone() for parameter in run.model.parameters()]
        loss = run.train_step()
        assert (loss is None) is (step == 2)
        if step == 2:
            assert all(torch.equal(a, b) for a, b in zip(before, run.model.parameters(), strict=True))
    assert run.skipped == 1 and run.bad_in_a_row == 0 and run.step == 4
    assert all(parameter.isfinite().all() for parameter in run.model.parameters())
    assert all(parameter.isfinite().all() for parameter in run.ema.shadow_params)
    assert any(not torch.equal(a, b) for a, b in zip(before, run.model.parameters(), strict=True))


def test_skipped_batches_are_reported(trainer):
    run = trainer(batches=batch_of(bad={1, 2}))
    run.run()
    assert [line["skipped"] for line in metrics(run)] == [2, 2]
    assert all(math.isfinite(line["loss"]) for line in metrics(run))


def test_training_stops_after_too_many_bad_batches_in_a_row(trainer):
    run = trainer(batches=batch_of(bad={1, 3, 4, 5}), max_bad_batches=3)
    with pytest.raises(FloatingPointError, match=r"stopped at step 6: 3 batches in a row .*lower lr=0.003"):
        run.run()
    assert all(parameter.isfinite().all() for parameter in run.model.parameters())


def test_the_average_is_exported_and_the_raw_weights_stay(trainer):
    run = trainer(ema_decay=0.5)
    run.run()
    raw = [parameter.clone() for parameter in run.model.parameters()]
    run.export(run.folder / "again")
    for folder in ("export", "again"):
        exported = list(load_model(run.folder / folder).parameters())
        assert all(torch.equal(a, b) for a, b in zip(exported, run.ema.shadow_params, strict=True))
        assert any(not torch.equal(a, b) for a, b in zip(exported, raw, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(run.model.parameters(), raw, strict=True))


def test_the_average_follows_its_formula(trainer):
    run = trainer(ema_decay=0.5)
    average = [parameter.clone() for parameter in run.model.parameters()]
    for step in range(4):
        run.train_step()
        decay = min(0.5, (1 + step) / (10 + step)) if step else 0.0  # young averages forget faster
        average = [a * decay + p * (1 - decay) for a, p in zip(average, run.model.parameters(), strict=True)]
    for mine, theirs in zip(average, run.ema.shadow_params, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_reports_see_averaged_weights_and_end_in_the_metrics(trainer):
    seen = []

    def report(model, folder, step):
        seen.append([parameter.clone() for parameter in model.parameters()])
        return {"held_out_loss": 1.5}

    run = trainer(report=report, ema_decay=0.5)
    run.run()
    assert len(seen) == 1 and metrics(run)[-1] == {"step": 8, "held_out_loss": 1.5}
    assert all(torch.equal(a, b) for a, b in zip(seen[0], run.ema.shadow_params, strict=True))


def test_without_average_the_raw_weights_are_exported_also_in_half_precision(trainer):
    run = trainer()
    run.run(until=3)
    run.export(run.folder / "half", torch.float16)
    for folder, cast in (("export", torch.float32), ("half", torch.float16)):
        for a, b in zip(load_model(run.folder / folder).parameters(), run.model.parameters(), strict=True):
            assert torch.equal(a, b.to(cast).float())


def test_accumulation_equals_a_bigger_batch(trainer):
    def bigger(index, process):
        parts = [batch_of(4)(2 * index + part, process) for part in (0, 1)]
        return {key: torch.cat([part[key] for part in parts]) for key in parts[0]}

    small = trainer("small", batch_of(4), accumulation=2, dropout=0.0)
    big = trainer("big", bigger, dropout=0.0)
    for _ in range(3):
        assert small.train_step() == pytest.approx(big.train_step(), rel=1e-4)
    change = [(a - b).abs().max().item() for a, b in zip(small.model.parameters(), big.model.parameters(), strict=True)]
    assert max(change) < 0.1 * TINY["lr"]


def test_a_failed_save_leaves_the_last_checkpoint(trainer, monkeypatch):
    run = trainer()
    run.run(until=3)

    def full_disk(state, path):
        path.write_bytes(b"half a file")
        raise OSError("No space left on device")

    monkeypatch.setattr(torch, "save", full_disk)
    with pytest.raises(OSError, match="No space left"):
        run.run(until=5)
    monkeypatch.undo()
    assert trainer().step == 3


def test_a_checkpoint_of_another_model_is_refused(trainer):
    trainer().run(until=1)
    with pytest.raises(ValueError, match="checkpoint.pt was made with another model config"):
        trainer(dropout=0.2)


def test_training_lowers_the_loss(trainer):
    always_the_same = batch_of()
    run = trainer(batches=lambda index, process: always_the_same(0, process), steps=40, dropout=0.0)
    first = run.train_step()
    run.run()
    assert metrics(run)[-1]["loss"] < 0.8 * first
    assert metrics(run)[-1]["lr"] < 0.2 * TINY["lr"]  # the last tenth decays


@pytest.mark.parametrize("seed", [0, 5000, 2**40])
def test_any_seed_works_and_decides_the_dropout(trainer, seed):
    losses = [trainer(f"run{i}", run_seed=seed + i // 2).train_step() for i in range(3)]
    assert losses[0] == losses[1] != losses[2]


def test_learning_rate():
    config = TrainingConfig(steps=100, lr=1.0, warmup_steps=10, decay_share=0.2, lr_floor=0.05)
    assert [learning_rate(config, step) for step in (0, 5, 10, 50, 80)] == [0, 0.5, 1, 1, 1]
    assert learning_rate(config, 90) == pytest.approx(0.5)
    assert learning_rate(config, 100) == learning_rate(config, 1000) == 0.05
    steady = TrainingConfig(steps=10, lr=1.0, warmup_steps=0, decay_share=0.0)
    assert [learning_rate(steady, step) for step in (0, 10)] == [1, 1]


def test_defaults_are_the_published_recipe_without_compilation(trainer):
    config = TrainingConfig()
    assert config.compile is False and config.precision == "auto" and config.betas == (0.9, 0.999)
    assert (config.lr, config.weight_decay, config.clip, config.ema_decay) == (1e-4, 0.03, 1.0, 0.0)
    run = trainer()
    assert run.wrapped is run.model
    saved = json.loads((run.folder / "training.json").read_text())
    assert saved["lr"] == 3e-3 and saved["compile"] is False


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps must be positive, got 0"),
        ({"lr": -1e-4}, "lr must be positive, got -0.0001"),
        ({"lr": math.nan}, "lr must be positive, got nan"),
        ({"ema_decay": 1.5}, r"ema_decay must be in \[0, 1\], got 1.5"),
        ({"precision": "fp16"}, "precision must be one of auto, bf16, fp32, got 'fp16'"),
        ({"optimizer": "sgd"}, "optimizer must be one of adamw, muon, got 'sgd'"),
        ({"optimizer": "muon", "shard": True}, "optimizer must be adamw with shard, got 'muon'"),
    ],
)
def test_bad_settings_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        TrainingConfig(**changes)
