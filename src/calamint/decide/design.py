"""The initial design: every function is measured at the same few space-filling inputs."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, final

import numpy as np

from calamint.acquire import space_filling
from calamint.arrays import Array
from calamint.problem import Problem, Space

if TYPE_CHECKING:
    from calamint.decide.observations import Observations


@final
@dataclass(frozen=True)
class Design:
    """Which inputs of the one fixed sequence each task was given.

    given     how many inputs of the sequence each task was given
    index     of suggestions, by their number
    returned  inputs that were given and then cancelled, by task
    """

    given: Mapping[str, int] = field(default_factory=dict)
    index: Mapping[int, int] = field(default_factory=dict)
    returned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def next(self, task: str) -> int:
        """The index of the first input that the task was not given."""
        returned = self.returned.get(task)
        return returned[0] if returned else self.given.get(task, 0)

    def give(self, task: str, number: int) -> "Design":
        """The task's next input is that of a suggestion."""
        index = {**self.index, number: self.next(task)}
        if self.returned.get(task):
            returned = {**self.returned, task: self.returned[task][1:]}
            return replace(self, index=index, returned=returned)
        given = {**self.given, task: self.given.get(task, 0) + 1}
        return replace(self, index=index, given=given)

    def cancel(self, task: str, number: int) -> "Design":
        """What was suggested for the design will not be measured: it is suggested again."""
        if number not in self.index:
            return self
        returned = (*self.returned.get(task, ()), self.index[number])
        return replace(self, returned={**self.returned, task: returned})


def design_point(space: Space, seed: int, index: int) -> Array:
    """(D,) the index-th input of the sequence."""
    return _sequence(space, seed, max(64, 2 ** (index + 1).bit_length()))[index]


@lru_cache(maxsize=16)
def _sequence(space: Space, seed: int, count: int) -> Array:
    return space_filling(space, count, np.random.default_rng([seed, 2**32 - 1]))


def initial_task(
    problem: Problem, observations: "Observations", competing: Iterable[str], initial: int
) -> str | None:
    """The task that is furthest from having its functions measured at `initial` inputs; or one
    whose test has never passed, or that has never worked: a model of failures alone would look for
    a success in the corners, again and again."""
    coming = Counter(name for _, names in observations.coming(problem) for name in names)
    done = {
        task: min(
            len(observations.data[name]) + coming[name] for name in problem.tasks[task].measures
        )
        # Where a task does not work, it has had its chance.
        + observations.failed[task]
        for task in competing
    }
    least = min(done, key=lambda task: done[task])
    if done[least] < initial:
        return least
    return next((task for task in done if _has_only_failed(problem, observations, task)), None)


def _has_only_failed(problem: Problem, observations: "Observations", task: str) -> bool:
    outcomes = [
        observations.data[name].values
        for name in problem.tasks[task].measures
        if name in problem.binary
    ]
    if task in observations.outcomes:
        outcomes.append(observations.outcomes[task].values)
    return any(len(values) > 0 and not values.any() for values in outcomes)
