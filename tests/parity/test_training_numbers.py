"""Losses and learning rates of the published recipe against recorded values."""

import json

import pytest
import torch
from safetensors.torch import load_file

from pgm.objectives import masked_cross_entropy, partition_cross_entropy
from pgm.training import TrainingConfig, learning_rate


@pytest.fixture(scope="module")
def numbers(image_parity):
    return json.loads(image_parity("training.json").read_text())


def test_partition_loss(image_parity, numbers):
    recorded = load_file(image_parity("pgm_tiny_forward.safetensors"))
    loss = partition_cross_entropy(recorded["train.logits"], recorded["train.x"], mask_id=32)
    assert loss.item() == pytest.approx(numbers["pgm_loss"], rel=1e-5)


def test_masked_loss(image_parity, numbers):
    recorded = load_file(image_parity("maskgit_tiny_forward.safetensors"))
    loss = masked_cross_entropy(recorded["logits"], torch.tensor(numbers["maskgit_target"]))
    assert loss.item() == pytest.approx(numbers["maskgit_loss"], rel=1e-5)


def test_learning_rate_of_the_published_recipe(numbers):
    config = TrainingConfig()
    recorded = numbers["lr"]
    assert (config.lr, config.warmup_steps, config.steps) == (
        recorded["base"],
        recorded["warmup"],
        recorded["max_iter"],
    )
    for step, expected in recorded["points"]:
        assert learning_rate(config, step) == pytest.approx(expected, rel=1e-8, abs=1e-18), step
