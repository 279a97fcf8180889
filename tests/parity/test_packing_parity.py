"""Wrapped packing and detokenizers against ../shared/parity/text/data_and_ema.json."""

import json
from pathlib import Path

import pytest

from pgm_text.detokenizers import DETOKENIZERS
from pgm_text.packing import pack_wrapped

FIXTURE = Path(__file__).resolve().parents[3] / "shared/parity/text/data_and_ema.json"
pytestmark = pytest.mark.skipif(not FIXTURE.exists(), reason="parity fixtures (../shared/parity/text) are not here")


@pytest.fixture(scope="module")
def data():
    return json.loads(FIXTURE.read_text())


def test_wrapped_blocks(data):
    case = data["packing"]
    documents = [ids[:-1] for ids in case["documents_with_eos"]]  # our function adds the EOS itself
    assert all(ids[-1] == case["eos"] for ids in case["documents_with_eos"])
    blocks = pack_wrapped(documents, case["block_size"], case["bos"], case["eos"])
    assert [block.tolist() for block in blocks] == case["chunks"]


@pytest.mark.parametrize("name", ["wikitext", "ptb", "lm1b", "lambada", "scientific_papers"])
def test_detokenizer(data, name):
    pairs = data["detokenizers"][name]
    assert pairs
    for before, after in pairs:
        assert DETOKENIZERS[name](before) == after
