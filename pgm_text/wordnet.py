"""Dictionary entries "word, word (noun): gloss" read from the data files of WordNet 3.0 (format: wndb(5WN)).

One synset gives one entry. Glosses come as a definition followed by quoted examples; the examples are kept apart, so
that an entry can be shortened at a sentence and never inside one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PARTS_OF_SPEECH = {"noun": "noun", "verb": "verb", "adj": "adjective", "adv": "adverb"}
_EXAMPLE = re.compile(r'[;:,]?\s*"([^"]*)"?(?:\s*-+\s*[^;"]*)?')
_SYNTACTIC_MARKER = re.compile(r"\((?:a|p|ip)\)$")  # where an adjective may stand; no part of the word


@dataclass(frozen=True)
class Entry:
    synset: str  # part of speech and file offset, unique in WordNet: "noun-00001740"
    words: tuple[str, ...]
    part_of_speech: str
    definition: str
    examples: tuple[str, ...]

    def text(self, examples: int | None = 1) -> str:
        """The entry on one line with at most `examples` examples; None keeps all."""
        quoted = "".join(f'; "{example}"' for example in self.examples[:examples])
        return f"{', '.join(self.words)} ({self.part_of_speech}): {self.definition}{quoted}"


def clean_text(text: str) -> str:
    """Typewriter quotes made plain (`so' becomes 'so'), white space collapsed, none before marks."""
    text = text.replace("``", '"').replace("''", '"').replace("`", "'")
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"\s+([,;.?!)])", r"\1", text)
    return re.sub(r"\(\s+", "(", text).strip()


def split_gloss(gloss: str) -> tuple[str, tuple[str, ...]]:
    """Definition and examples of a gloss: the quoted strings after the first `; "`, without attributions."""
    gloss = clean_text(gloss)
    start = re.search(r'[;:,]\s*"', gloss)
    if not start:
        return gloss.strip(" ;:,"), ()
    definition, rest = gloss[: start.start()].strip(" ;:,"), gloss[start.start() :]
    examples = (clean_text(match.group(1)).strip(" ;,") for match in _EXAMPLE.finditer(rest))
    return definition, tuple(example for example in examples if len(example) > 2)


def read_line(line: str, part_of_speech: str, key: str) -> Entry:
    """Parse one line of a data file."""
    head, _, gloss = line.partition(" | ")
    fields = head.split()
    count = int(fields[3], 16)
    words = (_SYNTACTIC_MARKER.sub("", word).replace("_", " ") for word in fields[4 : 4 + 2 * count : 2])
    definition, examples = split_gloss(gloss)
    return Entry(f"{key}-{fields[0]}", tuple(dict.fromkeys(words)), part_of_speech, definition, examples)


def find_data(folder: str | Path) -> Path:
    """The folder holding data.noun, data.verb, data.adj, data.adv: `folder` or a usual place below it."""
    for candidate in (Path(folder), Path(folder) / "usr/share/wordnet", Path(folder) / "dict"):
        if all((candidate / f"data.{key}").is_file() for key in PARTS_OF_SPEECH):
            return candidate
    missing = ", ".join(f"data.{key}" for key in PARTS_OF_SPEECH)
    raise FileNotFoundError(f"{folder} is not a WordNet 3.0 folder: it must hold {missing}")


def read_entries(folder: str | Path) -> Iterator[Entry]:
    """All entries of a WordNet folder, in file order; those without a definition are left out."""
    for key, part_of_speech in PARTS_OF_SPEECH.items():
        with open(Path(folder) / f"data.{key}", encoding="utf-8") as file:
            for line in file:
                if line.startswith("  "):  # the licence notice
                    continue
                entry = read_line(line, part_of_speech, key)
                if entry.definition:
                    yield entry


def licence_notice(folder: str | Path) -> str:
    """The notice at the head of the data files, which every copy of the data has to carry."""
    with open(Path(folder) / "data.noun", encoding="utf-8") as file:
        lines = []
        for line in file:
            if not line.startswith("  "):
                break
            lines.append(line.strip().partition(" ")[2].rstrip())
    return "\n".join(lines).strip() + "\n"
