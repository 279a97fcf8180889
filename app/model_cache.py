"""Loaded models in bounded memory: each is loaded once, however many ask for it at the same time, and the least
recently used one makes room for the next.
"""

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

import torch

Model = TypeVar("Model")


class ModelCache(Generic[Model]):
    """At most `most` models by name. One that is given up while a run still uses it is freed when that run ends."""

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"most must be at least 1, got {most}")
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Future[Model]] = OrderedDict()  # the least recently used first

    def get(self, name: str, load: Callable[[], Model]) -> Model:
        """The model called `name`, from `load` if it is not here. Others who ask meanwhile wait for the same load; if
        it fails all of them get its exception, and the next to ask tries again.
        """
        with self._lock:
            kept = self._kept.get(name)
            if kept is not None:
                self._kept.move_to_end(name)
            else:
                given_up = [self._kept.popitem(last=False) for _ in range(len(self._kept) + 1 - self._most)]
                mine = self._kept[name] = Future()
        if kept is not None:
            return kept.result()
        if given_up:
            given_up.clear()
            free_memory()  # before the new one is read, so that the two need not fit beside each other
        try:
            mine.set_result(load())
        except BaseException as fault:
            with self._lock:
                if self._kept.get(name) is mine:
                    del self._kept[name]
            mine.set_exception(fault)
        return mine.result()

    def names(self) -> list[str]:
        """Models that are loaded now, the least recently used first."""
        with self._lock:
            return [name for name, kept in self._kept.items() if kept.done()]


def free_memory() -> None:
    """Hand memory of models that nobody holds any more back to the machine and the GPU."""
    gc.collect()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
