"""Undo the spacing artefacts of tokenised benchmark texts before they are encoded.

Each is a list of replacements in order; OpenWebText and AG News need none. The order matters and follows the published
evaluations, oddities included, because their perplexities depend on it; checked on the pairs of the parity fixtures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Rule = tuple[str, str]  # regular expression, replacement


def _apply(rules: Sequence[Rule], text: str) -> str:
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text)
    return text


_WIKITEXT: tuple[Rule, ...] = (
    (r"s '", "s'"),
    (r" @([-,.])@ ", r"\1"),
    (r" ([:;.!?,]) ", r"\1 "),
    (r"\(\s*([^)]*?)\s*\)", r"(\1)"),
    (r"\[\s*([^\]]*?)\s*\]", r"[\1]"),
    (r"\{\s*([^}]*?)\s*\}", r"{\1}"),
    (r'"\s*([^"]*?)\s*"', r'"\1"'),
    (r"'\s*([^']*?)\s*'", r"'\1'"),
    (r"= = = =", "===="),
    (r"= = =", "==="),
    (r"= =", "=="),
    (" \N{DEGREE SIGN} ", "\N{DEGREE SIGN}"),
    (r" \n", "\n"),
    (r"\n ", "\n"),
    (r" N ", " 1 "),
    (r" 's", "'s"),
)

_PTB: tuple[Rule, ...] = (
    (r" 's", "'s"),
    (r"s ' ", "s' "),
    (r" n't", "n't"),
    (r" \n ", "\n"),
    (r"\\/", "/"),
    (r" N ", " 1 "),
    (r"\$ 1", "$1"),
    (r"# 1", "#1"),
    (r"<unk>", "?"),
)

_LM1B: tuple[Rule, ...] = (
    (r"http : / / ", "http://"),
    (r"https : / / ", "https://"),
    (r" '(\w+)", r"'\1"),
    (r"( \w+) \.( |$)", r"\1.\2"),  # a full stop joins a word, not a bracket
    (r" ([:;!?,]) ", r"\1 "),
    (r" ([!?])$", r"\1"),
    (r'"\s*([^"]*?)\s*"', r'"\1"'),
    (r"'\s*([^']*?)\s*'", r"'\1'"),
    (r"([$£]) ", r"\1"),
    (r"\(\s*([^)]*?)\s*\)", r"(\1)"),
    (r"\[\s*([^\]]*?)\s*\]", r"[\1]"),
    (r" / ", "/"),
)

_LAMBADA: tuple[Rule, ...] = ((r"[“”]", '"'),)


def wikitext(text: str) -> str:
    return _apply(_WIKITEXT, text)


def ptb(text: str) -> str:
    return _apply(_PTB, text)


def lm1b(text: str) -> str:
    return _apply(_LM1B, text)


def lambada(text: str) -> str:
    """The benchmark's own preparation also puts a line break in front."""
    return "\n" + _apply(_LAMBADA, text).strip()


def scientific_papers(text: str) -> str:
    return lm1b(wikitext(text))


DETOKENIZERS: dict[str, Callable[[str], str]] = {
    "wikitext": wikitext,
    "ptb": ptb,
    "lm1b": lm1b,
    "lambada": lambada,
    "scientific_papers": scientific_papers,
}
