"""Jobs that are pending: nothing is decided as if they were not running.

Results of the oldest ones, up to `MOST_FANTASIZED`, are fantasized: beliefs are conditioned on
them. Of the others it counts only where they are: close to one of them, a job that measures the
same is worth as much less as they are correlated. New ones are among the others until there are
enough of them for another partial update.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import final

import numpy as np

from calamint.arrays import Array
from calamint.decide.observations import Observations
from calamint.decide.records import Suggestion
from calamint.decide.state import Update
from calamint.model import Surrogate
from calamint.problem import Problem

MOST_FANTASIZED = 128
# One new pending job for so many that are fantasized is not worth an update.
_WORTH_AN_UPDATE = 16
# The least share of its worth that a job keeps: twice the same is the last resort.
_LEAST = 1e-12

Pending = tuple[Suggestion, tuple[str, ...]]  # with the functions that it will tell


def to_fantasize(problem: Problem, observations: Observations) -> list[Pending]:
    """The pending jobs whose results are fantasized."""
    return list(islice(observations.coming(problem), MOST_FANTASIZED))


def others(problem: Problem, observations: Observations, update: Update) -> list[Pending]:
    """The pending jobs that an update did not fantasize."""
    known = set(update.fantasized_jobs)
    return [each for each in observations.coming(problem) if each[0].number not in known]


def is_recent(update: Update, observations: Observations) -> bool:
    """Whether an update can be decided with as it is: nothing was told since, and few are new."""
    known = update.fantasized_jobs
    if update.version != observations.version or any(n not in observations.pending for n in known):
        return False
    room = len(known) < MOST_FANTASIZED
    new = len(observations.pending) - len(known)
    return new == 0 or not room or new * _WORTH_AN_UPDATE <= len(known)


def with_pending(
    surrogate: Surrogate,
    pending: Iterable[Pending],
    fantasies: int,
    rng: np.random.Generator,
) -> Surrogate:
    """The surrogate conditioned on fantasies of pending jobs and the functions that they tell.

    One fantasy is the mean (the Kriging believer); several are drawn from the posterior.
    """
    if fantasies == 1:
        return surrogate.fantasize_expected((job.point, names) for job, names in pending)
    surrogate = surrogate.repeated(fantasies)
    for job, names in pending:
        surrogate = surrogate.fantasize(job.point, names, rng)
    return surrogate


def and_more_pending(last: Update, version: int, pending: Sequence[Pending]) -> Surrogate | None:
    """The same, from what the last update fantasized, if all else is as it was then."""
    known, count = last.fantasized_jobs, len(last.fantasized_jobs)
    numbers = tuple(job.number for job, _ in pending)
    if last.version != version or last.fantasized.fantasies > 1 or numbers[:count] != known:
        return None
    return last.fantasized.fantasize_expected((job.point, names) for job, names in pending[count:])


@final
@dataclass(frozen=True)
class Novelty:
    """The share of its worth that a job keeps beside pending jobs (k, D) that measure the same.

    lengthscales  (D,)
    """

    points: Array
    lengthscales: Array

    @staticmethod
    def of(
        pending: Iterable[Pending], surrogate: Surrogate, measures: Iterable[str]
    ) -> "Novelty | None":
        """Of a task that measures these functions; None if nothing pending does."""
        wanted = {name for name in measures if surrogate.functions[name].posterior.measurable}
        points = [job.point for job, told in pending if not wanted.isdisjoint(told)]
        if not points:
            return None
        typical = [
            np.median(surrogate.functions[name].posterior.lengthscales, axis=0) for name in wanted
        ]
        index = surrogate.problem.space.parameter_index
        return Novelty(np.array(points), np.min(typical, axis=0)[index])

    def value(self, x: Array) -> Array:
        """(n, D) -> (n,)"""
        return self._nearest(x)[0]

    def value_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> (n,) and its gradient (n, D)"""
        value, apart, correlation = self._nearest(x)
        gradient = 2 * correlation[:, None] * apart / self.lengthscales
        return value, np.where((value > _LEAST)[:, None], gradient, 0.0)

    def _nearest(self, x: Array) -> tuple[Array, Array, Array]:
        """The value; the way from the nearest pending job in length-scales, and the square of its
        correlation."""
        apart = (x[:, None] - self.points) / self.lengthscales
        squares = (apart**2).sum(-1)
        nearest = squares.argmin(axis=1)
        rows = np.arange(len(x))
        correlation = np.exp(-squares[rows, nearest])
        return np.maximum(1 - correlation, _LEAST), apart[rows, nearest], correlation
