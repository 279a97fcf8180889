"""What the tokens tab is told: over the stand-in, and over a real tokenizer with random weights."""

import numpy as np
import pytest
import torch
from PIL import Image

from app.models import Models
from app.reveal import decoded, reveal
from app.settings import Settings
from app.tokens import entry_colours, read_tokens, similar, swapped
from app.tokens_tab import NOTHING, codes_of, take
from tokenizer.config import TokenizerConfig
from tokenizer.evaluate import psnr
from tokenizer.vqgan import VQGAN, square


@pytest.fixture
def real(pipeline):
    """The stand-in with a VQGAN of random weights."""
    torch.manual_seed(0)
    sizes = TokenizerConfig(
        image_size=64,
        channels=8,
        multipliers=(1, 1, 2),
        norm_groups=2,
        latent_channels=8,
        codebook_size=4096,
        code_dim=4,
    )
    pipeline.tokenizer = VQGAN(sizes).eval()
    return pipeline


@pytest.fixture
def photo():
    ramp = np.linspace(0, 255, 96 * 80 * 3).reshape(80, 96, 3)
    return Image.fromarray(ramp.astype(np.uint8), "RGB")


def test_codes_picture_and_psnr_are_those_of_the_tokenizer(real, photo):
    value = read_tokens(real, photo, "ramp.png")
    original = square(photo, 64)
    codes = real.tokenizer.encode_images([photo])
    assert value["codes"] == codes.flatten().tolist() and value["grid"] == [16, 16]
    assert np.array_equal(np.asarray(decoded(value["original"])), np.asarray(original))
    [again] = real.tokenizer.decode_images(codes)
    assert np.array_equal(np.asarray(decoded(value["rebuilt"])), np.asarray(again))
    arrays = [torch.from_numpy(np.asarray(picture).copy())[None] for picture in (again, original)]
    assert value["psnr"] == pytest.approx(psnr(*arrays).item(), abs=0.01)
    assert set(value["palette"]) == {str(code) for code in value["codes"]}


def test_swapping_codes_decodes_those_codes(real, photo):
    value = read_tokens(real, photo, "ramp.png")
    codes = value["codes"].copy()
    codes[17] = (codes[17] + 1000) % 4096
    answer = swapped(real, codes, decoded(value["original"]))
    [expected] = real.tokenizer.decode_images(torch.tensor(codes).reshape(1, 16, 16))
    assert np.array_equal(np.asarray(decoded(answer["rebuilt"])), np.asarray(expected))
    same = swapped(real, value["codes"], decoded(value["original"]))
    assert (same["rebuilt"], same["psnr"]) == (value["rebuilt"], value["psnr"])


@pytest.mark.parametrize(
    "codes", [[0] * 255, [0] * 257, [4096] * 256, [-1] * 256, [0.5] * 256, ["0"] * 256, [True] * 256]
)
def test_codes_that_are_no_grid_are_refused(real, photo, codes):
    with pytest.raises(ValueError, match="Codes must be 256 whole numbers from 0 to 4095"):
        swapped(real, codes, square(photo, 64))


def test_similar_entries_are_the_nearest_rows_of_the_codebook(real):
    answer = similar(real, 7)
    codes = [entry["code"] for entry in answer["entries"]]
    book = real.tokenizer.quantizer.codebook
    distance = (book - book[7]).square().sum(-1)
    assert codes[0] == 7 and len(set(codes)) == 9
    assert distance[codes].tolist() == sorted(distance.tolist())[:9]
    assert decoded(answer["entries"][1]["swatch"]).size == (4, 4)


@pytest.mark.parametrize("code", [-1, 4096, 1.5, "7", None, True])
def test_a_code_outside_the_codebook_is_refused(real, code):
    with pytest.raises(ValueError, match="A code must be a whole number from 0 to 4095"):
        similar(real, code)


def test_similar_entries_have_similar_colours_and_all_are_colours():
    line = torch.linspace(0, 1, 64)[:, None] * torch.tensor([[1.0, 0.5, 0.0, 0.2]])
    colours = [[float(part) for part in colour[6:-1].split()] for colour in entry_colours(line)]
    lightness = [colour[0] for colour in colours]
    assert lightness in (sorted(lightness), sorted(lightness, reverse=True))
    assert all(0.4 < light < 0.95 and abs(a) <= 0.2 and abs(b) <= 0.2 for light, a, b in colours)
    assert len(entry_colours(torch.ones(1, 2))) == 1


def test_the_picture_on_the_stage_is_taken_with_the_codes_the_model_chose(pipeline):
    *_, value = reveal(pipeline, Settings("fake", "owl", "Flat", num_images=2, steps=4, seed=9))
    taken = take(Models({"fake": pipeline}), value, {"picture": 1, "step": 3})
    assert taken["title"] == "owl · Flat, seed 10"
    assert taken["codes"] == codes_of(value, 1, 3) and taken["agreeing"] == 256
    assert taken["psnr"] is None, "the stand-in rebuilds its own drawings exactly"
    assert codes_of(value, 1, 0).count(-1) == 256 - value["steps"][0]["known"]


@pytest.mark.parametrize("value", [None, {"steps": []}])
def test_without_a_picture_one_sentence_says_so(pipeline, value):
    with pytest.raises(ValueError, match=NOTHING):
        take(Models({"fake": pipeline}), value, None)


def test_any_place_a_browser_sends_is_brought_into_range(pipeline):
    *_, value = reveal(pipeline, Settings("fake", "owl", steps=2))
    for place in (None, {"picture": 99, "step": 99}, {"picture": -3, "step": -3}):
        assert take(Models({"fake": pipeline}), value, place)["codes"]


def test_a_picture_of_any_mode_is_read(real):
    for mode in ("L", "RGBA", "P", "CMYK"):
        value = read_tokens(real, Image.new(mode, (5, 9)), mode)
        assert len(value["codes"]) == 256
        assert decoded(value["rebuilt"]).size == (64, 64)
