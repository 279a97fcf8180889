"""Generative perplexity and entropy against ../shared/parity/text/gen_ppl.safetensors (a scorer given as a table)."""

from pathlib import Path

import pytest
from safetensors.torch import load_file

from pgm_text.metrics import NegativeLogLikelihood, next_token_nll, token_entropy

FIXTURE = Path(__file__).resolve().parents[3] / "shared/parity/text/gen_ppl.safetensors"
pytestmark = pytest.mark.skipif(not FIXTURE.exists(), reason="parity fixtures (../shared/parity/text) are not here")


@pytest.fixture(scope="module")
def scored():
    data = load_file(FIXTURE)
    return data, next_token_nll(data["table"][data["ids"]], data["ids"])


def test_all_tokens_but_the_last_target(scored):
    data, nll = scored
    assert NegativeLogLikelihood().add(nll[:, :-1]).perplexity == pytest.approx(data["ppl_all"].item(), rel=1e-4)
    two = NegativeLogLikelihood().add(nll[:2, :-1]).perplexity
    assert two == pytest.approx(data["ppl_all_batch2_drops_last"].item(), rel=1e-4)


def test_valid_targets_alone(scored):
    data, nll = scored
    measured = NegativeLogLikelihood().add(nll[:, :-1], data["valid_retok_first_chunk"])
    assert measured.perplexity == pytest.approx(data["ppl_retok_first_chunk"].item(), rel=1e-4)


def test_mean_entropy(scored):
    data, _ = scored
    assert token_entropy(data["ids"]).mean().item() == pytest.approx(data["mean_entropy"].item(), rel=1e-5)
