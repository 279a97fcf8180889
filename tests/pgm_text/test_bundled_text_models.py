"""The bundled text models, where they are: small enough for ordinary git, and writing varied dictionary entries."""

import re

import pytest

import pgm_text
from pgm_text.metrics import distinct_n
from pgm_text.registry import ASSETS

FOLDERS = sorted(path.parent for path in ASSETS.glob("*/model_index.json"))
NAMES = [folder.name for folder in FOLDERS]
ENTRY = re.compile(r"^.+ \((noun|verb|adjective|adverb)\): .+")

pytestmark = pytest.mark.skipif(not FOLDERS, reason="no text model is bundled yet")


def test_weights_stay_small():
    sizes = {path: path.stat().st_size for folder in FOLDERS for path in folder.rglob("*.safetensors")}
    assert max(sizes.values()) < 10 * 2**20
    assert sum(sizes.values()) < 40 * 2**20


@pytest.mark.parametrize("name", NAMES)
def test_default_samples_are_varied_dictionary_entries(name):
    texts = pgm_text.generate(num_texts=16, model=name, seed=0)
    assert len(set(texts)) == 16
    words = [text.split() for text in texts if len(text.split()) >= 3]
    assert distinct_n(words, 3) > 0.8
    assert sum(bool(ENTRY.match(text)) for text in texts) >= 8


@pytest.mark.parametrize("name", NAMES)
def test_a_headword_gets_a_definition(name):
    texts = pgm_text.generate("lantern (noun): ", num_texts=8, model=name)
    assert all(text.startswith("lantern (noun): ") for text in texts)
    assert sum(len(text) > len("lantern (noun): ") + 10 for text in texts) >= 6


def test_the_models_were_trained_alike():
    training = [pgm_text.load(name).info.training for name in NAMES]
    assert len({(run["steps"], run["tokens"]) for run in training}) == 1
    assert len({pgm_text.load(name).tokenizer.bpe.to_str() for name in NAMES}) == 1
