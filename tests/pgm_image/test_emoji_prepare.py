"""Building emoji shards from pictures made here, and counting the real ones if the packages are cached."""

import io
import json
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pgm_image.emoji import prepare, sources
from pgm_image.emoji.matching import MIXED_TONE, ConceptIndex, Match
from pgm_image.emoji.prepare import build_shards, prepare_emoji, select_pictures, split_concepts
from pgm_image.emoji.scheme import CLASS_NAMES, LABELS, STYLE_NAMES, STYLES, Concept, PackagePin
from pgm_image.emoji.sources import Icon, default_cache, fetch, read_concepts, read_icons, svg_icons

# classes of 12, 12 and 6
CONCEPTS = [Concept(f"{number:x}", f"emoji {number}", number // 12) for number in range(30)]


def coloured_icon(concept: Concept | None, tone: int = 0, red: int = 0) -> Icon:
    green = int(concept.key, 16) if concept else 0
    buffer = io.BytesIO()
    Image.new("RGBA", (20, 20), (red, green, tone + 1, 255)).save(buffer, "WEBP", lossless=True)
    return Icon("icon", Match(concept, tone) if concept else None, buffer.getvalue())


@pytest.fixture
def icons() -> dict[str, list[Icon]]:
    toned = [coloured_icon(CONCEPTS[0], tone, red=1) for tone in (1, 5)]
    return {
        "noto": [coloured_icon(concept, red=1) for concept in CONCEPTS] + toned,
        "twemoji": [coloured_icon(concept, red=2) for concept in CONCEPTS[:20]],
    }


@pytest.fixture
def index() -> ConceptIndex:
    return ConceptIndex(concepts=[*CONCEPTS, Concept("ffff", "drawn by nobody", 3)])


def load(folder: Path, manifest: dict, split: str) -> dict[str, np.ndarray]:
    shards = [np.load(folder / name) for name in manifest["splits"][split]]
    return {key: np.concatenate([shard[key] for shard in shards]) for key in shards[0]}


def test_shards_hold_each_picture_with_its_labels(tmp_path, monkeypatch, index, icons):
    monkeypatch.setattr(prepare, "SHARD_IMAGES", 20)
    returned = build_shards(tmp_path, index, icons, size=16, processes=1, heldout=0.1, seed=0)
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest == returned
    assert manifest["splits"]["train"] == ["train-00000.npz", "train-00001.npz", "train-00002.npz"]
    assert manifest["classes"] == list(CLASS_NAMES)
    assert manifest["styles"] == list(STYLE_NAMES)
    assert [licence["style"] for licence in manifest["licences"]] == list(STYLE_NAMES)
    assert len(manifest["concepts"]) == 30
    total = 0
    for split in ("train", "heldout"):
        part = load(tmp_path, manifest, split)
        total += len(part["images"])
        assert part["images"].shape[1:] == (16, 16, 3)
        assert {key: part[key].dtype.name for key in part} == {
            "images": "uint8",
            "class_id": "int16",
            "style_id": "int16",
            "concept_id": "int32",
            "tone": "int8",
        }
        for image, class_id, style_id, concept_id, tone in zip(*part.values(), strict=True):
            concept = manifest["concepts"][concept_id]
            red = {"noto": 1, "twemoji": 2}[manifest["styles"][style_id]]
            assert (image == (red, int(concept["key"], 16), tone + 1)).all()
            assert concept["class_id"] == class_id
            assert concept["heldout"] == (split == "heldout")
        assert manifest["counts"][split]["images"] == len(part["images"])
    assert total == 52


def test_building_twice_gives_the_same_files(tmp_path, index, icons):
    for name in ("first", "second"):
        build_shards(tmp_path / name, index, icons, size=16, processes=1, heldout=0.1, seed=3)
    files = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert files == ["heldout-00000.npz", "manifest.json", "train-00000.npz"]
    for name in files:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_a_second_build_leaves_no_shard_of_the_first(tmp_path, index, icons):
    (tmp_path / "train-00007.npz").write_bytes(b"old")
    build_shards(tmp_path, index, icons, size=16, processes=1, heldout=0, seed=0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "train-00000.npz"]


def test_unmatched_mixed_and_second_drawings_are_left_out_and_counted():
    concept = CONCEPTS[0]
    tones = (0, 0, 2, MIXED_TONE)
    chosen, dropped = select_pictures(
        {"emojione": [coloured_icon(None), *(coloured_icon(concept, tone) for tone in tones)]}
    )
    assert [(picture.concept, picture.tone) for picture in chosen] == [(concept, 0), (concept, 2)]
    assert dropped["emojione"] == {"unmatched": 1, "mixed_tone": 1, "duplicate": 1}
    assert dropped["noto"] == {"unmatched": 0, "mixed_tone": 0, "duplicate": 0}


def test_each_class_of_ten_concepts_holds_some_out_and_smaller_ones_none():
    held = split_concepts(CONCEPTS, 0.05, seed=0)
    assert [concept.class_id for concept in CONCEPTS if concept.key in held] == [0, 1]


def test_the_share_held_out_is_that_asked_for():
    many = [Concept(f"{number:x}", "", 0) for number in range(200)]
    assert len(split_concepts(many, 0.05, seed=0)) == 10
    assert len(split_concepts(many, 0.25, seed=0)) == 50
    assert split_concepts(many, 0.0, seed=0) == set()


def test_the_split_depends_on_the_seed_and_not_on_the_order():
    assert split_concepts(CONCEPTS, 0.3, seed=1) == split_concepts(CONCEPTS[::-1], 0.3, seed=1)
    assert split_concepts(CONCEPTS, 0.3, seed=1) != split_concepts(CONCEPTS, 0.3, seed=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 8}, "size must be between 16 and 256 pixels, got 8"),
        ({"processes": 0}, "processes must be an integer >= 1, got 0"),
        ({"heldout": 0.9}, "heldout must be between 0 and 0.5, got 0.9"),
    ],
)
def test_arguments_out_of_range_are_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        prepare_emoji(tmp_path, **options)


