"""Which rows of a batch go through the network together: rows of like length, so that little padding is computed."""

PADDING = 1 / 8  # most that padding may add to the positions of a group


def row_groups(known: list[int], queries: list[int], limit: int | None = None) -> list[list[int]]:
    """Rows with at least one query, in groups that fit together; a group's rows ascend where all sizes are equal.

    known, queries: how many known codes and queries each row has; limit: most known codes, padding included, of a group
    of more than one row, None = any number.
    """
    rows = sorted((row for row, count in enumerate(queries) if count), key=lambda row: (known[row], queries[row]))
    groups: list[list[int]] = []
    for row in rows:
        if groups and _fit([*groups[-1], row], known, queries, limit):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _fit(rows: list[int], known: list[int], queries: list[int], limit: int | None) -> bool:
    longest = max(known[row] for row in rows)
    padded = len(rows) * (longest + max(queries[row] for row in rows))
    real = sum(known[row] + queries[row] for row in rows)
    return padded <= (1 + PADDING) * real and (limit is None or len(rows) * longest <= limit)
