"""A run that starts from trained weights takes them once, and draws batches that they have not met."""

import pytest
import torch

from pgm.growth import grow
from pgm.models import save_model
from pgm.starting import checksum, start
from pgm.training import CHECKPOINT, TrainingConfig

pytestmark = pytest.mark.usefixtures("own_accelerator_state")


@pytest.fixture
def trained(partition, tmp_path):
    """Folder of a trained model."""
    save_model(partition(seed=3), tmp_path / "trained")
    return tmp_path / "trained"


def begin(model, weights, run, seed=0):
    return start(model, weights, run, TrainingConfig(seed=seed), take=grow)


def test_without_weights_the_batches_are_those_of_the_seed(partition, tmp_path):
    model = partition(seed=1)
    before = checksum(model)
    assert begin(model, None, tmp_path / "run", seed=5) == 5 and checksum(model) == before


def test_the_weights_are_taken_and_the_batches_are_others(partition, trained, tmp_path, capsys):
    model = partition(seed=1)
    seed = begin(model, trained, tmp_path / "run")
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), partition(seed=3).parameters(), strict=True))
    assert "started from" in capsys.readouterr().out
    assert 0 <= seed < 2**31 and seed != 0
    assert begin(partition(), trained, tmp_path / "same") == seed
    assert begin(partition(), trained, tmp_path / "other", seed=1) == seed + 1
    save_model(partition(seed=4), tmp_path / "further")
    assert begin(partition(), tmp_path / "further", tmp_path / "next") != seed


@pytest.mark.parametrize("again", [True, False])
def test_a_run_goes_on_with_its_batches_and_its_own_weights(partition, trained, tmp_path, again):
    run = tmp_path / "run"
    seed = begin(partition(), trained, run)
    (run / CHECKPOINT).touch()
    model = partition(seed=1)
    before = checksum(model)
    assert begin(model, trained if again else None, run) == seed and checksum(model) == before


def test_a_run_begun_anew_without_weights_forgets_them(partition, trained, tmp_path):
    run = tmp_path / "run"
    begin(partition(), trained, run)
    assert begin(partition(), None, run) == 0
    (run / CHECKPOINT).touch()
    assert begin(partition(), None, run) == 0
