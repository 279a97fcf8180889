"""Arguments are checked at the door, with a sentence that names them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pgm_image.model_info import ModelInfo
from pgm_image.request import make_request

INFO = ModelInfo(
    name="tiny",
    architecture="pgm",
    title="",
    image_size=8,
    grid=(4, 4),
    codebook_size=16,
    classes=("bird", "cat or monkey face", "goldfish"),
    styles=("noto", "flat"),
    recommended={"steps": 4, "sampler": "halton", "guidance_scale": 1.5},
    words={"bird": ("eagle", "owl")},
)


def request(class_id=0, **arguments):
    return make_request(INFO, class_id, **arguments)


@pytest.mark.parametrize(
    "value",
    [
        2,
        np.int64(2),
        np.array([2]),
        np.array(2),
        torch.tensor(2),
        torch.tensor([2]),
        (2,),
        range(2, 3),
        "goldfish",
        "GoldFish ",
    ],
)
def test_a_class_may_be_an_id_of_any_integer_type_or_a_name(value):
    assert request(value).classes == (2,)


def test_the_callers_array_is_left_alone():
    ids = np.array([2, 0])
    request(ids)
    assert ids.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (-1, "0..2"), (3, "0..2"), (10**9, "0..2"), (3.7, "3.7"), (True, "True"), ("", "bird"), ("no such", "no such"),
        ([], "empty"), ([1, "x"], "'x'"), ([None], "None"), ("7", "'7'"), ({1}, "set"), (b"bird", "bird"),
    ],
)  # fmt: skip
def test_a_bad_class_is_an_error_that_names_it(value, says):
    with pytest.raises(ValueError, match="class_id") as error:
        request(value)
    assert says in str(error.value)


def test_near_matches_and_search_words_are_suggested():
    with pytest.raises(ValueError, match="'goldfish'"):
        request("goldfsh")
    with pytest.raises(ValueError, match="did you mean 'bird'"):
        request("eagle")


def test_no_class_and_no_style_are_the_null_labels():
    made = request(None)
    assert made.classes == (-1,) and made.styles == (-1,)


def test_pictures_of_several_classes_follow_each_other_with_consecutive_seeds():
    made = request(["bird", 2], num_images=2, style=["flat", "noto"], seed=5)
    assert made.classes == (0, 0, 2, 2)
    assert made.styles == (1, 1, 0, 0)
    assert made.seeds == (5, 6, 7, 8)
    assert made.part(1, 3).seeds == (6, 7)


@pytest.mark.parametrize("seed", [5, 5.0, np.int64(5), torch.tensor(5)])
def test_a_seed_may_be_any_whole_number(seed):
    assert request(seed=seed).seeds == (5,)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"seed": 5.5}, "seed"), ({"seed": -1}, "seed"), ({"seed": 2**64}, "seed"), ({"seed": float("nan")}, "seed"),
        ({"seed": "5"}, "seed"), ({"steps": 0}, "steps.*1..16"), ({"steps": 17}, "steps.*1..16"),
        ({"steps": 2.5}, "steps"),
        ({"guidance_scale": -1}, "guidance_scale"), ({"guidance_scale": float("nan")}, "guidance_scale"),
        ({"guidance_scale": float("inf")}, "guidance_scale"), ({"temperature": -0.1}, "temperature"),
        ({"temperature": "hot"}, "temperature"), ({"num_images": 0}, "num_images"), ({"top_k": 0}, "top_k"),
        ({"top_p": 0}, "top_p"), ({"top_p": 1.1}, "top_p"), ({"sampler": "ddim"}, "sampler.*halton"),
        ({"schedule": "log"}, "schedule.*arccos"), ({"guidance_schedule": "up"}, "guidance_schedule"),
        ({"style": "oil"}, "style"), ({"style": 2}, "style.*0..1"), ({"style": ["noto", "flat"]}, "style"),
        ({"visible_length": "all"}, "visible_length"), ({"encoder_refresh": 0}, "encoder_refresh"),
        ({"encoder_refresh": 1.5}, "encoder_refresh"),
        ({"encoder_refresh": 2, "visible_length": "reference"}, "encoder_refresh must be 1 .*got 2"),
    ],
)  # fmt: skip
def test_a_bad_setting_is_an_error_that_names_it(arguments, names):
    with pytest.raises(ValueError, match=names):
        request(**arguments)


def test_only_partition_models_keep_what_they_encoded():
    assert request().sampling.encoder_refresh == 1 and request(encoder_refresh=4).sampling.encoder_refresh == 4
    with pytest.raises(ValueError, match="encoder_refresh must be 1 for masked models"):
        make_request(replace(INFO, architecture="maskgit"), 0, encoder_refresh=4)


def test_what_is_left_out_is_the_recommended_setting():
    sampling = request(steps=8).sampling
    assert (sampling.steps, sampling.guidance_scale, sampling.order) == (8, 1.5, "halton")
    assert request(guidance_scale=0).sampling.guidance_scale == 0
