"""Work cut into numbered files that several processes share and that survive a killed run.

The cut does not depend on the number of processes, so neither does what is read back.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from accelerate import PartialState

PART = 250  # pictures


def part_bounds(n: int, size: int = PART) -> list[tuple[int, int]]:
    """(start, stop) of each part of n items."""
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def agree_on(folder: Path, settings: dict[str, Any], state: PartialState) -> None:
    """Note what the folder is for. Raises ValueError when it holds the work of other settings."""
    path = folder / "settings.json"
    if path.is_file() and json.loads(path.read_text()) != json.loads(json.dumps(settings)):
        raise ValueError(f"work: {str(folder)!r} holds parts of another evaluation; give another folder or delete it")
    state.wait_for_everyone()
    if state.is_main_process:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings, indent=2) + "\n")
    state.wait_for_everyone()


def share_parts(
    folder: Path,
    n: int,
    make: Callable[[int, int], dict[str, np.ndarray]],
    state: PartialState,
    say: Callable[[str], None] = lambda text: None,
    size: int = PART,
) -> None:
    """Have every part of n items that is not there yet made by one process; returns when all are there.

    make(start, stop) -> arrays by name, each with stop - start rows or one value.
    """
    bounds = part_bounds(n, size)
    for number in range(state.process_index, len(bounds), state.num_processes):
        path = folder / f"{number:05d}.npz"
        if path.is_file():
            continue
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            np.savez(file, **make(*bounds[number]))
        os.replace(partial, path)  # a killed run leaves no half-written part
        say(f"{folder.name}: part {number + 1} of {len(bounds)}")
    state.wait_for_everyone()


def read_parts(folder: Path, n: int, size: int = PART) -> dict[str, np.ndarray]:
    """All parts joined, in order."""
    parts = []
    for number in range(len(part_bounds(n, size))):
        with np.load(folder / f"{number:05d}.npz") as arrays:
            parts.append(dict(arrays))
    return {name: np.concatenate([np.atleast_1d(part[name]) for part in parts]) for name in parts[0]}
