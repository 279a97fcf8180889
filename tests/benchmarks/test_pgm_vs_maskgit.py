"""The side-by-side benchmark: its predictions are the published cost model's, and it runs at toy size."""

from dataclasses import replace

import pytest
import torch

from benchmarks import pgm_vs_maskgit
from benchmarks.network_timing import Parts, generate, time_parts, timed
from benchmarks.pgm_vs_maskgit import FULL, Case, cases, make, predicted, shallow, verdict
from pgm.sampling import SamplingConfig

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("order", "name", "low", "high"),
    [
        # 5.22 where MaskGIT's head runs on all cells, 5.00 where, as here, on the revealed ones alone
        ("halton", "PGM 12-12", 4.9, 5.1),
        ("halton", "PGM 14-10", 4.45, 4.65),
        ("confidence", "PGM 12-12", 2.1, 2.3),
        ("confidence", "PGM 14-10", 2.2, 2.4),
    ],
)
def test_predictions_are_those_of_the_cost_model(order, name, low, high):
    assert low < predicted(name, FULL, Case(1, SamplingConfig(steps=32, order=order))) < high


def test_layers_are_counted_as_often_as_the_full_model_has_them():
    parts = Parts(encoder=1.0, swap=0.1, decoder=0.5, head=0.2, rest=0.3)
    assert parts.deeper(14, 10).whole == pytest.approx(14 + 0.1 + 5 + 0.2 + 0.3)


@pytest.fixture
def small(monkeypatch):
    """4x4 codes and narrow full models."""
    pgm = {"width": 64, "heads": 1, "length": 16, "vocab_size": 18, "mask_id": 16, "bos_id": 17}
    changed = {
        name: replace(config, codebook_size=16, grid=4, width=64, heads=1)
        if name == "MaskGIT 24"
        else replace(config, **pgm)
        for name, config in FULL.items()
    }
    monkeypatch.setattr(pgm_vs_maskgit, "FULL", changed)
    monkeypatch.setattr(pgm_vs_maskgit, "SIDE", 4)
    return changed


def test_the_parts_make_up_the_whole(small):
    model = make(shallow(small["PGM 12-12"], 64), CPU, torch.float32)
    parts = time_parts(model, 2, SamplingConfig(steps=3, guidance_scale=1.0), 4, CPU)
    assert min(parts.encoder, parts.swap, parts.decoder, parts.head, parts.rest) > 0
    with timed(model, CPU) as spent:
        pass
    generate(model, 1, SamplingConfig(steps=2), 4, CPU)
    assert set(spent.values()) == {0.0}  # the hooks are gone


def test_every_row_is_printed_with_its_prediction_and_profile(small, capsys):
    pgm_vs_maskgit.main(["--device", "cpu", "--width", "64", "--steps", "2"])
    said = capsys.readouterr().out
    assert said.count("PGM 14-10") == 3 * 4 and said.count("GFLOP/s in the network") == 3 * 4
    assert "one layer of each kind measured" in said and said.count("x ") > 8


def test_the_width_that_fits_is_chosen(small):
    rows = cases([1], [2])
    assert pgm_vs_maskgit.fitting_width(rows, 1e9, CPU, torch.float32)[0] == 1024
    assert pgm_vs_maskgit.fitting_width(rows, 1e-12, CPU, torch.float32)[0] == 256


def test_a_shortfall_names_its_cause():
    assert verdict(5.0, 5.2, 1.0, 1.0, 0.5) == "as predicted"
    assert "50% of MaskGIT's rate" in verdict(2.0, 5.0, 1.0, 0.5, 0.0)
    assert "30% of its time is outside the layers" in verdict(2.0, 5.0, 1.0, 1.0, 0.3)
