"""Encoding shards and folders of pictures into code shards."""

import numpy as np
import pytest
import torch
from PIL import Image

from tokenizer import pixels
from tokenizer.encode import encode_folder
from tokenizer.shards import read_codes, read_images, read_manifest


def test_code_shards_hold_the_codes_and_labels_of_their_pictures(model, shard_folder, tmp_path):
    said = []
    manifest = encode_folder(model, shard_folder, tmp_path / "codes", "tiny", 5, shard_images=10, report=said.append)
    assert manifest == read_manifest(tmp_path / "codes")
    assert manifest["grid"] == [4, 4] and manifest["codebook_size"] == 16 and manifest["styles"] == ["s", "t"]
    assert manifest["tokenizer"] == {"name": "tiny", "codes_hash": model.codes_hash()}
    assert [entry["count"] for entry in manifest["splits"]["train"]] == [10, 10, 4]
    images = read_images(shard_folder, "train")
    shards = read_codes(tmp_path / "codes", "train")
    codes = np.concatenate([codes for codes, _ in shards])
    expected = model.encode(pixels.from_uint8(torch.from_numpy(images.images))).flatten(1).numpy()
    assert codes.dtype == np.uint16 and np.array_equal(codes, expected)
    assert np.array_equal(np.concatenate([labels for _, labels in shards]), images.labels)
    assert any("codes used" in line and line.startswith("heldout") for line in said)


def test_a_killed_encoding_continues_with_the_missing_shards(model, shard_folder, tmp_path):
    first = encode_folder(model, shard_folder, tmp_path, "tiny", shard_images=10, report=lambda _: None)
    whole = read_codes(tmp_path, "train")[1][0].copy()
    (tmp_path / "train-00001.labels.npy").unlink()  # the file that is written last
    said = []
    assert encode_folder(model, shard_folder, tmp_path, "tiny", shard_images=10, report=said.append) == first
    assert np.array_equal(read_codes(tmp_path, "train")[1][0], whole)
    assert [line for line in said if "images" in line and "-0000" in line] == ["train-00001: 10 images"]


def test_codes_of_two_tokenizers_or_data_sets_are_never_mixed(model, shard_folder, tmp_path):
    target = tmp_path / "codes"
    encode_folder(model, shard_folder, target, "tiny", report=lambda _: None)
    torch.nn.init.ones_(model.quant_conv.bias)
    with pytest.raises(ValueError, match="holds codes with tokenizer"):
        encode_folder(model, shard_folder, target, "tiny", report=lambda _: None)


def test_a_folder_of_pictures_by_class_is_encoded(model, tmp_path):
    for name, grey in (("cat", 10), ("dog", 200), ("dog", 100)):
        (tmp_path / "pictures" / name).mkdir(parents=True, exist_ok=True)
        Image.new("L", (40, 20), grey).save(tmp_path / "pictures" / name / f"{grey}.png")
    manifest = encode_folder(model, tmp_path / "pictures", tmp_path / "codes", "tiny", report=lambda _: None)
    ((codes, labels),) = read_codes(tmp_path / "codes", "train")
    assert manifest["classes"] == ["cat", "dog"]
    assert codes.shape == (3, 16) and labels[:, 0].tolist() == [0, 1, 1]
