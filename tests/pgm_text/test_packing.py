"""Packing token ids into rows and shards."""

import numpy as np
import pytest

from pgm_text.packing import pack_entries, pack_wrapped, read_token_rows, valid_mask, write_token_shards
from pgm_text.tokenizer import train_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["some text to learn from"] * 3, 270)


def test_entries_are_framed_and_filled_up_with_eos():
    rows, labels, left_out = pack_entries([[5, 6], [7]], 5, bos_id=0, eos_id=1)
    assert rows.tolist() == [[0, 5, 6, 1, 1], [0, 7, 1, 1, 1]]
    assert labels.tolist() == [[4], [3]]
    assert rows.dtype == np.uint16 and labels.dtype == np.int32 and left_out == 0


def test_entries_that_do_not_fit_and_empty_ones_are_left_out_and_counted():
    rows, labels, left_out = pack_entries([[5, 6, 7], [], [5, 6, 7, 8]], 5, bos_id=0, eos_id=1)
    assert rows.tolist() == [[0, 5, 6, 7, 1]] and labels.tolist() == [[5]]
    assert left_out == 2
    assert pack_entries([], 5, 0, 1)[0].shape == (0, 5)


def test_valid_positions_end_with_the_first_eos():
    rows, labels, _ = pack_entries([[5, 6], [7]], 5, 0, 1)
    assert valid_mask(labels, 5).tolist() == [[True] * 4 + [False], [True] * 3 + [False] * 2]


def test_wrapped_blocks_join_documents_and_drop_the_remainder_of_each_group():
    documents = [[1, 2, 3], [4, 5], [6]]
    assert [b.tolist() for b in pack_wrapped(documents, 6, 8, 9)] == [[8, 1, 2, 3, 9, 9], [8, 4, 5, 9, 6, 9]]
    assert [b.tolist() for b in pack_wrapped(documents, 6, 8, 9, group=2)] == [[8, 1, 2, 3, 9, 9]]
    assert list(pack_wrapped([], 6, 8, 9)) == []


@pytest.mark.parametrize("layout", ["entries", "wrapped"])
def test_shards_hold_the_rows_and_their_manifest_describes_them(tmp_path, tokenizer, layout):
    documents = [tokenizer.encode("some text"), tokenizer.encode("to learn from")]
    splits = {"train": documents, "heldout": documents[:1]}
    manifest = write_token_shards(tmp_path, splits, tokenizer, length=12, layout=layout, name="toy")
    assert manifest["vocab_size"] == 270 and manifest["mask_id"] == 269 and manifest["grid"] == [1, 12]
    codes, labels = next(read_token_rows(tmp_path, "train"))
    assert codes.dtype == np.uint16 and codes.shape[1] == 12 and isinstance(codes, np.memmap)
    assert len(codes) == len(labels) == manifest["counts"]["train"]["rows"]
    if layout == "entries":
        assert [tokenizer.decode(row) for row in codes] == ["some text", "to learn from"]
        assert labels[:, 0].tolist() == [len(ids) + 2 for ids in documents]
        assert manifest["counts"]["train"]["tokens"] == sum(len(ids) + 1 for ids in documents)


def test_large_splits_are_cut_into_several_shards(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr("pgm_text.packing.ROWS_PER_SHARD", 3)
    documents = [[10 + n] for n in range(7)]
    write_token_shards(tmp_path, {"train": documents}, tokenizer, length=4)
    shards = list(read_token_rows(tmp_path, "train"))
    assert [len(codes) for codes, _ in shards] == [3, 3, 1]
    assert np.concatenate([codes for codes, _ in shards])[:, 1].tolist() == [10 + n for n in range(7)]


def test_bad_arguments_are_named(tmp_path, tokenizer):
    with pytest.raises(ValueError, match="layout must be 'entries' or 'wrapped', got 'rows'"):
        write_token_shards(tmp_path, {}, tokenizer, length=8, layout="rows")
    with pytest.raises(ValueError, match="length must be an integer >= 3, got 2"):
        write_token_shards(tmp_path, {}, tokenizer, length=2)
    write_token_shards(tmp_path, {"train": [[5]]}, tokenizer, length=8)
    with pytest.raises(ValueError, match=r"split must be one of \['train'\], got 'test'"):
        next(read_token_rows(tmp_path, "test"))
