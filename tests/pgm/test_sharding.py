"""FSDP on two processes (gloo on the CPU): the same training as with a copy in each, and sharded checkpoints."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pgm.training import Trainer, TrainingConfig
from pgm.weights import read_weights

pytestmark = pytest.mark.timeout(900)  # seconds, but for a busy machine
ROOT = Path(__file__).resolve().parents[2]
SHARD = {"shard": True}


def train(*runs: tuple[Path, int, str, dict], processes: int = 2) -> None:
    """Trainings (folder, steps, kind, settings), one after the other in one launch."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    words = json.dumps([[str(folder), steps, kind, settings] for folder, steps, kind, settings in runs])
    command = [*launch, str(Path(__file__).with_name("sharded_run.py")), words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def losses(folder: Path) -> list[float]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """Two processes: the same trainings as copies and split; a split one interrupted at step 3 and one that was not."""
    root = tmp_path_factory.mktemp("runs")
    passes, plain = {"accumulation": 2}, {"ema_decay": 0.0}
    train(
        (root / "partition-whole", 4, "partition", passes),
        (root / "partition-split", 4, "partition", passes | SHARD),
        (root / "masked-whole", 4, "masked", plain),
        (root / "masked-split", 4, "masked", plain | SHARD),
        (root / "uncut", 6, "partition", SHARD),
        (root / "cut", 3, "partition", SHARD),
        (root / "cut", 6, "partition", SHARD),
    )
    return root


@pytest.mark.parametrize("kind", ["partition", "masked"])
def test_split_training_is_that_of_whole_copies(runs, kind):
    assert losses(runs / f"{kind}-split") == pytest.approx(losses(runs / f"{kind}-whole"), rel=1e-5)
    whole, split = (read_weights(runs / f"{kind}-{name}" / "export") for name in ("whole", "split"))
    assert whole.keys() == split.keys()
    for name in whole:
        torch.testing.assert_close(split[name], whole[name], rtol=1e-4, atol=1e-4)
    reported = json.loads((runs / f"{kind}-split" / "metrics.jsonl").read_text().splitlines()[-1])
    assert reported["weights"] > 10_000  # reports see the whole model


def test_a_resumed_sharded_run_equals_an_uninterrupted_one(runs):
    assert losses(runs / "cut") == losses(runs / "uncut") and len(losses(runs / "cut")) == 6
    uncut, cut = (read_weights(runs / name / "export") for name in ("uncut", "cut"))
    assert all(torch.equal(uncut[name], cut[name]) for name in uncut)


def test_a_sharded_checkpoint_is_read_by_another_number_of_processes(runs):
    folder = runs / "uncut"
    assert sorted(path.name for path in folder.glob("checkpoint*")) == ["checkpoint-00000006", "checkpoint.json"]
    before = read_weights(folder / "export")
    train((folder, 6, "partition", SHARD), processes=1)  # loads, makes no step, exports
    after = read_weights(folder / "export")
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    ("shard", "found", "asked"), [(True, "checkpoint.pt", "with"), (False, "checkpoint.json", "without")]
)
def test_a_run_does_not_start_anew_over_a_checkpoint_of_the_other_kind(partition, tmp_path, shard, found, asked):
    (tmp_path / found).write_text("{}")
    with pytest.raises(ValueError, match=f"holds {found}, which a run {asked} --shard cannot go on from"):
        Trainer(partition(), None, None, TrainingConfig(precision="fp32", shard=shard), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [found]


def test_fsdp_of_accelerate_is_refused_with_the_way_to_go(partition, tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    with pytest.raises(ValueError, match="--shard"):
        Trainer(partition(), None, None, TrainingConfig(precision="fp32"), tmp_path)


@pytest.mark.parametrize(
    ("processes", "limit", "expected"), [(1, 32, (32, 8)), (8, 32, (32, 1)), (64, 32, (4, 1)), (2, 20, (16, 8))]
)
def test_a_global_batch_is_divided_among_processes_and_passes(processes, limit, expected):
    config = TrainingConfig(global_batch=256, batch_size=limit).divided(processes)
    assert (config.batch_size, config.accumulation) == expected
    assert processes * config.batch_size * config.accumulation == 256


def test_a_global_batch_that_cannot_be_divided_is_named():
    with pytest.raises(ValueError, match="multiple of the number of processes, got 256 for 3"):
        TrainingConfig(global_batch=256).divided(3)
    assert TrainingConfig(batch_size=7).divided(3).batch_size == 7
