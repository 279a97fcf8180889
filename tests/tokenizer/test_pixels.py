"""8-bit pixels <-> network values."""

import numpy as np
import torch
from PIL import Image

from tokenizer import pixels


def test_every_8_bit_value_survives_the_round_trip():
    values = torch.arange(256, dtype=torch.uint8).reshape(1, 16, 16, 1).expand(1, 16, 16, 3)
    assert torch.equal(pixels.to_uint8(pixels.from_uint8(values)), values)


def test_conversion_clips_and_rounds_to_nearest():
    given = torch.tensor([-9.0, -1.0, -1 + 0.49 / 127.5, -1 + 0.51 / 127.5, 0.0, 0.9999, 1.0, 9.0])
    image = given.reshape(1, 1, 8).expand(3, 1, 8)
    expected = [0, 0, 0, 1, 128, 255, 255, 255]  # 0.0 is 127.5, which rounds to the even 128
    assert pixels.to_uint8(image)[0, :, 0].tolist() == expected


def test_a_constant_grey_stays_that_grey():
    picture = Image.new("RGB", (8, 8), (77, 77, 77))
    assert np.array(pixels.to_pil(pixels.from_pil(picture)[None])[0]).tolist() == np.array(picture).tolist()


def test_half_precision_values_are_rounded_in_float32():
    image = pixels.from_uint8(torch.full((1, 1, 3), 200, dtype=torch.uint8))
    assert pixels.to_uint8(image.to(torch.float16)).unique().tolist() == [200]


def test_a_sheet_shows_rows_above_each_other_and_pads_with_white():
    black, white = -torch.ones(3, 3, 2, 2), torch.ones(3, 3, 2, 2)
    sheet = np.array(pixels.sheet([black, white], columns=2))
    assert sheet.shape == (8, 4, 3)
    assert sheet[:2].max() == 0 and sheet[2:4].min() == 255  # first two pictures, then their counterparts
    assert sheet[4:6, :2].max() == 0 and sheet[4:6, 2:].min() == 255


def test_pictures_are_moved_by_their_offsets_and_edges_repeat():
    images = torch.arange(2 * 3 * 5 * 6).reshape(2, 3, 5, 6).float()
    moved = pixels.moved(images, torch.tensor([[1, -2], [0, 0]]))
    assert torch.equal(moved[1], images[1])
    assert torch.equal(moved[0, :, 1:, :4], images[0, :, :-1, 2:])
    assert torch.equal(moved[0, :, 0], moved[0, :, 1]) and torch.equal(moved[0, :, :, 4], moved[0, :, :, 5])
