"""Shards on disk and folders of pictures."""

import json

import numpy as np
import pytest
from PIL import Image

from tokenizer.image_folder import describe, read_split
from tokenizer.shards import read_codes, read_image_shard, read_images, read_manifest, write_code_shard, write_manifest


def test_image_shards_are_read_in_manifest_order(shard_folder):
    split = read_images(shard_folder, "train")
    first = read_image_shard(shard_folder / "train-00000.npz")
    assert split.images.shape == (24, 16, 16, 3) and split.images.dtype == np.uint8
    assert split.labels.shape == (24, 4) and split.labels.dtype == np.int32
    assert np.array_equal(split.images[:12], first.images) and np.array_equal(split.labels[:12], first.labels)
    assert first.labels[3].tolist() == [0, 1, 1, 2]  # class, style, concept, tone


def test_code_shards_survive_and_are_memory_mapped(tmp_path):
    codes = np.arange(12).reshape(3, 4) + 65000
    labels = np.arange(12).reshape(3, 4)
    entry = write_code_shard(tmp_path, "train-00000", codes, labels)
    assert entry == {"codes": "train-00000.codes.npy", "labels": "train-00000.labels.npy", "count": 3}
    write_manifest(tmp_path, {"splits": {"train": [entry]}})
    ((read, read_labels),) = read_codes(tmp_path, "train")
    assert isinstance(read, np.memmap) and read.dtype == np.uint16 and read_labels.dtype == np.int32
    assert np.array_equal(read, codes) and np.array_equal(read_labels, labels)
    assert {path.name for path in tmp_path.iterdir()} == {entry["codes"], entry["labels"], "manifest.json"}


def test_missing_things_are_named(shard_folder, tmp_path):
    with pytest.raises(ValueError, match="manifest.json is missing"):
        read_manifest(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"split must be one of \['heldout', 'train'\].*got 'test'"):
        read_images(shard_folder, "test")
    (shard_folder / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="not valid JSON"):
        read_manifest(shard_folder)


@pytest.fixture
def picture_folder(tmp_path):
    """train/{cat,dog} and val/{dog}, one colour per picture, of different sizes and formats."""
    files = {"train/cat/a.png": 10, "train/cat/deep/b.jpg": 20, "train/dog/c.webp": 30, "val/dog/d.png": 40}
    for name, grey in files.items():
        path = tmp_path / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20 + grey, 30), (grey, grey, grey)).save(path)
    (tmp_path / "pictures" / "train" / "cat" / "notes.txt").write_text("not a picture")
    return tmp_path / "pictures"


def test_a_folder_of_pictures_reads_like_shards(picture_folder):
    manifest = describe(picture_folder)
    assert manifest["classes"] == ["cat", "dog"] and sorted(manifest["splits"]) == ["heldout", "train"]
    train, held_out = read_split(picture_folder, "train", 8), read_split(picture_folder, "heldout", 8)
    assert train.images.shape == (3, 8, 8, 3) and len(train) == 3
    assert train.labels[:, 0].tolist() == [0, 0, 1]
    picked = train.images[np.array([2, 0])]
    assert picked.dtype == np.uint8 and np.abs(picked[:, 4, 4, 0].astype(int) - [30, 10]).max() <= 2
    assert held_out.labels[:, 0].tolist() == [1]
    assert train.images[0:2].shape == (2, 8, 8, 3)


def test_a_folder_of_classes_alone_is_one_training_split(picture_folder):
    assert describe(picture_folder / "train")["classes"] == ["cat", "dog"]
    assert len(read_split(picture_folder / "train", "train", 8)) == 3
    with pytest.raises(ValueError, match="split must be one of"):
        read_split(picture_folder / "train", "heldout", 8)


def test_a_folder_with_nothing_usable_is_refused(tmp_path, picture_folder):
    with pytest.raises(ValueError, match="must be a folder"):
        describe(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="neither a manifest.json nor one subfolder"):
        describe(tmp_path / "empty")
    (tmp_path / "empty" / "cat").mkdir()
    with pytest.raises(ValueError, match="no pictures"):
        read_split(tmp_path / "empty", "train", 8)
    (picture_folder / "val" / "bird").mkdir()
    with pytest.raises(ValueError, match="class 'bird'"):
        read_split(picture_folder, "heldout", 8)


def test_a_broken_picture_is_named_when_it_is_read(picture_folder):
    (picture_folder / "train" / "cat" / "a.png").write_bytes(b"")
    with pytest.raises(ValueError, match="'a.png' is an empty file"):
        read_split(picture_folder, "train", 8).images[np.array([0])]


def test_the_manifest_is_plain_json(tmp_path):
    write_manifest(tmp_path, {"splits": {}})
    assert json.loads((tmp_path / "manifest.json").read_text()) == {"splits": {}}
