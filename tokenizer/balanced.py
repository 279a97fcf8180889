"""Balanced sampling of labelled images: class first, then concept, then style, then skin tone."""

import numpy as np


class BalancedSampler:
    """Draws indices so that classes are equally likely, concepts within a class, and styles within a concept.

    Within (class, concept, style) an image without skin tone is drawn half of the time when both kinds exist. Built
    from label arrays alone, so images and codes use the same one.
    """

    def __init__(self, class_id: np.ndarray, style_id: np.ndarray, concept_id: np.ndarray, tone: np.ndarray) -> None:
        """Four integer arrays of one length N >= 1; tone 0 means the default."""
        if len(class_id) == 0:
            raise ValueError("cannot sample from an empty split")
        toned = (np.asarray(tone) > 0).astype(np.int64)
        keys = np.stack([class_id, concept_id, style_id, toned], axis=1).astype(np.int64)  # (N, 4)
        self.order = np.lexsort(keys.T[::-1])
        keys = keys[self.order]
        changed = np.diff(keys, axis=0) != 0  # (N-1, 4)
        # A node of depth d begins wherever any of the first d+1 keys changes.
        begins = [np.flatnonzero(np.r_[True, changed[:, : d + 1].any(1)]) for d in range(3)]
        ends = [np.r_[begin[1:], len(keys)] for begin in begins]
        self.classes = len(begins[0])
        self.children = []  # per depth: (first child node, number of child nodes)
        for parent_begin, parent_end, child in ((begins[0], ends[0], begins[1]), (begins[1], ends[1], begins[2])):
            first = np.searchsorted(child, parent_begin)
            self.children.append((first, np.searchsorted(child, parent_end) - first))
        self.begin, self.count = begins[2], ends[2] - begins[2]
        self.default = np.add.reduceat(1 - keys[:, 3], begins[2])  # images without tone per style node

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """`count` indices, (count,) int64, with replacement."""
        u = rng.random((5, count))
        node = (u[0] * self.classes).astype(np.int64)
        for (first, number), uniform in zip(self.children, u[1:3], strict=True):
            node = first[node] + (uniform * number[node]).astype(np.int64)
        default, total = self.default[node], self.count[node]
        use_default = np.where(default == 0, False, np.where(default == total, True, u[3] < 0.5))
        number = np.where(use_default, default, total - default)
        offset = np.where(use_default, 0, default) + (u[4] * number).astype(np.int64)
        return self.order[self.begin[node] + offset]
