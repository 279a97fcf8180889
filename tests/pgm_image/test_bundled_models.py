"""The bundled image models, where they are: small enough for ordinary git, credited, and drawing."""

import json

import numpy as np
import pytest

import pgm_image
from pgm_image.registry import ASSETS

FOLDERS = sorted(path.parent for path in ASSETS.glob("*/model_index.json"))
NAMES = [folder.name for folder in FOLDERS]

pytestmark = pytest.mark.skipif(not FOLDERS, reason="no image model is bundled")


@pytest.mark.parametrize("folder", FOLDERS, ids=NAMES)
def test_weights_stay_small(folder):
    sizes = [path.stat().st_size for path in folder.rglob("*.safetensors")]
    assert max(sizes) < 10 * 2**20 and sum(sizes) < 60 * 2**20


@pytest.mark.parametrize("folder", FOLDERS, ids=NAMES)
def test_a_card_and_its_report_lie_beside_the_weights(folder):
    card, report = (folder / "README.md").read_text(), json.loads((folder / "evaluation.json").read_text())
    info = next(info for info in pgm_image.models() if info.name == folder.name)
    assert info.credits and all(credit["artwork"] in card and credit["licence"] in card for credit in info.credits)
    assert f"{report['model']['distances']['kid']:.1f} ±" in card
    for name, value in report["model"]["protocol"]["settings"].items():
        assert value is None or f"{name} {value}" in card


@pytest.mark.parametrize("name", NAMES)
def test_hearts_are_redder_than_plants_and_seeds_repeat(name):
    pipe, settings = pgm_image.load(name), {"style": "noto", "steps": 8, "refine_rounds": 0}
    # Seeds of which no draw lies within rounding (1e-6) of the edge between two codes: products of other sizes round
    # differently.
    hearts = pipe.generate("heart", num_images=2, seed=5, output_type="codes", **settings)
    assert (hearts[1:] == pipe.generate("heart", seed=6, output_type="codes", **settings)).all()
    heart, plant = (np.asarray(pipe.generate(what, seed=5, **settings)[0]) for what in ("heart", "plant"))
    assert heart.shape == plant.shape == (64, 64, 3)
    redness = [picture[..., 0].mean() - picture[..., 1].mean() for picture in (heart, plant)]
    assert redness[0] > 10 + redness[1]


def test_the_masked_twin_and_its_partition_model_can_be_compared():
    infos = {info.name: info for info in pgm_image.models()}
    pgm, masked = infos["emoji64-small"], infos["emoji64-maskgit"]
    assert (pgm.architecture, masked.architecture) == ("pgm", "maskgit")
    assert abs(pgm.parameters / masked.parameters - 1) < 0.05
    codebooks = [pgm_image.load(info.name).tokenizer.quantizer.codebook for info in (pgm, masked)]
    assert np.array_equal(*codebooks)
