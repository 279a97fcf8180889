"""Which real images are compared: one tone a drawing, classes balanced, labels matched."""

import json

import numpy as np
import pytest

from pgm_image.evaluation.image_set import (
    balanced_counts,
    balanced_selection,
    load_image_set,
    match_labels,
    one_tone_each,
)
from tests.pgm_image.evaluation_data import write_shards


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("data") / "shapes")


@pytest.fixture(scope="module")
def train(shards):
    return load_image_set(shards, "train")


def test_counts_are_even_until_a_bin_runs_dry():
    assert balanced_counts(np.array([9, 9, 9]), 7).tolist() == [3, 2, 2]
    assert balanced_counts(np.array([9, 1, 9]), 9).tolist() == [4, 1, 4]
    assert balanced_counts(np.array([2, 0, 3]), 5).tolist() == [2, 0, 3]
    with pytest.raises(ValueError, match="at most 5"):
        balanced_counts(np.array([2, 0, 3]), 6)


def test_each_drawing_appears_once_and_about_half_of_the_toned_ones_keep_the_default(train):
    chosen = train.take(one_tone_each(train))
    drawings = set(zip(chosen.concept_id.tolist(), chosen.style_id.tolist(), strict=True))
    assert len(drawings) == len(chosen) == 3 * 8 * 2
    circles = chosen.tone[chosen.class_id == 0]
    assert 3 <= (circles == 0).sum() <= 13  # of 16


def test_a_selection_is_balanced_distinct_and_repeatable(train):
    index = balanced_selection(train, 20, seed=3)
    assert len(set(index.tolist())) == 20
    assert sorted(np.bincount(train.class_id[index])) == [6, 7, 7]
    assert abs(np.diff(np.bincount(train.style_id[index]))[0]) <= 3
    np.testing.assert_array_equal(index, balanced_selection(train, 20, seed=3))
    assert index.tolist() != balanced_selection(train, 20, seed=4).tolist()


def test_more_samples_than_the_reference_holds_are_refused(train):
    with pytest.raises(ValueError, match="samples must be at most 48"):
        balanced_selection(train, 49)


def test_matched_sets_have_equal_labels(shards, train):
    heldout = load_image_set(shards, "heldout")
    left, right = match_labels(heldout, train)
    assert len(left) == 3 * 3 * 2
    np.testing.assert_array_equal(heldout.class_id[left], train.class_id[right])
    np.testing.assert_array_equal(heldout.style_id[left], train.style_id[right])


def test_unusable_folders_say_why_in_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="manifest.json"):
        load_image_set(tmp_path, "train")
    folder = write_shards(tmp_path / "shapes", train=1, heldout=1)
    with pytest.raises(ValueError, match="test"):
        load_image_set(folder, "test")
    (folder / "train-00000.npz").write_bytes(b"broken")
    with pytest.raises(ValueError, match="cannot be read"):
        load_image_set(folder, "train")
    (folder / "manifest.json").write_text(json.dumps({"splits": {}}))
    with pytest.raises(ValueError, match="lacks"):
        load_image_set(folder, "train")
