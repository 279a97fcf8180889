"""The emoji label scheme: ids, subgroups, styles, licences, search words."""

from pgm_image.emoji.scheme import (
    CLASS_NAMES,
    CLASS_OF_SUBGROUP,
    CLASSES,
    LEFT_OUT_SUBGROUPS,
    STYLES,
    Concept,
    PackagePin,
)
from pgm_image.emoji.search_words import search_words


def test_there_are_79_classes_with_ids_in_order():
    assert len(CLASS_NAMES) == len(set(CLASS_NAMES)) == 79
    assert (CLASS_NAMES[0], CLASS_NAMES[27], CLASS_NAMES[78]) == ("smiling face", "bird", "banner")
    assert sorted(set(CLASS_OF_SUBGROUP.values())) == list(range(79))


def test_every_subgroup_belongs_to_one_class_or_is_left_out():
    claimed = [subgroup for subgroups in CLASSES.values() for subgroup in subgroups]
    assert len(claimed) == len(set(claimed)) == 98  # Unicode has 100
    assert sorted(LEFT_OUT_SUBGROUPS) == ["hair-style", "skin-tone"]
    assert not LEFT_OUT_SUBGROUPS & set(claimed)


def test_styles_are_pinned_and_permissively_licensed():
    assert len({style.name for style in STYLES}) == len(STYLES) == 7
    assert {style.licence for style in STYLES} == {"Apache-2.0", "MIT", "CC-BY-4.0"}
    assert all(style.artwork and style.source.startswith("https://") for style in STYLES)


def test_a_tarball_is_named_as_npm_names_it():
    assert PackagePin("@iconify-json/noto-v1", "1.2.5").tarball == "iconify-json-noto-v1-1.2.5.tgz"
    assert PackagePin("emojibase-data", "17.0.0").tarball == "emojibase-data-17.0.0.tgz"


def test_search_words_list_each_emoji_once_and_tags_by_how_common_they_are():
    bird, flag, worker = (CLASS_NAMES.index(name) for name in ("bird", "country flag", "worker"))
    records = search_words(
        [
            Concept("1f986", "duck", bird, ("animal", "quack", "duck")),
            Concept("1f985", "eagle", bird, ("animal", "of prey", "143")),
            Concept("1f1f9-1f1e9", "flag: Chad", flag, ("TD",)),
            Concept("1f9d1-1f33e", "farmer", worker),
            Concept("1f469-1f33e", "woman farmer", worker),
            Concept("1f478", "woman alone", worker),
        ]
    )
    assert [record["id"] for record in records] == list(range(79))
    assert records[bird] == {
        "id": bird,
        "name": "bird",
        "examples": ["duck", "eagle"],
        "tags": ["animal", "quack"],
    }
    assert records[flag]["examples"] == ["Chad"]
    assert records[flag]["tags"] == []
    assert records[worker]["examples"] == ["farmer", "woman alone"]
