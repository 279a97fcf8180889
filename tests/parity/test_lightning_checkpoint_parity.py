"""The miniature public checkpoints in ../shared/parity/text are read: names, raw and EMA weights, config."""

import json
from pathlib import Path

import pytest
import torch

from pgm.foreign_weights import StandIn, strip_prefixes
from pgm_text.lightning_checkpoint import (
    NETWORK_PREFIXES,
    ema_param_order,
    read_container,
    read_lightning_checkpoint,
)

FOLDER = Path(__file__).resolve().parents[3] / "shared/parity/text"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="parity fixtures (../shared/parity/text) are not here")


@pytest.mark.parametrize(("name", "parameters"), [("pgm", 41), ("mdlm", 20)])
def test_miniature_checkpoint(name, parameters):
    checkpoint = read_lightning_checkpoint(FOLDER / f"official_like_{name}.ckpt")
    assert checkpoint.vocab_size == 40
    assert checkpoint.global_step == checkpoint.ema_updates == 1_000_000
    model = checkpoint.config["model"]
    assert (model["hidden_size"], model["cond_dim"], model["n_heads"], model["length"]) == (32, 16, 2, 16)
    assert len(checkpoint.raw) == len(checkpoint.ema) == parameters + 1  # and one buffer
    assert checkpoint.raw["vocab_embed.embedding"].shape == (40, 32)
    for key, raw in checkpoint.raw.items():
        same = torch.equal(raw, checkpoint.ema[key])
        assert raw.shape == checkpoint.ema[key].shape
        assert same == (key == "rotary_emb.inv_freq"), key  # every parameter differs from its average


def test_the_config_was_never_built():
    content = read_container(FOLDER / "official_like_pgm.ckpt")
    assert isinstance(content["hyper_parameters"]["config"], StandIn)


def test_ema_order_of_the_full_size_models():
    models = json.loads((FOLDER / "official_state_dicts.json").read_text())
    checked = 0
    for name, model in models.items():
        if "ema_param_order" not in model:
            continue
        state_dict = {key: torch.empty(shape, device="meta") for key, shape in model["state_dict"].items()}
        expected = [key.removeprefix("backbone.") for key in model["ema_param_order"]]
        assert ema_param_order(strip_prefixes(state_dict, name, NETWORK_PREFIXES)) == expected, name
        checked += 1
    assert checked >= 3
