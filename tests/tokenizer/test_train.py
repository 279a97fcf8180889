"""Training: it learns, resumes to the same result, survives bad batches, and keeps codes valid when told to."""

import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from tokenizer import VQGAN
from tokenizer.evaluate import evaluate, psnr
from tokenizer.schedule import falling, progress, warmup_cosine
from tokenizer.shards import ImageSplit
from tokenizer.train import Trainer
from tokenizer.train_config import TrainConfig

QUICK = TrainConfig(steps=8, batch_size=4, perceptual="none", precision="fp32", warmup_steps=2, log_every=1)
WITH_GAN = replace(QUICK, gan_start=2, gan_width=4, gan_layers=2)
WITH_DRAWN = replace(WITH_GAN, freeze_encoder=True, gan_shift=2)
DRAWN = np.random.default_rng(0).integers(0, 16, (9, 4, 4)).astype(np.uint16)


def lines(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def stop_at(trainer: Trainer, step: int) -> None:
    """Send ourselves SIGTERM while that step runs."""
    batch = trainer.batch

    def batch_and_signal() -> torch.Tensor:
        if trainer.step == step:
            os.kill(os.getpid(), signal.SIGTERM)
        return batch()

    trainer.batch = batch_and_signal


def weights(folder) -> dict[str, torch.Tensor]:
    return VQGAN.from_pretrained(folder).state_dict()


def test_training_learns_the_pictures(config, split, tmp_path):
    black_and_white = ((split.images[..., :1] > 127) * np.full(3, 255)).astype(np.uint8)
    split = ImageSplit(black_and_white, split.labels)
    settings = replace(QUICK, steps=60, lr=5e-3, log_every=40)
    trainer = Trainer(settings, config, split, split, tmp_path)
    before = evaluate(trainer.model, split.images)
    after = evaluate(VQGAN.from_pretrained(trainer.run()), split.images)
    assert after.psnr > before.psnr + 4
    assert after.l1 < before.l1 / 2


@pytest.mark.parametrize(
    "settings, drawn", [(QUICK, None), (WITH_GAN, None), (WITH_DRAWN, DRAWN)], ids=["plain", "gan", "drawn"]
)
def test_a_killed_run_resumes_to_the_same_result(settings, drawn, config, split, tmp_path):
    if settings.gan_start is not None:
        pytest.importorskip("taming")
    whole = Trainer(settings, config, split, split, tmp_path / "whole", drawn=drawn).run()
    killed = Trainer(settings, config, split, split, tmp_path / "killed", drawn=drawn)
    stop_at(killed, 4)
    assert killed.run() is None and killed.step == 5
    resumed = Trainer(settings, config, split, split, tmp_path / "killed", drawn=drawn)
    assert resumed.step == 5
    export = resumed.run()
    expected = weights(whole)
    for name, value in weights(export).items():
        assert torch.equal(value, expected[name]), name
    for one, other in zip(lines(tmp_path / "whole"), lines(tmp_path / "killed")[:5], strict=False):
        assert one | {"seconds": 0} == other | {"seconds": 0}


def test_a_stopped_run_leaves_no_half_file_and_the_old_signal_handler(config, split, tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    trainer = Trainer(QUICK, config, split, split, tmp_path)
    stop_at(trainer, 0)
    trainer.run()
    assert signal.getsignal(signal.SIGTERM) is before
    assert not list(tmp_path.glob("*.tmp"))
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert state["counters"]["step"] == 1


def test_metrics_logged_after_the_checkpoint_are_written_once(config, split, tmp_path):
    trainer = Trainer(QUICK, config, split, split, tmp_path)
    stop_at(trainer, 2)
    trainer.run()
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"step": 7}\n')  # from a run that died before its next checkpoint
    Trainer(QUICK, config, split, split, tmp_path).run()
    steps = [line["step"] for line in lines(tmp_path) if "l1" in line]
    assert steps == list(range(1, 9))


def test_a_bad_batch_is_skipped_counted_and_changes_nothing(config, split, tmp_path):
    trainer = Trainer(QUICK, config, split, split, tmp_path)
    trainer.train_step(trainer.batch())
    before = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    counts = trainer.codebook.counts.clone()
    for bad in (float("nan"), float("inf")):
        images = trainer.batch()
        images[0, 0, 0, 0] = bad
        trainer.train_step(images)
    assert trainer.skipped == 2
    assert all(torch.equal(value, before[name]) for name, value in trainer.model.state_dict().items())
    assert torch.equal(trainer.codebook.counts, counts)
    trainer.train_step(trainer.batch())
    assert trainer.bad_in_a_row == 0 and trainer.skipped == 2
    assert all(value.isfinite().all() for value in trainer.model.state_dict().values())


def test_too_many_bad_batches_in_a_row_end_the_run_with_a_reason(config, split, tmp_path):
    trainer = Trainer(replace(QUICK, max_bad_batches=3), config, split, split, tmp_path)
    images = torch.full((4, 3, 16, 16), float("nan"))
    trainer.batch = lambda: images
    with pytest.raises(FloatingPointError, match="3 batches in a row"):
        trainer.run()
    assert (tmp_path / "checkpoint.pt").exists()


def test_fine_tuning_the_decoder_keeps_the_codes(model, config, split, tmp_path):
    pytest.importorskip("taming")
    model.save_pretrained(tmp_path / "start")
    settings = replace(WITH_GAN, gan_start=0, freeze_encoder=True, lr=1e-2, ema=0.5)
    start = VQGAN.from_pretrained(tmp_path / "start")
    export = Trainer(settings, config, split, split, tmp_path / "run", start).run()
    tuned = VQGAN.from_pretrained(export)
    assert tuned.codes_hash() == model.codes_hash()
    images = torch.rand(2, 3, 16, 16) * 2 - 1
    assert torch.equal(tuned.encode(images), model.encode(images))
    assert not torch.equal(tuned.decoder.conv_out.weight, model.decoder.conv_out.weight)
    assert all(np.isfinite(line["discriminator"]) for line in lines(tmp_path / "run") if "l1" in line)


def test_drawn_codes_are_judged_beside_the_reconstructions(model, config, split, tmp_path):
    pytest.importorskip("taming")
    settings = replace(WITH_DRAWN, gan_start=1)
    trainer = Trainer(settings, config, split, split, tmp_path, model, DRAWN)
    shown = []
    judge = trainer._adversarial
    trainer._adversarial = lambda made, total: shown.append(made) or judge(made, total)
    trainer.train_step(trainer.batch())
    trainer.step += 1
    assert not shown  # not before gan_start
    expected = model.decode(trainer._drawn_codes(True))
    trainer.train_step(trainer.batch())
    (made,) = shown
    assert made.shape == (2 * settings.batch_size, 3, 16, 16) and made.requires_grad
    torch.testing.assert_close(made[settings.batch_size :].detach().clamp(-1, 1), expected)


@pytest.mark.parametrize(
    "drawn, fields, says",
    [
        (DRAWN, {"gan_start": None}, "gan_start"),
        (DRAWN, {"freeze_encoder": False}, "freeze_encoder"),
        (DRAWN[:, :3], {}, r"must be \(N, 4, 4\), at least one grid, got \(9, 3, 4\)"),
        (DRAWN[:0], {}, "at least one grid"),
        (DRAWN + 1, {}, r"must be in 0\.\.15, got 1\.\.16"),
    ],
)
def test_drawn_codes_that_cannot_be_used_are_refused(drawn, fields, says, config, split, tmp_path):
    with pytest.raises(ValueError, match=says):
        Trainer(replace(WITH_DRAWN, **fields), config, split, split, tmp_path, drawn=drawn)


def test_a_run_leaves_metrics_settings_and_a_sheet(config, split, tmp_path):
    Trainer(replace(QUICK, steps=3), config, split, split, tmp_path).run()
    *steps, report = lines(tmp_path)
    assert [line["step"] for line in steps] == [1, 2, 3]
    assert {"l1", "commitment", "gradient", "lr", "skipped", "revived"} <= set(steps[0])
    assert {"held_out_psnr", "held_out_usage", "held_out_perplexity", "train_usage"} <= set(report)
    assert json.loads((tmp_path / "train.json").read_text())["steps"] == 3
    assert Image.open(tmp_path / "sheets" / "000003.png").size == (16 * 16, 4 * 16)  # 24 pictures in two blocks


def test_fewer_and_fewer_images_bypass_the_codebook(config, split, tmp_path):
    trainer = Trainer(replace(QUICK, steps=100, bypass=0.5, bypass_until=0.5), config, split, split, tmp_path)
    shares = []
    for start in (0, 25):
        trainer.step = start
        shares.append(trainer._bypass(4000).float().mean().item())
    assert shares == pytest.approx([0.5, 0.25], abs=0.03)
    trainer.step = 50
    assert trainer._bypass(4) is None


def test_a_run_measured_in_minutes_ends_by_the_clock(config, split, tmp_path):
    trainer = Trainer(replace(QUICK, steps=None, minutes=0.01), config, split, split, tmp_path)
    assert trainer.run() is not None
    assert trainer.seconds >= 0.6 and trainer.step >= 1


def test_bfloat16_training_stays_finite_in_float32_weights(config, split, tmp_path):
    trainer = Trainer(replace(QUICK, precision="bf16"), config, split, split, tmp_path)
    trainer.run()
    assert all(value.dtype == torch.float32 and value.isfinite().all() for value in trainer.model.parameters())


@pytest.mark.parametrize(("in_hardware", "computed"), [(True, "bf16"), (False, "fp32")])
def test_a_run_writes_down_which_precision_the_device_had_it_compute_in(
    config, split, tmp_path, monkeypatch, in_hardware, computed
):
    monkeypatch.setattr("pgm.devices.has_bfloat16", lambda device: in_hardware)
    trainer = Trainer(replace(QUICK, precision="auto"), config, split, split, tmp_path)
    assert trainer._autocast()._enabled is in_hardware
    assert json.loads((tmp_path / "train.json").read_text())["precision"] == computed


def test_the_initial_weights_follow_the_seed_and_leave_the_global_generator_alone(config, split, tmp_path):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    one = Trainer(QUICK, config, split, split, tmp_path / "a").model.codes_hash()
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(6)
    assert Trainer(QUICK, config, split, split, tmp_path / "b").model.codes_hash() == one
    assert Trainer(replace(QUICK, seed=1), config, split, split, tmp_path / "c").model.codes_hash() != one


def test_pictures_or_checkpoints_of_another_size_are_refused(config, split, tmp_path):
    with pytest.raises(ValueError, match="16 pixels a side, the tokenizer image_size=32"):
        Trainer(QUICK, replace(config, image_size=32), split, split, tmp_path)
    Trainer(QUICK, config, split, split, tmp_path).save_checkpoint()
    with pytest.raises(ValueError, match="another tokenizer configuration"):
        Trainer(QUICK, replace(config, codebook_size=32), split, split, tmp_path)
    empty = ImageSplit(split.images[:0], split.labels[:0])
    with pytest.raises(ValueError, match="empty split"):
        Trainer(QUICK, config, empty, split, tmp_path / "other")


@pytest.mark.parametrize(
    "fields, says",
    [
        ({"steps": None}, "either steps or minutes"),
        ({"minutes": 3.0}, "either steps or minutes"),
        ({"batch_size": 0}, "batch_size must be positive"),
        ({"lr": float("nan")}, "lr must be positive"),
        ({"ema": 1.0}, r"ema must be in \[0, 1\)"),
        ({"perceptual": "vgg"}, "perceptual must be one of"),
        ({"gan_weighting": "soft"}, "gan_weighting must be one of"),
        ({"gan_network": "vgg"}, "gan_network must be one of"),
        ({"gan_shift": -1}, "gan_shift must be >= 0"),
        ({"precision": "fp16"}, "precision must be one of"),
    ],
)
def test_impossible_settings_are_refused(fields, says):
    with pytest.raises(ValueError, match=says):
        replace(QUICK, **fields)


def test_the_learning_rate_warms_up_and_falls_along_a_cosine():
    assert warmup_cosine(0.0, 0, 10, 0.01) == pytest.approx(0.1)
    assert warmup_cosine(0.0, 9, 10, 0.01) == pytest.approx(1)
    assert warmup_cosine(0.5, 500, 10, 0.0) == pytest.approx(0.5)
    assert warmup_cosine(1.0, 500, 0, 0.01) == pytest.approx(0.01)
    assert [falling(done, 0.5, 0.8) for done in (0.0, 0.4, 0.8, 1.0)] == [0.5, 0.25, 0, 0]
    assert falling(0.0, 0.5, 0.0) == 0
    assert progress(5, 0.0, 10, None) == 0.5
    assert progress(5, 90.0, None, 1.0) == 1.0


def test_psnr_has_its_known_values():
    black = torch.zeros(3, 2, 2, 3, dtype=torch.uint8)
    other = torch.stack([black[0], black[1] + 1, black[2] + 255])
    assert psnr(other, black).tolist() == pytest.approx([99, 20 * np.log10(255), 0], abs=1e-6)
