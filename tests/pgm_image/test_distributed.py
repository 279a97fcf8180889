"""Training on two processes (gloo on the CPU): one result, whether or not it was stopped in between."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import torch

from pgm.weights import read_weights

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def start(data: Path, out: Path, *more: str) -> subprocess.Popen:
    arguments = ["--recipe", "tiny", "--data", str(data), "--out", str(out), "--log-every", "1", *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [*LAUNCH, "-m", "pgm_image", "train", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def test_a_two_process_run_that_was_terminated_goes_on_to_the_same_weights(code_folder, tmp_path):
    whole = start(code_folder, tmp_path / "whole", "--steps", "40")
    assert whole.wait(timeout=240) == 0, whole.stdout.read().decode()
    stopped = start(code_folder, tmp_path / "stopped", "--steps", "40")
    metrics = tmp_path / "stopped" / "metrics.jsonl"
    deadline = time.monotonic() + 200
    while not metrics.exists() or len(metrics.read_text().splitlines()) < 3:
        assert time.monotonic() < deadline and stopped.poll() is None
        time.sleep(0.02)
    stopped.send_signal(signal.SIGTERM)
    stopped.wait(timeout=120)
    assert (tmp_path / "stopped" / "checkpoint.pt").exists()
    again = start(code_folder, tmp_path / "stopped", "--steps", "40")
    assert again.wait(timeout=240) == 0, again.stdout.read().decode()
    steps = [json.loads(line)["step"] for line in metrics.read_text().splitlines() if "loss" in json.loads(line)]
    assert steps == sorted(set(steps)) and steps[-1] == 40  # rank 0 alone writes, and no step twice
    first, second = (read_weights(tmp_path / name / "export") for name in ("whole", "stopped"))
    assert all(torch.equal(first[key], second[key]) for key in first)
