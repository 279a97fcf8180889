"""Prompts become cells: prefixes, blanks, spaces before blanks, and input nobody should type."""

import pytest

from pgm_text.prompt import FREE, SPACED, UNKNOWN, WITHIN, has_blanks, lay_out

FREEDOM = {FREE, WITHIN, SPACED}


def known_text(layout, tokenizer):
    return tokenizer.decode([token for token in layout.ids if token != UNKNOWN], stop_at_end=False)


@pytest.mark.parametrize("prompt", [None, ""])
def test_without_a_prompt_every_cell_is_free(tokenizer, prompt):
    layout = lay_out(prompt, tokenizer, 12)
    assert layout.ids == (UNKNOWN,) * 12 and layout.constraints == (FREE,) * 12


def test_a_prefix_is_followed_by_free_cells_up_to_the_length(tokenizer):
    layout = lay_out("lantern (noun):", tokenizer, 30)
    tokens = tokenizer.encode("lantern (noun):")
    assert layout.ids == (*tokens, *[UNKNOWN] * (30 - len(tokens)))
    assert set(layout.constraints[len(tokens) :]) == {FREE}


def test_a_space_at_the_end_becomes_the_first_character_of_the_next_token(tokenizer):
    with_space, without = (lay_out(f"lantern (noun):{end}", tokenizer, 30) for end in (" ", ""))
    assert with_space.ids == without.ids
    first = with_space.ids.index(UNKNOWN)
    assert with_space.constraints[first] == SPACED and set(with_space.constraints[first + 1 :]) == {FREE}
    two = lay_out("lantern  ", tokenizer, 30)
    assert known_text(two, tokenizer) == "lantern "  # one of the two spaces is fixed


@pytest.mark.parametrize("mark", ["____", "________", "[MASK]"])
def test_a_blank_has_as_many_cells_as_asked_and_the_text_ends_with_the_prompt(tokenizer, mark):
    prompt = f"a {mark} of wood"
    assert has_blanks(prompt)
    for cells in (1, 5):
        layout = lay_out(prompt, tokenizer, 38, blank_tokens=cells)
        head, tail = tokenizer.encode("a"), tokenizer.encode(" of wood")
        assert layout.ids == (*head, *[UNKNOWN] * cells, *tail)
        blank = layout.constraints[len(head) : len(head) + cells]
        assert blank == (SPACED, *[WITHIN] * (cells - 1))


def test_blanks_may_stand_anywhere_and_side_by_side(tokenizer):
    layout = lay_out("____(noun)____ ____", tokenizer, 38, blank_tokens=2)
    middle = tokenizer.encode("(noun)")
    assert layout.ids == (UNKNOWN, UNKNOWN, *middle, *[UNKNOWN] * 4)
    assert layout.constraints[2 + len(middle) :] == (WITHIN, WITHIN, SPACED, WITHIN)


def test_extend_continues_behind_blanks_or_stops_behind_a_prefix(tokenizer):
    assert len(lay_out("a ____ of", tokenizer, 38, extend=True)) == 38
    stopped = lay_out("a kind", tokenizer, 38, extend=False)
    assert stopped.ids == tuple(tokenizer.encode("a kind"))
    with pytest.raises(ValueError, match="prompt must hold at least one character or be continued"):
        lay_out("", tokenizer, 38, extend=False)


def test_three_underscores_are_text(tokenizer):
    assert not has_blanks("snake___case") and not has_blanks("mask")
    assert known_text(lay_out("snake___case", tokenizer, 38), tokenizer) == "snake___case"


@pytest.mark.parametrize(
    "prompt",
    [
        "a <|endoftext|> b",
        "<|bos|><|eos|>",
        "<b>bold</b><script>",
        "wave 👋🏽 hand",
        "שלום",
        "a\nb\tc",
        "nul \0 here",
        "é",
    ],  # fmt: skip
)
def test_everything_but_blanks_is_plain_text(tokenizer, prompt):
    layout = lay_out(prompt, tokenizer, 38)
    assert known_text(layout, tokenizer) == prompt
    assert not {tokenizer.bos_id, tokenizer.eos_id, tokenizer.mask_id} & set(layout.ids)


def test_only_spaces_are_kept(tokenizer):
    layout = lay_out("   ", tokenizer, 20)
    assert known_text(layout, tokenizer) == "  "
    assert layout.constraints[layout.ids.index(UNKNOWN)] == SPACED


def test_a_prompt_that_is_too_long_says_how_many_tokens_do_not_fit(tokenizer):
    words = "lantern " * 10_000
    count = len(tokenizer.encode(words.rstrip())) + 1
    with pytest.raises(ValueError, match=f"prompt has {count} tokens.*the text 38: {count - 38} do not fit"):
        lay_out(words, tokenizer, 38)
    with pytest.raises(ValueError, match="1 do not fit"):
        lay_out("____", tokenizer, 3)


@pytest.mark.parametrize(("prompt", "message"), [(5, "prompt must be a string or None"), ("a\ud800", "half of a")])
def test_what_is_no_text_is_refused(tokenizer, prompt, message):
    with pytest.raises(ValueError, match=message):
        lay_out(prompt, tokenizer, 38)
