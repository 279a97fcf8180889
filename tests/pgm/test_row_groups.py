"""Rows of like length go together: every row once, little padding, no more than fits."""

import torch

from pgm.row_groups import PADDING, row_groups


def test_equal_rows_are_one_group_in_their_order():
    assert row_groups([5] * 4, [2] * 4) == [[0, 1, 2, 3]]


def test_a_limit_cuts_equal_rows_into_runs():
    assert row_groups([5] * 5, [2] * 5, limit=10) == [[0, 1], [2, 3], [4]]
    assert row_groups([50] * 2, [2] * 2, limit=10) == [[0], [1]]  # a row alone may exceed it


def test_rows_of_very_different_length_are_apart_and_rows_without_queries_nowhere():
    assert row_groups([100, 3, 99, 2, 50], [4, 4, 4, 4, 0]) == [[3, 1], [2, 0]]
    assert row_groups([7, 7], [0, 0]) == []


def test_padding_stays_within_its_share():
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        known = torch.randint(0, 200, (12,), generator=generator).tolist()
        queries = torch.randint(0, 40, (12,), generator=generator).tolist()
        groups = row_groups(known, queries, limit=400)
        assert sorted(row for group in groups for row in group) == [row for row in range(12) if queries[row]]
        for group in groups:
            padded = len(group) * (max(known[r] for r in group) + max(queries[r] for r in group))
            assert padded <= (1 + PADDING) * sum(known[r] + queries[r] for r in group)
            assert len(group) == 1 or len(group) * max(known[r] for r in group) <= 400
