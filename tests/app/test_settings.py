"""What a web form sends becomes exact settings, or one sentence that names the fault."""

import pytest

from app.limits import Limits
from app.settings import Settings, checked

LIMITS = Limits()


def make(**changes: object) -> Settings:
    return checked(Settings(**{"model": "fake", "class_id": "cat", **changes}), LIMITS)


@pytest.mark.parametrize("seed", [5, 5.0, "5", " 5 "])
def test_a_seed_may_come_as_any_kind_of_whole_number(seed):
    assert make(seed=seed).seed == 5


def test_a_seed_beyond_32_bits_keeps_every_digit():
    assert make(seed=2**32 + 1).seed == 2**32 + 1
    assert make(seed="9007199254740990").seed == 9007199254740990


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"seed": 5.5}, "Seed"),
        ({"seed": -1}, "Seed"),
        ({"seed": None}, "Seed"),
        ({"seed": 2**64}, "Seed"),
        ({"seed": float("nan")}, "Seed"),
        ({"seed": True}, "Seed"),
        ({"steps": 0}, "Steps"),
        ({"steps": 10_000}, "Steps"),
        ({"num_images": 9}, "How many"),
        ({"num_images": "many"}, "How many"),
        ({"guidance_scale": -0.1}, "Guidance"),
        ({"guidance_scale": float("inf")}, "Guidance"),
        ({"temperature": "warm"}, "Temperature"),
        ({"top_k": -3}, "Top-k"),
        ({"sampler": "../etc"}, "Sampler"),
        ({"schedule": None}, "Schedule"),
        ({"visible_length": "half"}, "Visible length"),
        ({"temperature_warmup": 1.5}, "Temperature warmup"),
        ({"resample_known": "perhaps"}, "Resample known"),
        ({"guidance_schedule": "up"}, "Guidance schedule"),
        ({"top_p": 1.5}, "Top p"),
        ({"confidence_temperature": -1}, "Confidence temperature"),
        ({"refine_rounds": -1}, "Second looks"),
        ({"refine_rounds": 1.5}, "Second looks"),
        ({"refine_rounds": LIMITS.max_refine_rounds + 1}, "Second looks"),
        ({"refine_share": 0}, "Refine share"),
        ({"refine_steps": 1000}, "Refine steps"),
        ({"refine_score": "charm"}, "Refine score"),
        ({"encoder_refresh": 0}, "Encoder refresh"),
    ],
)
def test_a_bad_value_gives_one_sentence_naming_the_control(changes, named):
    with pytest.raises(ValueError, match=f"^{named} must be .*\\.$"):
        make(**changes)


@pytest.mark.parametrize("blank", [None, "", 0])
def test_top_k_left_open_allows_every_code(blank):
    assert make(top_k=blank).top_k is None


def test_picture_i_alone_has_seed_plus_i():
    whole = make(seed=40, num_images=4)
    assert whole.seeds() == [40, 41, 42, 43]
    assert whole.of_picture(2) == make(seed=42)


def test_limits_come_from_the_environment():
    limits = Limits.from_environment({"PGM_MAX_IMAGES": "2", "PGM_MAX_GUIDANCE": "3.5"})
    assert (limits.max_images, limits.max_guidance, limits.max_steps) == (2, 3.5, LIMITS.max_steps)
    with pytest.raises(ValueError, match="How many must be a whole number from 1 to 2, not 3"):
        checked(Settings("fake", "cat", num_images=3), limits)


def test_second_looks_have_a_limit_of_their_own_and_are_told_in_words():
    limits = Limits.from_environment({"PGM_MAX_REFINE_ROUNDS": "2"})
    assert checked(Settings("fake", "cat", refine_rounds="2"), limits).refine_rounds == 2
    with pytest.raises(ValueError, match="Second looks must be a whole number from 0 to 2, not 3"):
        checked(Settings("fake", "cat", refine_rounds=3), limits)
    said = [make(refine_rounds=rounds).summary() for rounds in (0, 1, 4)]
    assert "look" not in said[0] and "1 second look ·" in said[1] and "4 second looks ·" in said[2]


@pytest.mark.parametrize("value", ["none", "0", "-4", "nan"])
def test_a_limit_that_is_no_positive_number_is_named(value):
    with pytest.raises(ValueError, match="PGM_MAX_STEPS must be a positive int"):
        Limits.from_environment({"PGM_MAX_STEPS": value})


def test_settings_without_a_control_are_left_to_the_model_unless_they_are_given():
    assert make().rare() == {} and "visible_length" not in make().arguments()
    given = make(visible_length="reference", resample_known="False", temperature_warmup="1")
    assert given.rare() == {"temperature_warmup": 1, "resample_known": False, "visible_length": "reference"}
    assert given.arguments() == {**make().arguments(), **given.rare()}
    assert "visible length reference" in given.summary() and "visible" not in make().summary()
