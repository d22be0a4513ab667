"""How functions are measured: tasks, the resources they run on, and what graph that makes.

Functions belong to tasks, tasks run on resources, and resources have capacities (Hernández-Lobato
et al. 2016, section 3). A task may measure several functions (they are coupled), a function may be
measured by several tasks, and a task may need several resources at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from numbers import Integral
from typing import Any, Literal, final

from calamint.checks import check_distinct, check_name, did_you_mean, finite
from calamint.errors import ProblemError

Failures = Literal["model", "retry", "ignore"]
Cost = float | Callable[[Mapping[str, Any]], float] | Literal["learn"]


@final
@dataclass(frozen=True, init=False)
class Task:
    """A job that can be run at any input: what it measures, where, at what cost.

    Args:
        measures: The functions that it measures.
        runs_on: Alternatives; each is one resource, or several that are needed at once. By default
            any one of the problem's resources.
        cost: A positive number, a function of the parameters, or "learn" to model the durations of
            finished jobs.
        command: A program to run, as a list of words.
        failures: What it means when a job fails: "model" (it is the input's fault: where the task
            works is learnt, and is one more constraint), "retry" (it is the machine's fault: the
            job is tried again, a few times), or "ignore".
    """

    measures: tuple[str, ...]
    runs_on: tuple[tuple[str, ...], ...] | None
    cost: Cost
    command: tuple[str, ...] | None
    failures: Failures

    def __init__(
        self,
        measures: str | Sequence[str],
        runs_on: str | Sequence[str | Sequence[str]] | None = None,
        cost: Cost = 1.0,
        command: Sequence[str] | None = None,
        failures: Failures = "model",
    ) -> None:
        object.__setattr__(self, "measures", _words(measures, "measures", "['error']"))
        object.__setattr__(self, "runs_on", _alternatives(runs_on))
        object.__setattr__(self, "cost", _cost(cost))
        object.__setattr__(self, "command", _command(command))
        object.__setattr__(self, "failures", _failures(failures))


def _words(value: object, field: str, example: str) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list | tuple):
        raise ProblemError(f"{field} is {value!r}: write a list of names, such as {example}.")
    names = tuple(words)
    if not names:
        raise ProblemError(f"{field} is empty: write at least one name, such as {example}.")
    for name in names:
        check_name(name, f"an entry of {field}")
    check_distinct(names, field)
    return names


def _alternatives(runs_on: object) -> tuple[tuple[str, ...], ...] | None:
    if runs_on is None:
        return None
    example = "['cpu', ['gpu', 'licence']]"
    entries = [runs_on] if isinstance(runs_on, str) else runs_on
    if not isinstance(entries, list | tuple) or not entries:
        raise ProblemError(f"runs_on is {runs_on!r}: write a list of resources, such as {example}.")
    alternatives = tuple(_words(entry, "runs_on", example) for entry in entries)
    check_distinct([" + ".join(sorted(words)) for words in alternatives], "runs_on")
    return alternatives


def _cost(cost: object) -> Cost:
    if callable(cost) or (isinstance(cost, str) and cost == "learn"):
        return cost  # type: ignore[return-value]
    number = finite(cost)
    if number is None or number <= 0:
        raise ProblemError(
            f"cost is {cost!r}: write a positive number, a function of the parameters, or 'learn'."
        )
    return number


def _failures(failures: object) -> Failures:
    ways = ("model", "retry", "ignore")
    if failures not in ways:
        raise ProblemError(f"failures is {failures!r}: {did_you_mean(str(failures), ways)}")
    return failures  # type: ignore[return-value]


def _command(command: object) -> tuple[str, ...] | None:
    if command is None:
        return None
    if (
        isinstance(command, str)
        or not isinstance(command, Sequence)
        or not command
        or not all(isinstance(word, str) for word in command)
    ):
        raise ProblemError(
            f"command is {command!r}: write the program and its arguments as a list,"
            " such as ['python', 'train.py']."
        )
    return tuple(command)


@final
class Kind(StrEnum):
    """The names of task–resource graphs in Hernández-Lobato et al. 2016, section 3."""

    COUPLED = "coupled"
    PARALLEL = "parallel"
    COMPETITIVE = "competitive decoupled"
    NON_COMPETITIVE = "non-competitive decoupled"
    MIXTURE = "mixture"


@final
@dataclass(frozen=True)
class TaskGraph:
    """Tasks and resources that fit each other; every task's alternatives are spelled out."""

    tasks: dict[str, Task]
    resources: dict[str, int]

    def __post_init__(self) -> None:
        resources = _resources(self.resources)
        if not isinstance(self.tasks, Mapping) or not self.tasks:
            raise ProblemError(
                f"tasks is {self.tasks!r}: write at least one,"
                " such as {'train': cm.Task(measures=['error'])}."
            )
        tasks = {}
        for name, task in self.tasks.items():
            check_name(name, "a task")
            if not isinstance(task, Task):
                raise ProblemError(
                    f"tasks[{name!r}] is {task!r}: write cm.Task(measures=['error'])."
                )
            alternatives = task.runs_on or tuple((resource,) for resource in resources)
            for resource in (word for alternative in alternatives for word in alternative):
                if resource not in resources:
                    raise ProblemError(
                        f"task {name!r} runs on {resource!r}, which is not in resources:"
                        f" {did_you_mean(resource, resources)}"
                    )
            tasks[name] = Task(task.measures, alternatives, task.cost, task.command, task.failures)
        used = {word for task in tasks.values() for words in task.runs_on or () for word in words}
        for resource in resources:
            if resource not in used:
                raise ProblemError(
                    f"resource {resource!r} is used by no task:"
                    " add it to a task's runs_on, or leave it out."
                )
        object.__setattr__(self, "tasks", tasks)
        object.__setattr__(self, "resources", resources)

    def usable_resources(self, task: str) -> frozenset[str]:
        """Every resource that a task may occupy."""
        return frozenset(word for words in self.tasks[task].runs_on or () for word in words)

    def max_parallel_jobs(self, task: str) -> int:
        """How many jobs of a task can run at the same time, if nothing else does."""
        return _most_jobs(self.tasks[task].runs_on or (), self.resources)

    @property
    def kind(self) -> Kind:
        """Which of the paper's cases this is; coupled and decoupled functions are a mixture."""
        if len(self.tasks) == 1:
            (name,) = self.tasks
            return Kind.PARALLEL if self.max_parallel_jobs(name) > 1 else Kind.COUPLED
        pairs = {
            _relation(self.usable_resources(a), self.usable_resources(b))
            for a, b in combinations(self.tasks, 2)
        }
        together = any(len(task.measures) > 1 for task in self.tasks.values())
        if together or len(pairs) > 1:
            return Kind.MIXTURE
        return pairs.pop()


