"""VQGAN: shapes, geometry, precision, files."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from tokenizer import VQGAN, TokenizerConfig, pixels


def noise(*size: int) -> Image.Image:
    width, height = size
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


def test_images_become_a_grid_of_codes_and_back(model, config):
    images = torch.rand(3, 3, 16, 32) * 2 - 1
    codes = model.encode(images)
    assert codes.shape == (3, 4, 8) and codes.dtype == torch.int64
    assert codes.min() >= 0 and codes.max() < config.codebook_size
    decoded = model.decode(codes)
    assert decoded.shape == images.shape and decoded.abs().max() <= 1


def test_training_and_inference_agree(model):
    images = torch.rand(2, 3, 16, 16) * 2 - 1
    output = model(images)
    assert torch.equal(output.codes, model.encode(images))
    torch.testing.assert_close(output.images.clamp(-1, 1), model.decode(output.codes), atol=1e-5, rtol=0)
    assert output.latents.shape == (2, 4, 4, 4)


def test_a_batch_gives_what_its_pictures_give_alone(model):
    images = torch.rand(4, 3, 16, 16) * 2 - 1
    assert torch.equal(model.encode(images)[2:3], model.encode(images[2:3]))


@pytest.mark.parametrize("shape", [(3, 16, 16), (1, 1, 16, 16), (1, 3, 15, 16), (1, 3, 16, 0)])
def test_images_of_a_wrong_shape_are_refused(model, shape):
    with pytest.raises(ValueError, match="images must|multiples of 4"):
        model.encode(torch.zeros(shape))


@pytest.mark.parametrize(
    "codes",
    [torch.zeros(4, 4, dtype=torch.long), torch.zeros(1, 4, 4), torch.full((1, 4, 4), 16), torch.full((1, 4, 4), -1)],
)
def test_codes_that_do_not_exist_are_refused(model, codes):
    with pytest.raises(ValueError, match="codes must be"):
        model.decode(codes)


@pytest.mark.parametrize("size", [(257, 131), (1, 1), (16, 4000), (4, 3)])
def test_a_reconstruction_has_the_size_of_its_picture(model, size):
    assert model.reconstruct(noise(*size)).size == size


def test_a_large_picture_is_shrunk_and_its_result_enlarged(model, monkeypatch):
    seen = []
    encode = model.encode
    monkeypatch.setattr(model, "encode", lambda images: (seen.append(images.shape), encode(images))[1])
    monkeypatch.setattr("tokenizer.vqgan.MAX_PIXELS", 64 * 64)
    assert model.reconstruct(noise(300, 200)).size == (300, 200)
    assert seen[0][2] * seen[0][3] <= 72 * 72


def test_several_pictures_come_back_as_a_list_in_order(model):
    pictures = [noise(16, 16), noise(20, 8)]
    results = model.reconstruct(pictures)
    assert [result.size for result in results] == [(16, 16), (20, 8)]
    assert np.array_equal(np.array(results[1]), np.array(model.reconstruct(pictures[1])))


def test_pictures_are_cropped_to_a_square_of_the_image_size(model):
    wide = Image.new("RGB", (200, 100), "white")
    wide.paste((255, 0, 0), (0, 0, 50, 100))  # outside the central square
    codes = model.encode_images([wide, Image.new("L", (7, 7), 255)])
    assert codes.shape == (2, 4, 4)
    assert torch.equal(codes[0], codes[1])
    assert [picture.size for picture in model.decode_images(codes)] == [(16, 16)] * 2


def test_eight_bit_pixels_of_decode_images_are_those_of_the_one_conversion(model):
    codes = torch.randint(0, 16, (2, 4, 4), generator=torch.Generator().manual_seed(0))
    expected = pixels.to_uint8(model.decode(codes)).numpy()
    assert np.array_equal(np.stack([np.array(picture) for picture in model.decode_images(codes)]), expected)


def test_float16_weights_decode_in_float32_and_stay_near(model):
    codes = torch.randint(0, 16, (64, 4, 4), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():  # activations beyond the float16 range
        model.decoder.conv_in.weight.mul_(3e4)
    reference = pixels.to_uint8(model.decode(codes)).float()
    half = VQGAN(model.config).eval()
    half.load_state_dict(model.state_dict())
    decoded = half.half().decode(codes)
    assert decoded.isfinite().all()
    assert (pixels.to_uint8(decoded).float() - reference).abs().mean() < 2


def test_bfloat16_weights_encode_and_decode(model):
    low = model.to(torch.bfloat16)
    codes = low.encode(torch.rand(2, 3, 16, 16) * 2 - 1)
    assert low.decode(codes).dtype == torch.float32 and low.decode(codes).isfinite().all()


def test_a_saved_model_loads_as_the_same_model(model, config, tmp_path):
    model.save_pretrained(tmp_path / "saved")
    loaded = VQGAN.from_pretrained(tmp_path / "saved")
    assert loaded.config == config and not loaded.training
    assert loaded.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in loaded.state_dict().items())
    assert json.loads((tmp_path / "saved" / "config.json").read_text())["model_type"] == "vqgan"


def test_files_of_a_larger_model_stay_under_9_megabytes(tmp_path):
    model = VQGAN(TokenizerConfig(channels=64))
    model.save_pretrained(tmp_path)
    sizes = [path.stat().st_size for path in tmp_path.glob("*.safetensors")]
    assert len(sizes) > 1 and max(sizes) < 9.1e6
    assert VQGAN.from_pretrained(tmp_path).codes_hash() == model.codes_hash()


def test_a_folder_without_a_tokenizer_is_named(tmp_path):
    with pytest.raises(ValueError, match="config.json is missing"):
        VQGAN.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "pgm"}')
    with pytest.raises(ValueError, match="model_type must be 'vqgan'"):
        VQGAN.from_pretrained(tmp_path)


def test_the_codes_hash_ignores_the_decoder_and_sees_the_encoder(model):
    before = model.codes_hash()
    nn.init.zeros_(model.decoder.conv_out.weight)
    assert model.codes_hash() == before
    nn.init.zeros_(model.encoder.conv_in.bias)
    nn.init.ones_(model.quant_conv.bias)
    assert model.codes_hash() != before


@pytest.mark.parametrize(
    "fields, says",
    [
        ({"distance": "manhattan"}, "distance must be one of"),
        ({"codebook_size": 0}, "codebook_size must be an integer >= 1"),
        ({"decoder_blocks": 0}, "decoder_blocks must be an integer >= 1 or None"),
        ({"channels": 30}, "multiple of norm_groups"),
        ({"image_size": 66}, "multiple of the factor 4"),
        ({"multipliers": ()}, "multipliers"),
        ({"model_type": "vae"}, "model_type"),
    ],
)
def test_impossible_sizes_are_refused(fields, says):
    with pytest.raises(ValueError, match=says):
        TokenizerConfig(**fields)


def test_factor_and_grid_follow_from_the_levels():
    config = TokenizerConfig(image_size=64, multipliers=(1, 2, 4))
    assert (config.factor, config.grid) == (4, (16, 16))
    assert TokenizerConfig.from_dict(config.to_dict()) == config
