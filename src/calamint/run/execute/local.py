"""Run jobs on this machine, in processes of their own."""

import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import final

from calamint.checks import check_integer
from calamint.errors import ProblemError, StorageError
from calamint.run.execute.base import (
    Executor,
    JobResult,
    SpooledResult,
    TaskFunction,
    check_folder,
    check_timeout,
    pickled,
    timeout_of,
)
from calamint.run.execute.command import Command, check_command
from calamint.run.execute.machine import Machine
from calamint.run.jobs import Job


@final
class Local(Executor):
    """Runs jobs in worker processes on this machine.

    A job that crashes, hangs or is killed takes its process with it, and nothing else.

    Args:
        timeout: The time limit of a job in seconds, or a dict of limits by task; None for no limit.
        folder: Where the output of jobs is kept, in a folder for each; by default next to the
            SQLite file, in `calamint.jobs` if the storage is a server, or a temporary folder for a
            study in memory.
        reuse: Keep a process for the next job, so that modules and data that a function loads are
            loaded once. A process in which a job left threads or processes behind is not kept.
            With False, every job has a new process; programs always do.
        resources: What this machine offers, such as {"gpu": 1}: only jobs that run on these
            resources, and so many at a time; by default all of the problem.
    """

    def __init__(
        self,
        timeout: float | Mapping[str, float] | None = None,
        folder: str | Path | None = None,
        reuse: bool = True,
        resources: Mapping[str, int] | None = None,
    ) -> None:
        if not isinstance(reuse, bool):
            raise ProblemError(f"reuse is {reuse!r}: write True or False.")
        if resources is not None and not isinstance(resources, Mapping):
            raise ProblemError(f"resources is {resources!r}: write numbers by name.")
        for name, count in (resources or {}).items():
            check_integer(count, f"resources[{name!r}]", 1)
        self.timeout, self._folder = check_timeout(timeout), check_folder(folder)
        self.reuse, self.resources = reuse, resources

    def prepare(
        self,
        functions: Mapping[str, TaskFunction | Command],
        folder: Path | None,
        name: str,
        study: str,
    ) -> None:
        super().prepare(functions, folder, name, study)
        check_timeout(self.timeout, functions)
        for task, function in functions.items():
            if isinstance(function, Command):
                check_command(task, function)
        self._work = pickled(functions)
        output_folder = self._folder or folder or self._temporary_folder()
        self.study_folder = Path(output_folder).absolute() / name
        # Results of an earlier run must not reach this one.
        self._machine = Machine(self.study_folder, study, self.reuse)
        self._used: Counter[str] = Counter()
        for each in (self.study_folder.parent, self.study_folder):
            if each.is_symlink() and self._folder is None:
                raise StorageError(
                    f"the folder {each} is a link, which is not followed: remove it."
                )

    def _temporary_folder(self) -> Path:
        """For studies in memory, whose output is of no use without them."""
        folder = tempfile.mkdtemp(prefix="calamint-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def could_start(self, resources: tuple[str, ...]) -> bool:
        return self.resources is None or self.resources.keys() >= set(resources)

    def can_start(self, resources: tuple[str, ...]) -> bool:
        offered = self.resources
        return offered is None or all(self._used[name] < offered.get(name, 0) for name in resources)

    def start(self, job: Job) -> None:
        self._machine.start(job, self._work[job.task], timeout_of(self.timeout, job.task))
        self._used.update(job.resources)

    def spooled(self) -> list[SpooledResult]:
        return self._machine.spooled()

    def wait(self, seconds: float) -> list[JobResult]:
        ended = self._machine.wait(seconds)
        for result in ended:
            self._used.subtract(result.job.resources)
        return ended

    def stop(self, job: Job) -> None:
        self._machine.stop(job.number, job.attempt)

    def close(self) -> None:
        self._machine.close()