def _most_jobs(alternatives: Sequence[tuple[str, ...]], free: Mapping[str, int]) -> int:
    """The best packing of jobs onto free resources; alternatives of one resource fill it up."""
    alone = {words[0] for words in alternatives if len(words) == 1}
    count = sum(free[word] for word in alone)
    joint = [words for words in alternatives if len(words) > 1 and not alone & set(words)]
    if not joint:
        return count
    first, rest = joint[0], joint[1:]
    most = min(free[word] for word in first)
    return count + max(
        jobs
        + _most_jobs(rest, {word: left - jobs * (word in first) for word, left in free.items()})
        for jobs in range(most + 1)
    )


def _relation(one: frozenset[str], other: frozenset[str]) -> Kind:
    if one == other:
        return Kind.COMPETITIVE
    return Kind.MIXTURE if one & other else Kind.NON_COMPETITIVE


# What every database can store.
_MOST = 2**31 - 1


def _resources(resources: object) -> dict[str, int]:
    if not isinstance(resources, Mapping) or not resources:
        raise ProblemError(
            f"resources is {resources!r}: write names with capacities, such as {{'gpu': 1}}."
        )
    for name, capacity in resources.items():
        check_name(name, "a resource")
        if not isinstance(capacity, Integral) or isinstance(capacity, bool) or capacity < 1:
            raise ProblemError(
                f"resources[{name!r}] is {capacity!r}: write a whole number of at least 1,"
                " how many jobs it can run at once."
            )
        if int(capacity) > _MOST:
            raise ProblemError(f"resources[{name!r}] is {capacity!r}: write at most {_MOST}.")
    return {name: int(capacity) for name, capacity in resources.items()}
