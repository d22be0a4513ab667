"""Jobs that fail: where each task works is learnt from successes and failures.

For every task whose failures are modelled and that has failed, there is one more constraint,
measured as pass or fail by that task alone: "the task works here". It is a constraint like any
other for drawing solutions and for recommending, and a task that is likely to fail is worth less
in proportion.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
from scipy.special import ndtr

from calamint.decide.answers import Suggestion
from calamint.model.belief import FunctionBelief
from calamint.model.data import Data
from calamint.model.probability import log_normal_density, verdict_score
from calamint.problem import Constraint, Problem
from calamint.problem.parameters import Array

_LEAST_CHANCE = 0.01  # no region is given up for good


@final
@dataclass
class Workings:
    """What is known about where tasks work.

    retries   how often a job is tried again whose failure is the machine's fault
    verdicts  1 where a job of the task worked, 0 where it failed
    failed    how many jobs of each task failed
    """

    problem: Problem
    retries: int
    verdicts: dict[str, Data] = field(init=False)
    failed: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        dimension = self.problem.space.dimension
        modelled = [name for name, task in self.problem.tasks.items() if task.failures == "model"]
        self.verdicts = {name: Data.empty(dimension) for name in modelled}
        self.failed = dict.fromkeys(self.problem.tasks, 0)
        # Jobs to try again, with how often that will have been; and how often pending ones were.
        self._again: dict[str, list[tuple[Suggestion, int]]] = {
            name: [] for name in self.problem.tasks
        }
        self._tried: dict[int, int] = {}

    def worked(self, task: str, point: Array) -> None:
        if task in self.verdicts:
            self.verdicts[task] = self.verdicts[task].append(point, 1.0)

    def fail(self, job: Suggestion) -> bool:
        """Whether it is the first failure of its task that is modelled."""
        self.failed[job.task] += 1
        if self.problem.tasks[job.task].failures == "retry":
            tried = self._tried.pop(job.number, 0)
            if tried < self.retries:
                self._again[job.task].append((job, tried + 1))
        if job.task not in self.verdicts:
            return False
        first = job.task not in self.hidden
        self.verdicts[job.task] = self.verdicts[job.task].append(job.point, 0.0)
        return first

    def to_retry(self, task: str) -> Suggestion | None:
        """A job of the task that failed and is to be tried again."""
        return self._again[task][0][0] if self._again[task] else None

    def take(self, task: str, number: int) -> None:
        """The job to retry is suggestion `number`."""
        _, self._tried[number] = self._again[task].pop(0)

    @property
    def hidden(self) -> dict[str, str]:
        """task -> the name of the constraint that it works, for those that have failed"""
        names = {}
        for task, data in self.verdicts.items():
            if np.any(data.values < 0.5):
                name = f"{task}_works"
                while name in self.problem.functions or name in self.problem.space.parameters:
                    name += "_"
                names[task] = name
        return names

    def data(self) -> dict[str, Data]:
        return {name: self.verdicts[task] for task, name in self.hidden.items()}

    def modelled(self) -> Problem:
        """The problem with "it works" as constraints, measured by the tasks themselves."""
        hidden = self.hidden
        if not hidden:
            return self.problem
        tasks = {
            name: replace(task, measures=(*task.measures, hidden[name])) if name in hidden else task
            for name, task in self.problem.tasks.items()
        }
        works = [Constraint(name, passfail=True) for name in hidden.values()]
        return self.problem.changed(constraints=[*self.problem.constraints, *works], tasks=tasks)


@final
@dataclass(frozen=True)
class Chance:
    """How likely a task is to work at any input of the cube."""

    function: FunctionBelief

    def at(self, x: Array) -> Array:
        """(n, D) -> (n,)"""
        return np.maximum(self.function.mixture(x)[0], _LEAST_CHANCE)

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> (n,) and its gradient (n, D)"""
        mean, variance, mean_x, variance_x = self.function.process.moments_gradient(x)
        t, t_mean, t_variance = verdict_score(mean, variance)
        chance = ndtr(t).mean(0)
        slope = np.exp(log_normal_density(t))[..., None] * (
            mean_x * t_mean[..., None] + variance_x * t_variance[..., None]
        )
        gradient = np.where((chance > _LEAST_CHANCE)[:, None], slope.mean(0), 0.0)
        return np.maximum(chance, _LEAST_CHANCE), gradient


def chances(
    hidden: Mapping[str, str], functions: Mapping[str, FunctionBelief]
) -> dict[str, Chance]:
    """By task, for those that may fail."""
    return {task: Chance(functions[name]) for task, name in hidden.items() if name in functions}
