"""Matching of vendor icons to emoji: code point keys, skin tones, slugs."""

import pytest

from pgm_image.emoji.matching import (
    MIXED_TONE,
    ConceptIndex,
    index_concepts,
    normalise_key,
    slug,
    split_tone,
)
from pgm_image.emoji.scheme import CLASS_NAMES

SUBGROUPS = {"0": "animal-bird", "1": "country-flag", "2": "hands", "3": "skin-tone", "4": "face-concerned"}


def entry(label: str, hexcode: str, subgroup: int, **more) -> dict:
    return {"label": label, "hexcode": hexcode, "subgroup": subgroup, **more}


@pytest.fixture
def index() -> ConceptIndex:
    tones = [
        {"label": "handshake: light skin tone", "hexcode": "1F91D-1F3FB"},
        {"label": "handshake: light skin tone, dark skin tone", "hexcode": "1FAF1-1F3FB-200D-1FAF2-1F3FF"},
    ]
    return index_concepts(
        [
            entry("turkey", "1F983", 0),
            entry("baby chick", "1F424", 0, tags=["animal", "bird"]),
            entry("flag: Türkiye", "1F1F9-1F1F7", 1),
            entry("flag: Trinidad & Tobago", "1F1F9-1F1F9", 1),
            entry("handshake", "1F91D", 2, skins=tones),
            entry("dark skin tone", "1F3FF", 3),
            entry("dizzy", "1F4AB", 4),
            entry("face with crossed-out eyes", "1F635", 4),
            entry("fearful face", "1F628", 4),
            {"label": "regional indicator A", "hexcode": "1F1E6"},
        ],
        SUBGROUPS,
    )


def found(index: ConceptIndex, icon: str) -> str | None:
    match = index.match_slug(icon)
    return match.concept.name if match else None


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("1F441-FE0F-200D-1F5E8-FE0F", "1f441-1f5e8"),
        ("0023-fe0f-20e3", "0023-20e3"),
        ("1F44B", "1f44b"),
        ("1f3f4-e0067_e0062_e007f", "1f3f4-e0067-e0062"),
    ],
)
def test_keys_lose_case_and_invisible_code_points(written, key):
    assert normalise_key(written) == key


@pytest.mark.parametrize(
    ("key", "base", "tone"),
    [
        ("1f44b", "1f44b", 0),
        ("1f44b-1f3fb", "1f44b", 1),
        ("1f468-1f3ff-1f33e", "1f468-1f33e", 5),
        ("1f9d1-1f3fd-1f91d-1f9d1-1f3fd", "1f9d1-1f91d-1f9d1", 3),
        ("1f469-1f3fb-1f91d-1f468-1f3fc", "1f469-1f91d-1f468", MIXED_TONE),
    ],
)
def test_tones_are_taken_out_of_a_key(key, base, tone):
    assert split_tone(key) == (base, tone)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("flag: Côte d’Ivoire", "flag-cote-divoire"),
        ("man’s shoe", "mans-shoe"),
        ("waving hand: light skin tone", "waving-hand-light-skin-tone"),
        ("UP! button", "up-button"),
        ("flag: U.S. Virgin Islands", "flag-us-virgin-islands"),
        ("keycap: #", "keycap-pound"),
        ("keycap: *", "keycap-asterisk"),
    ],
)
def test_slugs_are_written_as_icon_sets_write_them(name, expected):
    assert slug(name) == expected


@pytest.mark.parametrize(
    ("icon", "name"),
    [
        ("baby-chick", "baby chick"),
        ("babychick", "baby chick"),
        ("fearful", "fearful face"),
        ("turkey", "turkey"),
        ("flag-for-turkey", "flag: Türkiye"),  # once taken for the bird
        ("flag-for-trinidad-and-tobago", "flag: Trinidad & Tobago"),
        ("dizzy", "dizzy"),
        ("dizzy-face", "face with crossed-out eyes"),  # once taken for "dizzy"
        ("unknown-flag", None),
        ("baby-chic-k", None),
        ("dark-skin-tone", None),
    ],
)
def test_icon_names_find_their_emoji(index, icon, name):
    assert found(index, icon) == name


def test_a_toned_icon_finds_the_untoned_concept_and_its_tone(index):
    toned = index.match_slug("handshake-light-skin-tone")
    assert (toned.concept.key, toned.tone) == ("1f91d", 1)
    mixed = index.match_key("1faf1-1f3fb-1faf2-1f3ff")
    assert (mixed.concept.key, mixed.tone) == ("1f91d", MIXED_TONE)


def test_concepts_carry_class_and_tags_and_leave_out_component_subgroups(index):
    assert [concept.name for concept in index.concepts][:2] == ["turkey", "baby chick"]
    assert len(index.concepts) == 8
    chick = index.match_key("1f424").concept
    assert CLASS_NAMES[chick.class_id] == "bird"
    assert chick.tags == ("animal", "bird")


def test_an_unknown_subgroup_is_refused():
    with pytest.raises(ValueError, match="'animal-robot' of 'robot dog'"):
        index_concepts([entry("robot dog", "1F9BE", 9)], {"9": "animal-robot"})
