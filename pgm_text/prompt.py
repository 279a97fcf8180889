"""From what a user wrote to the cells of a text: known tokens, blanks, and what each cell may hold.

A blank is `____` (four or more underscores) or `[MASK]`. Everything else is plain text and comes back to the letter,
names of special tokens included. Two rules make that so: where a blank ends inside a text, the end-of-text token is
forbidden in it; and the space in front of a blank is not a token of its own (no training text has one there) but
becomes the first character of the blank's first token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pgm.arguments import whole_number
from pgm_text.tokenizer import Tokenizer

BLANK_TOKENS = 4  # about three words of the bundled vocabulary
UNKNOWN = -1
FREE, WITHIN, SPACED = 0, 1, 2  # any token; no end of text; no end of text and a space first

_BLANK = re.compile(r"_{4,}|\[MASK\]")


@dataclass(frozen=True)
class Layout:
    """Cells of one text: ids (L,) with -1 where to generate, and the constraint of each cell."""

    ids: tuple[int, ...]
    constraints: tuple[int, ...]  # FREE, WITHIN or SPACED; of no meaning where a token is known

    def __len__(self) -> int:
        return len(self.ids)


def has_blanks(prompt: str | None) -> bool:
    """Whether the prompt marks what to fill."""
    return bool(prompt and _BLANK.search(prompt))


def lay_out(
    prompt: str | None,
    tokenizer: Tokenizer,
    length: int,
    *,
    blank_tokens: int = BLANK_TOKENS,
    extend: bool | None = None,
) -> Layout:
    """Cells of a text from a prompt.

    Without blanks the prompt is a prefix, continued up to `length` cells. With blanks the text ends with the prompt;
    each blank has `blank_tokens` cells. extend: True continues behind a prompt with blanks too, False never continues.
    Raises ValueError when the prompt is no string, or has more tokens than `length`, saying how many do not fit.
    """
    if prompt is not None and not isinstance(prompt, str):
        raise ValueError(f"prompt must be a string or None, got {prompt!r}")
    blank_tokens = whole_number("blank_tokens", blank_tokens, 1)
    if extend is None:
        extend = not has_blanks(prompt)
    ids: list[int] = []
    constraints: list[int] = []
    spaced = False

    def generate(count: int, constraint: int) -> None:
        nonlocal spaced
        ids.extend([UNKNOWN] * count)
        constraints.extend([SPACED if spaced else constraint] + [constraint] * (count - 1) if count else [])
        spaced = False

    pieces = _BLANK.split(prompt or "")
    for index, piece in enumerate(pieces):
        last = index == len(pieces) - 1
        known, spaced_now = piece, False
        if piece.endswith(" ") and (extend or not last):
            known, spaced_now = piece[:-1], True
        tokens = _encode(tokenizer, known)
        ids.extend(tokens)
        constraints.extend([WITHIN] * len(tokens))
        spaced = spaced_now
        if not last:
            generate(blank_tokens, WITHIN)
    needed = len(ids) + spaced
    if needed > length:
        raise ValueError(
            f"prompt has {needed} tokens, blanks included, and the text {length}: {needed - length} do not fit"
        )
    if extend:
        generate(length - len(ids), FREE)
    if not ids:
        raise ValueError("prompt must hold at least one character or be continued (extend), got an empty one")
    return Layout(tuple(ids), tuple(constraints))


def _encode(tokenizer: Tokenizer, text: str) -> list[int]:
    try:
        return tokenizer.encode(text) if text else []
    except ValueError as error:
        raise ValueError(f"prompt: {error}") from error
