"""The text benchmark counts what was generated and what ran."""

from benchmarks.text_sampling import measure
from pgm_text.registry import load


def test_rates_and_positions_are_those_of_the_models():
    found = measure(["dictionary-mdlm", "dictionary-pgm"], count=2, steps=4, runs=1)
    length = load("dictionary-mdlm").transformer.config.length
    (masked_rate, masked), (rate, positions) = found["dictionary-mdlm"], found["dictionary-pgm"]
    assert masked == 4 * (length + 1)  # BOS in front; all positions at every step
    assert length < positions < masked and rate > 0 and masked_rate > 0
