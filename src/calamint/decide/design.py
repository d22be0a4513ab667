"""The start: every function is measured at the same few space-filling inputs."""

from collections import Counter
from typing import final

import numpy as np

from calamint.acquire.candidates import space_filling
from calamint.problem import Space
from calamint.problem.parameters import Array


@final
class Design:
    """One fixed sequence of inputs, and which of them each task was asked for."""

    def __init__(self, space: Space, seed: int) -> None:
        self.space, self.seed = space, seed
        self._points = np.empty((0, space.dimension))
        self._asked: Counter[str] = Counter()
        self._index: dict[int, int] = {}  # of suggestions, by their number
        self._returned: dict[str, list[int]] = {}

    def point(self, index: int) -> Array:
        """(D,) the index-th input."""
        if index >= len(self._points):
            rng = np.random.default_rng([self.seed, 2**32 - 1])
            self._points = space_filling(self.space, max(64, 2 * index), rng)
        return self._points[index]

    def next(self, task: str) -> Array:
        """(D,) the first input that the task was not asked for."""
        return self.point(self._next(task))

    def take(self, task: str, number: int) -> None:
        """The task's next input is that of a suggestion."""
        self._index[number] = self._next(task)
        if self._returned.get(task):
            self._returned[task].pop(0)
        else:
            self._asked[task] += 1

    def _next(self, task: str) -> int:
        returned = self._returned.get(task)
        return returned[0] if returned else self._asked[task]

    def cancel(self, task: str, number: int) -> None:
        """What was suggested for the start will not be measured: it is suggested again."""
        if number in self._index:
            self._returned.setdefault(task, []).append(self._index[number])
