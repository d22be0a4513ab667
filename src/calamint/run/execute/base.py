"""What runs jobs: the interface of executors, and what the tasks of a run do."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from calamint.checks import did_you_mean, finite
from calamint.errors import ProblemError, TaskError
from calamint.problem import Params, Task
from calamint.run.execute.command import Command, check_command
from calamint.run.jobs import Cause, Job

TaskFunction = Callable[[Params], Any]
# What tasks do: functions of the parameters, or words of commands, by task or for the only one.
Tasks = Mapping[str, TaskFunction | Sequence[str]] | TaskFunction | Sequence[str] | None


@final
@dataclass(frozen=True)
class SpooledFile:
    """A result in a file, and the place that the file is in, if that is not this machine."""

    path: Path
    place: str = ""


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
        spooled: A file with the result, to be discarded when it is stored.
    """

    job: Job
    values: Any = None
    error: str | None = None
    unloadable: str | None = None
    seconds: float = 0.0
    cause: Cause | None = None
    spooled: SpooledFile | None = None


@final
@dataclass(frozen=True)
class SpooledResult:
    """A result in a file: which attempt at which job it is of, and how that ended."""

    job: int
    attempt: int
    values: Any
    error: str | None
    cause: Cause | None
    file: SpooledFile


class Executor(ABC):
    """Starts jobs, and says when they end.

    Attributes:
        is_elastic: Whether it may be able to start more jobs later without any of its own ending.
        has_spooled: Whether there may be new results of jobs that nobody listens to.
    """

    is_elastic = False
    has_spooled = False

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

    def spooled(self) -> list[SpooledResult]:
        """Results of jobs that nobody listens to, as those who did were ended."""
        return []

    def still_running(self, jobs: Iterable[Job]) -> list[Job]:  # noqa: ARG002
        """Which of these attempts of other runs go on here."""
        return []

    def listen(self, job: Job) -> None:
        """From now on `wait` returns how a job ends that another run has started."""
        raise NotImplementedError

    def can_start(self, resources: tuple[str, ...]) -> bool:  # noqa: ARG002
        """Whether a job on these resources could be started now."""
        return True

    def could_start(self, resources: tuple[str, ...]) -> bool:  # noqa: ARG002
        """Whether a job on these resources could ever be started."""
        return True

    def discard(self, spooled: SpooledFile) -> None:
        """A result is stored: its file, and its folder if nothing else is in it, can go."""
        with suppress(OSError):
            spooled.path.unlink()
            spooled.path.parent.rmdir()

    def messages(self) -> list[str]:
        """What people should read, since this was last called."""
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


def check_timeout(
    timeout: float | Mapping[str, float] | None, tasks: Collection[str] | None = None
) -> float | Mapping[str, float] | None:
    """A time limit of jobs, or limits by task, if it can be one."""
    for value in timeout.values() if isinstance(timeout, Mapping) else [timeout]:
        number = finite(value)
        if value is not None and (number is None or number <= 0):
            raise ProblemError(f"timeout is {timeout!r}: write a positive number of seconds.")
    for task in timeout if isinstance(timeout, Mapping) else ():
        if tasks is not None and task not in tasks:
            raise ProblemError(f"timeout has {task!r}: {did_you_mean(str(task), tasks)}")
    return timeout


def timeout_of(timeout: float | Mapping[str, float] | None, task: str) -> float | None:
    """The time limit of a task."""
    return timeout.get(task) if isinstance(timeout, Mapping) else timeout


def check_folder(folder: object) -> Path | None:
    """A folder, if that is what is given."""
    if folder is not None and not isinstance(folder, str | Path):
        raise ProblemError(f"folder is {folder!r}: write a path.")
    return None if folder is None else Path(folder)


def pickled(functions: Mapping[str, TaskFunction | Command]) -> dict[str, bytes | Command]:
    """What each task does, as another process can take it."""
    import cloudpickle

    found: dict[str, bytes | Command] = {}
    for task, function in functions.items():
        try:
            found[task] = function if isinstance(function, Command) else cloudpickle.dumps(function)
        except Exception as error:
            raise TaskError(
                f"task {task!r} cannot be pickled for another process"
                f" ({type(error).__name__}: {error}): write a function that holds no open files,"
                " locks or connections."
            ) from error
    return found


def check_tasks(problem_tasks: Mapping[str, Task], given: object) -> None:
    """Refuse tasks that say nothing, and programs that are not there."""
    for name, function in parse_tasks(problem_tasks, given).items():
        if isinstance(function, Command):
            check_command(name, function)


def parse_tasks(
    problem_tasks: Mapping[str, Task],
    given: object,
    could_start: Callable[[tuple[str, ...]], bool] = lambda _: True,
) -> dict[str, TaskFunction | Command]:
    """What each task does that could be started: a function, a list of words, or the command of its
    spec."""
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
        if not any(could_start(resources) for resources in task.runs_on or ()):
            continue
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
    if not functions:
        raise ProblemError("no task runs on the resources that are offered here alone.")
    return functions
