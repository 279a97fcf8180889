"""KID and FID by torch-fidelity: zero where they must be, ordered where they must be, marked where they are weak."""

import socket

import numpy as np
import pytest
from PIL import Image

from pgm_image.evaluation.distances import distances, kid_subset_size
from pgm_image.evaluation.features import extract, lite0_extractor
from pgm_image.evaluation.image_folder import read_image_folder


def noise(count, top=256, size=16, seed=0):
    return np.random.default_rng(seed).integers(0, top, (count, size, size, 3), dtype=np.uint8)


def test_fid_of_a_set_with_itself_is_zero():
    rows = np.random.default_rng(0).random((300, 1280), dtype=np.float32)
    assert abs(distances(rows, rows, subsets=2).fid) < 1e-3
    assert abs(distances(noise(12), noise(12), subsets=2).fid) < 1e-3


def test_ten_images_are_marked_and_the_kid_subset_adapts():
    found = distances(noise(10), noise(10, seed=1), subsets=3)
    assert found.kid_subset_size == 5
    assert found.fid_note.startswith("n = 10 < 2048: not comparable")
    assert "not comparable with published" in found.fid_note


def test_subset_size_is_a_thousand_from_two_thousand_images_on():
    assert kid_subset_size(2000, 2000) == 1000
    assert kid_subset_size(50000, 493) == 246


def test_farther_images_have_larger_distances():
    reference = noise(16, seed=2)
    near = distances(noise(16, top=240), reference, subsets=20)
    far = distances(noise(16, top=64), reference, subsets=20)
    assert near.kid < far.kid
    assert near.fid < far.fid


def test_batch_size_does_not_matter():
    samples, reference = noise(9), noise(8, top=128, seed=1)
    one, many = (distances(samples, reference, subsets=5, batch_size=size) for size in (1, 64))
    assert one.kid == pytest.approx(many.kid, abs=1e-2)
    assert one.fid == pytest.approx(many.fid, rel=1e-4)


def test_features_give_the_numbers_of_the_images():
    samples, reference = noise(9), noise(8, top=128, seed=1)
    extractor = lite0_extractor()
    by_images = distances(samples, reference, subsets=5)
    by_features = distances(extract(samples, extractor), extract(reference, extractor), subsets=5)
    assert by_features.kid == pytest.approx(by_images.kid, abs=1e-2)
    assert by_features.fid == pytest.approx(by_images.fid, rel=1e-4)


def test_no_connection_is_opened(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the metrics must work offline")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    distances(noise(4), noise(4, seed=1), fid=False, subsets=1)


def test_wrong_inputs_are_named():
    with pytest.raises(ValueError, match="samples must be images"):
        distances(noise(4).astype(np.float64), noise(4))
    with pytest.raises(ValueError, match="reference must hold at least 4 images, got 3"):
        distances(noise(4), noise(3))


def test_png_files_give_the_numbers_of_memory(tmp_path):
    images = noise(6)
    for index, image in enumerate(images):
        Image.fromarray(image).save(tmp_path / f"{index:03d}.png")
    np.testing.assert_array_equal(read_image_folder(tmp_path), images)


def test_jpeg_files_warn(tmp_path):
    Image.fromarray(noise(1)[0]).save(tmp_path / "a.jpg")
    with pytest.warns(UserWarning, match="JPEG"):
        read_image_folder(tmp_path)


def test_folders_that_cannot_be_used_say_why(tmp_path):
    with pytest.raises(ValueError, match="is not a folder"):
        read_image_folder(tmp_path / "missing")
    with pytest.raises(ValueError, match="holds no pictures"):
        read_image_folder(tmp_path)
    Image.new("RGB", (16, 16)).save(tmp_path / "a.png")
    Image.new("RGB", (16, 12)).save(tmp_path / "b.png")
    with pytest.raises(ValueError, match="b.png is 16x12, a.png is 16x16"):
        read_image_folder(tmp_path)
    (tmp_path / "b.png").write_bytes(b"not a picture")
    with pytest.raises(ValueError, match="b.png cannot be read"):
        read_image_folder(tmp_path)
