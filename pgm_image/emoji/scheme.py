"""The label scheme of the emoji pictures: 79 classes merged from Unicode subgroups, and 7 vendor styles.

Unicode (UTS #51, emoji ordering) sorts emoji into about 100 subgroups, some with a handful of members.
They are merged here until each class has at least 32 pictures, tone variants not counted.
The position of a class or style in its tuple is its id.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class PackagePin:
    """An npm package at one version."""

    package: str
    version: str

    @property
    def tarball(self) -> str:
        """File name that `npm pack` gives: the scope joined by a dash."""
        return f"{self.package.removeprefix('@').replace('/', '-')}-{self.version}.tgz"


@dataclass(frozen=True)
class Style:
    """One vendor's artwork: the package it is read from, and whom to credit."""

    name: str
    pin: PackagePin
    artwork: str  # credit line
    licence: str  # SPDX identifier of the artwork's licence
    source: str  # home of the artwork
    # icons that show something else than their name says, or next to nothing
    left_out: frozenset[str] = frozenset()


LABELS = PackagePin("emojibase-data", "17.0.0")  # names and subgroups, MIT

STYLES: tuple[Style, ...] = (
    Style(
        "noto",
        PackagePin("@iconify-json/noto", "1.2.9"),
        "Noto Emoji, Google",
        "Apache-2.0",
        "https://github.com/googlefonts/noto-emoji",
    ),
    Style(
        "noto-v1",
        PackagePin("@iconify-json/noto-v1", "1.2.5"),
        "Noto Emoji (first design), Google",
        "Apache-2.0",
        "https://github.com/googlefonts/noto-emoji",
    ),
    Style(
        "twemoji",
        PackagePin("@iconify-json/twemoji", "1.2.5"),
        "Twemoji, Twitter and other contributors",
        "CC-BY-4.0",
        "https://github.com/jdecked/twemoji",
    ),
    Style(
        "emojione",
        PackagePin("@iconify-json/emojione", "1.2.3"),
        "EmojiOne 2.3, EmojiOne",
        "CC-BY-4.0",
        "https://github.com/EmojiTwo/emojitwo",
    ),
    Style(
        "fluent-emoji-flat",
        PackagePin("@iconify-json/fluent-emoji-flat", "1.2.6"),
        "Fluent Emoji (flat), Microsoft",
        "MIT",
        "https://github.com/microsoft/fluentui-emoji",
    ),
    Style(
        "fluent-3d",
        PackagePin("@lobehub/fluent-emoji-3d", "1.1.0"),
        "Fluent Emoji (3D), Microsoft",
        "MIT",
        "https://github.com/microsoft/fluentui-emoji",
    ),
    Style(
        "fxemoji",
        PackagePin("@iconify-json/fxemoji", "1.2.2"),
        "FxEmoji, Mozilla",
        "Apache-2.0",
        "https://github.com/mozilla/fxemoji",
        frozenset({"construction", "fog", "keyboard", "kiss", "sunglasses", "tramcar", "up", "window"}),
    ),
)

# name -> Unicode subgroups it gathers; the order fixes the ids 0..78
CLASSES: dict[str, tuple[str, ...]] = {
    "smiling face": ("face-smiling",),
    "loving face": ("face-affection",),
    "playful face": ("face-tongue", "face-hat", "face-glasses"),
    "face with hand": ("face-hand",),
    "neutral face": ("face-neutral-skeptical",),
    "sleepy face": ("face-sleepy",),
    "sick face": ("face-unwell",),
    "worried face": ("face-concerned",),
    "angry face": ("face-negative",),
    "monster face": ("face-costume",),
    "cat or monkey face": ("cat-face", "monkey-face"),
    "heart": ("heart",),
    "emotion symbol": ("emotion",),
    "open hand": ("hand-fingers-open",),
    "finger sign": ("hand-fingers-partial",),
    "pointing finger": ("hand-single-finger",),
    "fist or thumb": ("hand-fingers-closed",),
    "two hands": ("hands", "hand-prop"),
    "body part": ("body-parts",),
    "person": ("person",),
    "person gesturing": ("person-gesture",),
    "worker": ("person-role",),
    "fantasy person": ("person-fantasy",),
    "person in action": ("person-activity", "person-resting"),
    "athlete": ("person-sport",),
    "family or couple": ("family", "person-symbol"),
    "mammal": ("animal-mammal",),
    "bird": ("animal-bird",),
    "reptile or amphibian": ("animal-reptile", "animal-amphibian"),
    "sea animal": ("animal-marine",),
    "insect": ("animal-bug",),
    "flower": ("plant-flower",),
    "plant": ("plant-other",),
    "fruit": ("food-fruit",),
    "vegetable": ("food-vegetable",),
    "meal": ("food-prepared",),
    "asian food": ("food-asian",),
    "sweet food": ("food-sweet",),
    "drink": ("drink",),
    "dishware": ("dishware",),
    "globe or landscape": ("place-map", "place-geographic"),
    "building": ("place-building", "place-religious"),
    "city scene": ("place-other",),
    "land vehicle": ("transport-ground",),
    "boat": ("transport-water",),
    "aircraft": ("transport-air",),
    "clock or time": ("time",),
    "sky and weather": ("sky-weather",),
    "celebration": ("event",),
    "medal or trophy": ("award-medal",),
    "sport": ("sport",),
    "game or toy": ("game",),
    "arts and crafts": ("arts-crafts",),
    "clothing": ("clothing",),
    "sound or music": ("sound", "music"),
    "musical instrument": ("musical-instrument",),
    "phone": ("phone",),
    "computer": ("computer",),
    "camera and light": ("light-video",),
    "book or paper": ("book-paper",),
    "money": ("money",),
    "mail": ("mail",),
    "writing tool": ("writing",),
    "office supply": ("office",),
    "lock or key": ("lock",),
    "tool": ("tool",),
    "science or medicine": ("science", "medical"),
    "household item": ("household",),
    "other object": ("other-object", "hotel"),
    "road or warning sign": ("transport-sign", "warning"),
    "arrow": ("arrow",),
    "religious symbol": ("religion",),
    "zodiac sign": ("zodiac",),
    "media button": ("av-symbol",),
    "letter or digit": ("alphanum", "keycap"),
    "coloured shape": ("geometric",),
    "symbol": ("other-symbol", "math", "punctuation", "currency", "gender"),
    "country flag": ("country-flag", "subdivision-flag"),
    "banner": ("flag",),
}

CLASS_NAMES: tuple[str, ...] = tuple(CLASSES)
STYLE_NAMES: tuple[str, ...] = tuple(style.name for style in STYLES)

# subgroups that are parts of other emoji rather than pictures of something
LEFT_OUT_SUBGROUPS: frozenset[str] = frozenset({"skin-tone", "hair-style"})

CLASS_OF_SUBGROUP: dict[str, int] = {
    subgroup: class_id for class_id, subgroups in enumerate(CLASSES.values()) for subgroup in subgroups
}


@dataclass(frozen=True)
class Concept:
    """One emoji, its skin tones aside, whoever drew it."""

    key: str  # code points in hexadecimal, see `matching.normalise_key`
    name: str  # CLDR short name
    class_id: int
    tags: tuple[str, ...] = ()  # CLDR search words
