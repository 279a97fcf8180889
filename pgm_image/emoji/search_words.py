"""Words under which a class can be found: the names of its emoji and the search words CLDR gives them."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pgm_image.emoji.scheme import CLASS_NAMES, Concept
from pgm_image.emoji.sources import default_cache, read_concepts

MOST_TAGS = 20  # of a class, the commonest first


def search_words(concepts: Sequence[Concept]) -> list[dict]:
    """One record per class: {"id", "name", "examples": names of its emoji, "tags": further words}.

    "flag: Chad" is listed as "Chad", and "woman farmer" not beside "farmer".
    Tags are single words, those that most of the class's emoji share first.
    """
    records = []
    for class_id, class_name in enumerate(CLASS_NAMES):
        members = [concept for concept in concepts if concept.class_id == class_id]
        names = list(dict.fromkeys(member.name.removeprefix("flag: ") for member in members))
        examples = [name for name in names if _without_gender(name) not in set(names) - {name}]
        known = " ".join([class_name, *examples]).lower()
        tags = Counter(tag for member in members for tag in member.tags if _is_word(tag) and tag not in known)
        ranked = sorted(tags, key=lambda tag: (-tags[tag], tag))
        records.append({"id": class_id, "name": class_name, "examples": examples, "tags": ranked[:MOST_TAGS]})
    return records


def _is_word(tag: str) -> bool:
    return tag.replace("-", "").isalpha() and not tag.isupper()  # upper case: country codes


def _without_gender(name: str) -> str:
    for word in ("woman", "man", "women", "men"):
        if name.startswith(f"{word} "):
            rest = name.removeprefix(f"{word} ")
            return f"person {rest}" if rest.split()[0].endswith("ing") else rest
    return name


def main() -> None:
    """Write the words of all classes as JSON."""
    parser = argparse.ArgumentParser(description="Write the words under which each class is found.")
    parser.add_argument("--out", required=True, type=Path, help="JSON file to write")
    parser.add_argument("--packages", type=Path, help="folder with the npm tarballs (default: fetch them)")
    args = parser.parse_args()
    index = read_concepts(args.packages or default_cache(), download=args.packages is None)
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in search_words(index.concepts))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(f'{{"model": "emoji64", "classes": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
