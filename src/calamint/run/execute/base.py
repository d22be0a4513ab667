"""What runs jobs: the interface of executors, and what the tasks of a run do."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from calamint.checks import did_you_mean
from calamint.errors import ProblemError
from calamint.problem import Params
from calamint.run.execute.command import Command, check_command
from calamint.run.jobs import Cause, Job

TaskFunction = Callable[[Params], Any]
# What tasks do: functions of the parameters, or words of commands, by task or for the only one.
Tasks = Mapping[str, TaskFunction | Sequence[str]] | TaskFunction | Sequence[str] | None


@final
@dataclass(frozen=True)
class JobResult:
    """How a job ended: with values, or with an error.

    Attributes:
        job: The attempt.
        values: What it returned.
        error: Why it returned nothing.
        unloadable: Why its task cannot be started, at any input.
        seconds: How long it ran.
        cause: What kind of error it was; None if it was cancelled here.
        spooled: A file with the result, to be removed when it is stored.
    """

    job: Job
    values: Any = None
    error: str | None = None
    unloadable: str | None = None
    seconds: float = 0.0
    cause: Cause | None = None
    spooled: Path | None = None


@final
@dataclass(frozen=True)
class SpooledResult:
    """A result in a file: which attempt at which job it is of, and how that ended."""

    job: int
    attempt: int
    values: Any
    error: str | None
    cause: Cause | None
    file: Path


class Executor(ABC):
    """Starts jobs, and says when they end."""

    def prepare(
        self,
        functions: Mapping[str, TaskFunction | Command],
        folder: Path | None,  # noqa: ARG002
        name: str,  # noqa: ARG002
        study: str,  # noqa: ARG002
    ) -> None:
        """Called once before the first job.

        Args:
            functions: What each task does.
            folder: Where files of jobs are kept, in a sub-folder `name`; None for a temporary one.
            name: Of the study.
            study: What no other study has: results of another one are not `spooled` for this.
        """
        self.functions = functions

    def spooled(self) -> "list[SpooledResult]":
        """Results of an earlier run that it did not live to store."""
        return []

    @abstractmethod
    def start(self, job: Job) -> None:
        """Start a job.

        Raises:
            OSError: If this machine cannot now, as it has no space or no file handles left.
        """

    @abstractmethod
    def wait(self, seconds: float) -> list[JobResult]:
        """Jobs that have ended, after waiting up to this many seconds for one."""

    @abstractmethod
    def stop(self, job: Job) -> None:
        """End a job; it may still be among the outcomes, as an error."""

    def close(self) -> None:  # noqa: B027 - not all have something to close
        """End all jobs."""


def check_tasks(problem_tasks: Mapping[str, Any], given: object) -> None:
    """Refuse tasks that say nothing, and programs that are not there."""
    for name, function in parse_tasks(problem_tasks, given).items():
        if isinstance(function, Command):
            check_command(name, function)


def parse_tasks(
    problem_tasks: Mapping[str, Any], given: object
) -> dict[str, TaskFunction | Command]:
    """What each task does: a function, a list of words, or the command of its spec."""
    if given is None:
        given = {}
    if callable(given) or isinstance(given, list | tuple):
        if len(problem_tasks) != 1:
            names = ", ".join(map(repr, problem_tasks))
            raise ProblemError(f"tasks is one function, and there are {names}: write a dict.")
        given = {next(iter(problem_tasks)): given}
    if not isinstance(given, Mapping):
        raise ProblemError(f"tasks is {given!r}: write a dict of functions by task.")
    for name in given:
        if name not in problem_tasks:
            raise ProblemError(f"tasks has {name!r}: {did_you_mean(str(name), problem_tasks)}")
    functions: dict[str, TaskFunction | Command] = {}
    for name, task in problem_tasks.items():
        function = given.get(name, task.command)
        if callable(function):
            functions[name] = function
        elif isinstance(function, Sequence) and not isinstance(function, str) and function:
            functions[name] = Command(tuple(str(word) for word in function))
        else:
            raise ProblemError(
                f"tasks[{name!r}] is {function!r}: write a function of the parameters, or a command"
                " such as ['python', 'train.py']."
            )
    return functions
