"""Which emoji a vendor's icon shows: by code points where the set lists them, else by its name.

Code point sequences and skin tones follow UTS #51; names are the CLDR short names of emojibase-data.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pgm_image.emoji.scheme import CLASS_OF_SUBGROUP, LEFT_OUT_SUBGROUPS, Concept

MIXED_TONE = -1  # several people, different tones
_TONES = {f"1f3f{digit}": tone for tone, digit in enumerate("bcdef", start=1)}
# emoji presentation selector, zero width joiner, end of a tag sequence: sets disagree on writing them
_INVISIBLE = {"fe0f", "200d", "e007f"}
_OPTIONAL_ENDINGS = ("-face", "-button", "-blood-type")  # a set may add them to a CLDR name or drop them
_RENAMED = {  # older CLDR name to today's, as slugs
    "bride-with-veil": "person-with-veil",
    "direct-hit": "bullseye",
    "dizzy-face": "face-with-crossed-out-eyes",
    "exclamation-mark": "red-exclamation-mark",
    "flag-for-cocos-islands": "flag-cocos-keeling-islands",
    "flag-for-myanmar": "flag-myanmar-burma",
    "flag-for-turkey": "flag-turkiye",
    "heavy-heart-exclamation": "heart-exclamation",
    "hugging-face": "smiling-face-with-open-hands",
    "man-and-woman-holding-hands": "woman-and-man-holding-hands",
    "man-in-suit-levitating": "person-in-suit-levitating",
    "pistol": "water-pistol",
    "pouting-face": "enraged-face",
    "question-mark": "red-question-mark",
    "two-men-holding-hands": "men-holding-hands",
    "two-women-holding-hands": "women-holding-hands",
    "up-exclamation-button": "up-button",
    "up-text-button": "up-button",
}


def normalise_key(code_points: str) -> str:
    """Write a sequence in lower case, without invisible code points: "0023-FE0F-20E3" as "0023-20e3"."""
    points = re.split("[-_]", code_points.lower())
    return "-".join(point for point in points if point not in _INVISIBLE)


def split_tone(key: str) -> tuple[str, int]:
    """Take the skin tone out of a normalised key.

    Returns (key without tone, tone): 0 no tone given, 1..5 light to dark, `MIXED_TONE` where several differ.
    """
    points = key.split("-")
    tones = {_TONES[point] for point in points if point in _TONES}
    base = "-".join(point for point in points if point not in _TONES)
    return base, (0 if not tones else tones.pop() if len(tones) == 1 else MIXED_TONE)


def slug(name: str) -> str:
    """Write a CLDR name the way icon sets name icons: "flag: Côte d’Ivoire" becomes "flag-cote-divoire"."""
    spelled = name.replace("#", "pound").replace("*", "asterisk")
    plain = unicodedata.normalize("NFKD", spelled).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"['.]", "", plain)).strip("-")


def slug_variants(icon: str) -> list[str]:
    """Slugs under which an icon may be listed, the likeliest first."""
    for old, new in _RENAMED.items():
        if icon == old or icon.startswith(f"{old}-"):  # a skin tone may follow
            return [new + icon.removeprefix(old), icon]
    variants = [icon]
    for prefix in ("flag-for-flag-", "flag-for-"):
        if icon.startswith(prefix):
            rest = icon.removeprefix(prefix)
            variants.append(f"flag-{rest}")
            if "flag" in rest:  # "flag-for-black-flag"
                variants.append(rest)
    variants.append(icon.replace("cat-face-", "cat-"))
    for ending in _OPTIONAL_ENDINGS:
        variants.append(icon.removesuffix(ending) if icon.endswith(ending) else icon + ending)
    # CLDR writes "&", which a slug drops
    return variants + [variant.replace("-and-", "-") for variant in variants if "-and-" in variant]


@dataclass(frozen=True)
class Match:
    """What an icon shows: a concept and a skin tone (0 default, 1..5, or `MIXED_TONE`)."""

    concept: Concept
    tone: int


@dataclass
class ConceptIndex:
    """Concepts by normalised code points and by slug; tones included."""

    concepts: list[Concept] = field(default_factory=list)
    by_key: dict[str, Match] = field(default_factory=dict)
    by_slug: dict[str, Match] = field(default_factory=dict)
    by_packed_slug: dict[str, Match] = field(default_factory=dict)

    def add(self, concept: Concept, key: str, name: str, tone: int) -> None:
        """List `concept` in `tone` under one more key and name; the first entry of a name wins."""
        match = Match(concept, tone)
        self.by_key.setdefault(key, match)
        self.by_slug.setdefault(slug(name), match)
        self.by_packed_slug.setdefault(slug(name).replace("-", ""), match)

    def match_key(self, key: str) -> Match | None:
        """The emoji of a normalised code point key, or None."""
        return self.by_key.get(key)

    def match_slug(self, icon: str) -> Match | None:
        """The emoji of an icon name, with its words separated by dashes or not at all, or None."""
        for variant in slug_variants(icon):
            if variant in self.by_slug:
                return self.by_slug[variant]
        # a name without dashes may have lost them; one with dashes has not
        return None if "-" in icon else self.by_packed_slug.get(icon)


def index_concepts(entries: Iterable[Mapping], subgroups: Mapping[str, str]) -> ConceptIndex:
    """Index emojibase-data entries that belong to one of our classes.

    Args:
        entries: the records of its `data.json`; tone variants sit in "skins".
        subgroups: its subgroup numbers, as strings, to their Unicode names.

    Raises:
        ValueError: for a subgroup that the scheme does not know.
    """
    index = ConceptIndex()
    for entry in entries:
        if "subgroup" not in entry:  # single regional indicators
            continue
        subgroup = subgroups[str(entry["subgroup"])]
        if subgroup in LEFT_OUT_SUBGROUPS:
            continue
        if subgroup not in CLASS_OF_SUBGROUP:
            raise ValueError(f"subgroup {subgroup!r} of {entry['label']!r} belongs to no class of the scheme")
        key = normalise_key(entry["hexcode"])
        concept = Concept(key, entry["label"], CLASS_OF_SUBGROUP[subgroup], tuple(entry.get("tags", ())))
        index.concepts.append(concept)
        index.add(concept, key, concept.name, 0)
        for skin in entry.get("skins", ()):
            skin_key = normalise_key(skin["hexcode"])
            index.add(concept, skin_key, skin["label"], split_tone(skin_key)[1])
    return index
