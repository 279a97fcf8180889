"""Nearest training images: exact on copies, and a memorising model is told from an inventing one."""

import numpy as np
import pytest

from pgm_image.evaluation.nearest import (
    QUANTILES,
    closest_pairs,
    compare_nearest,
    nearest,
    pixel_rows,
    weighted_quantiles,
)


def noise(count, seed):
    return np.random.default_rng(seed).integers(0, 256, (count, 64, 64, 3), dtype=np.uint8)


def test_a_copy_is_found_at_distance_zero():
    train = noise(20, seed=0)
    distances, indices = nearest(pixel_rows(train[[7, 3]]), pixel_rows(train), chunk=1)
    assert indices.tolist() == [7, 3]
    assert distances.tolist() == [0.0, 0.0]


def test_pixel_distance_is_the_error_in_grey_levels():
    grey = np.full((1, 64, 64, 3), 100, dtype=np.uint8)
    distances, _ = nearest(pixel_rows(grey), pixel_rows(grey + 12))
    assert distances[0] == pytest.approx(12, rel=1e-5)


def test_nearest_agrees_with_all_distances():
    rng = np.random.default_rng(0)
    queries, train = (rng.standard_normal((count, 9)).astype(np.float32) for count in (13, 40))
    every = np.linalg.norm(queries[:, None] - train[None], axis=2)
    distances, indices = nearest(queries, train, chunk=5)
    np.testing.assert_array_equal(indices, every.argmin(axis=1))
    np.testing.assert_allclose(distances, every.min(axis=1), rtol=1e-5)


def test_quantiles_follow_the_weights():
    values = np.array([3.0, 1.0, 2.0])
    assert weighted_quantiles(values, np.ones(3), (0.0, 0.5, 1.0)) == (1.0, 2.0, 3.0)
    assert weighted_quantiles(values, np.array([8.0, 1.0, 1.0]), (0.0, 0.5, 1.0)) == (1.0, 3.0, 3.0)


def test_a_memorising_model_is_told_from_an_inventing_one():
    heldout = np.linspace(10, 20, 200)
    weights = np.ones(200)
    inventing = compare_nearest("pixels", np.linspace(10, 20, 500), heldout, weights, n_train=1000)
    copying = compare_nearest("pixels", np.linspace(0, 3, 500), heldout, weights, n_train=1000)
    assert inventing.share_below_1 == pytest.approx(0.01, abs=0.01)
    assert inventing.share_below_5 == pytest.approx(0.05, abs=0.01)
    assert copying.share_below_1 == 1.0
    assert len(copying.generated_quantiles) == len(QUANTILES)


def test_closest_pairs_are_sorted_and_name_both_images():
    pairs = closest_pairs(np.array([3.0, 1.0, 2.0]), np.array([30, 10, 20]), count=2)
    assert pairs == [(1, 10, 1.0), (2, 20, 2.0)]
