"""Metrics of generated text on cases whose answer is known."""

import math

import numpy as np
import pytest
import torch

from pgm_text.metrics import NegativeLogLikelihood, VerbatimIndex, distinct_n, next_token_nll, token_entropy
from pgm_text.metrics.overlap import suffix_array


def test_entropy_of_repeated_and_of_all_different_tokens():
    ids = torch.tensor([[5, 5, 5, 5], [1, 2, 3, 4], [1, 1, 2, 2]])
    expected = torch.tensor([0, math.log(4), math.log(2)], dtype=torch.float64)
    torch.testing.assert_close(token_entropy(ids), expected)


def test_entropy_counts_only_valid_positions():
    ids, valid = torch.tensor([[1, 2, 9, 9]]), torch.tensor([[True, True, False, False]])
    assert token_entropy(ids, valid).item() == pytest.approx(math.log(2))
    with pytest.raises(ValueError, match="shape"):
        token_entropy(torch.tensor([1, 2]))


def test_distinct_n_counts_different_grams_over_all_texts():
    assert distinct_n([[1, 2, 1, 2]], 1) == 2 / 4
    assert distinct_n([[1, 2, 1, 2]], 2) == 2 / 3
    assert distinct_n([["a", "b"], ["a", "b"]], 2) == 1 / 2  # "b a" across the texts is not a gram
    assert distinct_n([[1], [1, 2, 3]], 3) == 1
    with pytest.raises(ValueError, match="n must be at least 1"):
        distinct_n([[1]], 0)
    with pytest.raises(ValueError, match="no text has 4 tokens"):
        distinct_n([[1, 2, 3]], 4)


def longest_by_brute_force(corpus, sample):
    best = 0
    for document in corpus:
        for i in range(len(document)):
            for j in range(len(sample)):
                k = 0
                while i + k < len(document) and j + k < len(sample) and document[i + k] == sample[j + k]:
                    k += 1
                best = max(best, k)
    return best


@pytest.mark.parametrize("seed", range(5))
def test_longest_overlap_equals_brute_force(seed):
    random = np.random.default_rng(seed)
    corpus = [random.integers(0, 4, random.integers(1, 40)).tolist() for _ in range(12)]
    index = VerbatimIndex(corpus)
    for _ in range(20):
        sample = random.integers(0, 5, random.integers(1, 25)).tolist()
        length, start = index.longest_overlap(sample)
        assert length == longest_by_brute_force(corpus, sample)
        run = sample[start : start + length]
        assert any(run == document[i : i + length] for document in corpus for i in range(len(document)))


def test_overlap_never_spans_two_documents_and_may_be_nothing():
    index = VerbatimIndex([[1, 2, 3], [4, 5, 6]])
    assert index.longest_overlap([3, 4, 5])[0] == 2
    assert index.longest_overlap([9, 1, 2, 3, 9]) == (3, 1)
    assert index.longest_overlap([7, 8]) == (0, 0)
    assert index.longest_overlap([]) == (0, 0)
    assert VerbatimIndex([]).longest_overlap([1]) == (0, 0)


def test_perplexity_of_a_uniform_scorer_is_the_vocabulary_size():
    ids = torch.randint(0, 7, (3, 10))
    nll = next_token_nll(torch.zeros(3, 10, 7), ids)
    assert nll.shape == (3, 9)
    measured = NegativeLogLikelihood().add(nll)
    assert measured.perplexity == pytest.approx(7)
    assert measured.bits_per_token == pytest.approx(math.log2(7))
    assert math.isnan(NegativeLogLikelihood().perplexity)


def test_perplexity_pools_tokens_not_batches():
    measured = (
        NegativeLogLikelihood().add(torch.tensor([[1.0, 2.0]])).add(torch.tensor([[6.0, 99.0]]), torch.tensor([[1, 0]]))
    )
    assert measured.perplexity == pytest.approx(math.exp(9 / 3))


def test_suffixes_are_in_lexicographic_order():
    tokens = np.random.default_rng(0).integers(0, 3, 200)
    order = suffix_array(tokens)
    assert order.tolist() == sorted(range(200), key=lambda i: tokens[i:].tolist())
    assert suffix_array(np.empty(0, np.int64)).tolist() == []
