"""Balanced sampling."""

import numpy as np
import pytest

from tokenizer.balanced import BalancedSampler

# One row per image: class, style, concept, tone. Class 0 is large, class 1 small, class 2 has only toned images.
ROWS = np.array(
    [[0, style, concept, 0] for concept in range(10) for style in range(4)]
    + [[0, 0, 0, tone] for tone in range(1, 6)]
    + [[1, 0, 10, 0], [1, 1, 10, 0], [1, 0, 11, 0]]
    + [[2, 0, 12, tone] for tone in (1, 2)]
)


def draw(count: int = 40_000, seed: int = 0) -> np.ndarray:
    return BalancedSampler(*ROWS.T).draw(count, np.random.default_rng(seed))


def shares(values: np.ndarray) -> dict[int, float]:
    found, counts = np.unique(values, return_counts=True)
    return {int(value): count / len(values) for value, count in zip(found, counts, strict=True)}


def test_classes_are_equally_likely_whatever_their_size():
    assert shares(ROWS[draw(), 0]) == pytest.approx({0: 1 / 3, 1: 1 / 3, 2: 1 / 3}, abs=0.01)


def test_concepts_within_a_class_and_styles_within_a_concept_are_equally_likely():
    rows = ROWS[draw()]
    assert shares(rows[rows[:, 0] == 1, 2]) == pytest.approx({10: 0.5, 11: 0.5}, abs=0.02)
    assert shares(rows[rows[:, 2] == 10, 1]) == pytest.approx({0: 0.5, 1: 0.5}, abs=0.03)
    assert shares(rows[rows[:, 0] == 0, 2]) == pytest.approx(dict.fromkeys(range(10), 0.1), abs=0.02)


def test_half_of_a_toned_concept_is_drawn_without_tone():
    rows = ROWS[draw(200_000)]
    tones = shares(rows[(rows[:, 2] == 0) & (rows[:, 1] == 0), 3])
    assert tones == pytest.approx({0: 0.5, **dict.fromkeys(range(1, 6), 0.1)}, abs=0.05)


def test_a_concept_with_only_toned_images_is_still_drawn():
    rows = ROWS[draw()]
    assert shares(rows[rows[:, 0] == 2, 3]) == pytest.approx({1: 0.5, 2: 0.5}, abs=0.02)


def test_every_image_can_be_drawn_and_draws_repeat_with_their_seed():
    assert set(draw(100_000)) == set(range(len(ROWS)))
    assert np.array_equal(draw(50, seed=3), draw(50, seed=3))
    assert not np.array_equal(draw(50, seed=3), draw(50, seed=4))


def test_the_order_of_the_images_does_not_matter():
    shuffled = np.random.default_rng(0).permutation(len(ROWS))
    drawn = BalancedSampler(*ROWS[shuffled].T).draw(40_000, np.random.default_rng(0))
    assert shares(ROWS[shuffled][drawn, 0]) == pytest.approx({0: 1 / 3, 1: 1 / 3, 2: 1 / 3}, abs=0.01)


def test_a_single_image_is_enough_and_none_is_not():
    one = np.zeros(1, int)
    assert BalancedSampler(one, one, one, one).draw(3, np.random.default_rng(0)).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="empty split"):
        BalancedSampler(*np.zeros((4, 0), int))