def test_a_missing_tarball_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no emojibase-data-17.0.0.tgz"):
        prepare_emoji(tmp_path / "out", packages=tmp_path)


def test_without_npm_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(sources.shutil, "which", lambda name: None)
    with pytest.raises(FileNotFoundError, match="npm is needed to fetch some-set: install Node.js"):
        fetch(PackagePin("some-set", "1.0.0"), tmp_path)


def test_an_npm_failure_is_passed_on_in_one_sentence(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr="npm error code E404\nnpm error more\n")
    monkeypatch.setattr(sources.shutil, "which", lambda name: "npm")
    monkeypatch.setattr(sources.subprocess, "run", lambda *arguments, **options: failed)
    with pytest.raises(OSError, match=r"npm could not fetch some-set@1.0.0: npm error code E404$"):
        fetch(PackagePin("some-set", "1.0.0"), tmp_path)


def test_a_broken_tarball_is_refused(tmp_path):
    pin = PackagePin("some-set", "1.0.0")
    (tmp_path / pin.tarball).write_bytes(b"not a tarball")
    with pytest.raises(OSError, match="not a readable npm tarball"):
        fetch(pin, tmp_path)


def test_a_cached_tarball_is_read_without_npm(tmp_path, monkeypatch):
    monkeypatch.setattr(sources.shutil, "which", lambda name: None)
    pin = PackagePin("some-set", "1.0.0")
    with tarfile.open(tmp_path / pin.tarball, "w:gz") as tar:
        member = tarfile.TarInfo("package/package.json")
        member.size = 2
        tar.addfile(member, io.BytesIO(b"{}"))
    assert fetch(pin, tmp_path) == tmp_path / pin.tarball


def test_icons_are_matched_by_code_points_where_a_set_lists_them():
    index = ConceptIndex()
    duck = Concept("1f986", "duck", CLASS_NAMES.index("bird"))
    index.add(duck, duck.key, duck.name, 0)
    bodies = {"canard": {"body": ""}, "duck": {"body": "", "hidden": True}, "up": {"body": ""}}
    icon_set = {"width": 8, "height": 8, "icons": bodies}
    listed = list(svg_icons(icon_set, {"1f986": "canard"}, index, left_out={"up"}))
    assert [(icon.name, icon.match.concept) for icon in listed] == [("canard", duck)]
    named = list(svg_icons({**icon_set, "aliases": {"duck": {"parent": "canard"}}}, {}, index))
    assert [(icon.name, icon.match) for icon in named] == [("canard", Match(duck, 0)), ("up", None)]


@pytest.fixture(scope="module")
def cached() -> Path:
    missing = [pin.tarball for pin in (LABELS, *(style.pin for style in STYLES))]
    missing = [name for name in missing if not (default_cache() / name).exists()]
    if missing:
        pytest.skip(f"npm packages are not in the cache: {', '.join(missing)}")
    return default_cache()


def test_the_real_packages_map_as_many_pictures_as_they_did_when_pinned(cached):
    index = read_concepts(cached, download=False)
    icons = {style.name: list(read_icons(style, index, cached, download=False)) for style in STYLES}
    pictures, _ = select_pictures(icons)
    counts = prepare.count_pictures(pictures)
    assert {name: tuple(kinds.values()) for name, kinds in counts["styles"].items()} == {
        "noto": (1652, 1650),
        "noto-v1": (1232, 885),
        "twemoji": (1914, 1650),
        "emojione": (1369, 410),
        "fluent-emoji-flat": (1594, 1545),
        "fluent-3d": (1855, 1520),
        "fxemoji": (483, 0),
    }
    assert min(kinds["base"] for kinds in counts["classes"].values()) == 32
    toned = {name for name, kinds in counts["classes"].items() if kinds["toned"]}
    assert len(toned) == 13
    for style_id, style in enumerate(STYLE_NAMES):  # one picture of each style draws
        picture = next(picture for picture in pictures if picture.style_id == style_id)
        image = prepare.render(picture.data, 16)
        assert image.shape == (16, 16, 3), style
        assert image.std() > 5, style
