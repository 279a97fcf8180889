"""Training on two processes (gloo on the CPU): one result, whether or not it was stopped in between."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from pgm.weights import read_weights

pytestmark = pytest.mark.timeout(900)  # four launches of two processes each: seconds, but for a busy machine
ROOT = Path(__file__).resolve().parents[2]
LAUNCH = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def start(data: Path, out: Path, *more: str) -> subprocess.Popen:
    arguments = ["--recipe", "tiny", "--data", str(data), "--out", str(out), "--log-every", "1", *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [*LAUNCH, "-m", "pgm_image", "train", *arguments]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, env=environment, **output)


def kill(run: subprocess.Popen) -> None:
    """End the launcher and its processes at once, without a word."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(run.pid)], capture_output=True, text=True, check=True)
    for process in (run.pid, *map(int, found.stdout.split())):
        os.kill(process, signal.SIGKILL)
    run.wait(timeout=60)


def wait_for_lines(run: subprocess.Popen, metrics: Path, count: int) -> None:
    deadline = time.monotonic() + 200
    while not metrics.exists() or len(metrics.read_text().splitlines()) < count:
        assert time.monotonic() < deadline and run.poll() is None
        time.sleep(0.02)


def losses(metrics: Path) -> list[tuple[int, float]]:
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [(line["step"], line["loss"]) for line in lines if "loss" in line]


def test_a_two_process_run_that_was_terminated_goes_on_to_the_same_weights(code_folder, tmp_path):
    whole = start(code_folder, tmp_path / "whole", "--steps", "40")
    assert whole.wait(timeout=400) == 0, whole.stdout.read().decode()
    stopped = start(code_folder, tmp_path / "stopped", "--steps", "40")
    metrics = tmp_path / "stopped" / "metrics.jsonl"
    wait_for_lines(stopped, metrics, 3)
    stopped.send_signal(signal.SIGTERM)
    stopped.wait(timeout=120)
    assert (tmp_path / "stopped" / "checkpoint.pt").exists()
    again = start(code_folder, tmp_path / "stopped", "--steps", "40")
    assert again.wait(timeout=400) == 0, again.stdout.read().decode()
    steps = [step for step, _ in losses(metrics)]
    assert steps == sorted(set(steps)) and steps[-1] == 40  # rank 0 alone writes, and no step twice
    first, second = (read_weights(tmp_path / name / "export") for name in ("whole", "stopped"))
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_a_two_process_run_that_was_killed_goes_on_along_the_same_loss_curve(code_folder, tmp_path):
    settings = ["--steps", "40", "--draw", "shuffled", "--global-batch", "8"]
    whole = start(code_folder, tmp_path / "whole", *settings)
    assert whole.wait(timeout=400) == 0, whole.stdout.read().decode()
    killed = start(code_folder, tmp_path / "killed", *settings, "--save-minutes", "0.00001")
    metrics = tmp_path / "killed" / "metrics.jsonl"
    wait_for_lines(killed, metrics, 6)
    kill(killed)
    again = start(code_folder, tmp_path / "killed", *settings)
    assert again.wait(timeout=400) == 0, again.stdout.read().decode()
    assert losses(metrics) == losses(tmp_path / "whole" / "metrics.jsonl") and len(losses(metrics)) == 40
    first, second = (read_weights(tmp_path / name / "export") for name in ("whole", "killed"))
    assert all(torch.equal(first[key], second[key]) for key in first)
