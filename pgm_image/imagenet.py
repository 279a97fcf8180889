"""The 1000 classes of ImageNet-1k by id, with the words they can be searched by (assets/imagenet_classes.json)."""

import json
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "assets" / "imagenet_classes.json"


def imagenet_classes() -> tuple[str, ...]:
    """Display names, unique whatever the case, in the order of ids: 0 is the tench, 1 the goldfish."""
    return tuple(_names_and_words())


def imagenet_words() -> dict[str, tuple[str, ...]]:
    """Display name -> its synonyms, then the groups it belongs to, such as "dog" or "musical instrument"."""
    return dict(_names_and_words())


@lru_cache(maxsize=1)
def _names_and_words() -> dict[str, tuple[str, ...]]:
    content = json.loads(FILE.read_text(encoding="utf-8"))
    words = [list(synonyms) for _, *synonyms in content["classes"]]
    for group, ids in content["groups"].items():
        for first, _, last in (part.partition("-") for part in ids.split(",")):
            for index in range(int(first), int(last or first) + 1):
                words[index].append(group)
    return {name: tuple(more) for (name, *_), more in zip(content["classes"], words, strict=True)}
