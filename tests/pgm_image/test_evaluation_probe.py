"""The linear probe and its scores."""

import numpy as np
import pytest
import torch

from pgm_image.evaluation.probe import accuracy, class_balanced_weights, fit_linear_probe


def clusters(count, seed, labels=7, width=12):
    """Features (count, width) around one centre a label, and the labels."""
    centres = 3 * np.random.default_rng(0).standard_normal((labels, width))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, labels, count)
    return (centres[y] + rng.standard_normal((count, width))).astype(np.float32), y


def test_separable_classes_are_recognised_on_new_samples():
    probe = fit_linear_probe(*clusters(400, seed=1), num_labels=7)
    features, labels = clusters(200, seed=2)
    assert accuracy(probe.logits(features), labels).top1 > 0.95


def test_shuffled_labels_are_not_recognised():
    features, labels = clusters(400, seed=1)
    shuffled = np.random.default_rng(3).permutation(labels)
    probe = fit_linear_probe(features, shuffled, num_labels=7)
    assert accuracy(probe.logits(clusters(200, seed=2)[0]), clusters(200, seed=2)[1]).top1 < 0.4


def test_the_same_input_gives_the_same_probe():
    first, second = (fit_linear_probe(*clusters(100, seed=1), num_labels=7) for _ in range(2))
    assert torch.equal(first.weight, second.weight)
    assert torch.equal(first.bias, second.bias)


def test_a_constant_feature_does_no_harm():
    features, labels = clusters(200, seed=1)
    features[:, 0] = 5.0
    probe = fit_linear_probe(features, labels, num_labels=7)
    assert torch.isfinite(probe.logits(features)).all()


def test_accuracy_counts_by_image_and_by_class():
    logits = torch.eye(6)[[0, 0, 0, 1]] * 2  # predictions 0, 0, 0, 1; ties below the first keep index order
    found = accuracy(logits, np.array([0, 0, 0, 5]))
    assert found.top1 == pytest.approx(0.75)
    assert found.top1_class_mean == pytest.approx(0.5)
    assert found.n == 4
    ranked = torch.tensor([[5.0, 4.0, 3.0, 2.0, 1.0, 0.0]])
    assert accuracy(ranked, np.array([4])).top5 == 1.0
    assert accuracy(ranked, np.array([5])).top5 == 0.0


def test_balanced_weights_give_every_label_the_same_total():
    labels = np.array([0, 0, 0, 2])
    weights = class_balanced_weights(labels, 3)
    assert weights[:3].sum() == pytest.approx(weights[3])
