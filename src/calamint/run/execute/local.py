"""Run jobs on this machine, in processes of their own."""

import itertools
import json
import queue
import shutil
import sys
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from calamint.checks import did_you_mean, finite
from calamint.errors import ProblemError, StorageError, TaskError
from calamint.run.execute.base import Executor, JobResult, SpooledResult, TaskFunction
from calamint.run.execute.command import Command, check_command, command_payload
from calamint.run.execute.pool import TERMINATION_SECONDS, WorkerPool
from calamint.run.execute.process import JobProcess
from calamint.run.jobs import Job


@final
class Local(Executor):
    """Runs jobs in worker processes on this machine.

    A job that crashes, hangs or is killed takes its process with it, and nothing else.

    Args:
        timeout: The time limit of a job in seconds, or a dict of limits by task; None for no limit.
        folder: Where the output of jobs is kept, in a folder for each; by default next to the
            SQLite file, or a temporary folder for a study in memory.
        reuse: Keep a process for the next job, so that modules and data that a function loads are
            loaded once. A process in which a job left threads or processes behind is not kept.
            With False, every job has a new process; programs always do.
    """

    def __init__(
        self,
        timeout: float | Mapping[str, float] | None = None,
        folder: str | Path | None = None,
        reuse: bool = True,
    ) -> None:
        for value in timeout.values() if isinstance(timeout, Mapping) else [timeout]:
            number = finite(value)
            if value is not None and (number is None or number <= 0):
                raise ProblemError(f"timeout is {timeout!r}: write a positive number of seconds.")
        if folder is not None and not isinstance(folder, str | Path):
            raise ProblemError(f"folder is {folder!r}: write a path.")
        if not isinstance(reuse, bool):
            raise ProblemError(f"reuse is {reuse!r}: write True or False.")
        self.timeout, self._folder, self.reuse = timeout, folder, reuse

    def prepare(
        self,
        functions: Mapping[str, TaskFunction | Command],
        folder: Path | None,
        name: str,
        study: str,
    ) -> None:
        import cloudpickle

        super().prepare(functions, folder, name, study)
        # Results of an earlier run must not reach this one.
        self._finished: queue.SimpleQueue[JobResult] = queue.SimpleQueue()
        self._running: dict[tuple[int, int], JobProcess] = {}
        self._pool = WorkerPool()
        for task in self.timeout if isinstance(self.timeout, Mapping) else ():
            if task not in functions:
                raise ProblemError(f"timeout has {task!r}: {did_you_mean(str(task), functions)}")
        self._pickled: dict[str, bytes] = {}
        for task, function in functions.items():
            if isinstance(function, Command):
                check_command(task, function)
                continue
            try:
                self._pickled[task] = cloudpickle.dumps(function)
            except Exception as error:
                raise TaskError(
                    f"task {task!r} cannot be pickled for another process"
                    f" ({type(error).__name__}: {error}): write a function that holds no open"
                    " files, locks or connections."
                ) from error
        output_folder = self._folder or folder or self._temporary_folder()
        self.study_folder = Path(output_folder).absolute() / name
        self._study = study
        for each in (self.study_folder.parent, self.study_folder):
            if each.is_symlink() and self._folder is None:
                raise StorageError(
                    f"the folder {each} is a link, which is not followed: remove it."
                )

    def _temporary_folder(self) -> str:
        """For studies in memory, whose output is of no use without them."""
        folder = tempfile.mkdtemp(prefix="calamint-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    def start(self, job: Job) -> None:
        timeout = self.timeout.get(job.task) if isinstance(self.timeout, Mapping) else self.timeout
        folder = self._fresh_folder(job)
        payload: dict[str, Any] = {
            "path": sys.path,
            "params": job.params,
            "result": str(folder / f"result-{self._study}-{job.number}-{job.attempt}.json"),
        }
        function = self.functions[job.task]
        pool = None
        if isinstance(function, Command):
            payload |= command_payload(function, job, folder)
        else:
            payload["function"] = self._pickled[job.task]
            pool = self._pool if self.reuse else None
        try:
            process = JobProcess(job, payload, folder, timeout, self._finished, pool)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._running[job.number, job.attempt] = process

    def _fresh_folder(self, job: Job) -> Path:
        """A new folder that nobody else can read; one may be there from a deleted database."""
        for each in (self.study_folder.parent, self.study_folder):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        for again in itertools.count(1):
            name = f"job-{job.number}-{job.attempt}{f'~{again}' if again > 1 else ''}"
            folder = self.study_folder / name
            try:
                folder.mkdir(mode=0o700)
            except FileExistsError:
                continue
            return folder
        raise AssertionError

    def spooled(self) -> list[SpooledResult]:
        found = []
        for file in sorted(self.study_folder.glob(f"job-*/result-{self._study}-*-*.json")):
            number, attempt = file.stem.split("-")[-2:]
            if (int(number), int(attempt)) in self._running:
                continue
            if file.is_symlink() or file.parent.is_symlink():
                continue  # not followed
            with suppress(OSError, ValueError):  # a torn one is no result
                said = json.loads(file.read_text())
                # A task that could not be loaded says nothing about its input.
                if "values" in said or "error" in said:
                    values, error, cause = map(said.get, ("values", "error", "cause"))
                    which = int(number), int(attempt)
                    found.append(SpooledResult(*which, values, error, cause, file))
        return found

    def wait(self, seconds: float) -> list[JobResult]:
        ended = []
        with suppress(queue.Empty):
            ended.append(self._finished.get(timeout=max(seconds, 0.0)))
            while True:
                ended.append(self._finished.get_nowait())
        for result in ended:
            self._running.pop((result.job.number, result.job.attempt), None)
        return ended

    def stop(self, job: Job) -> None:
        process = self._running.get((job.number, job.attempt))
        if process is not None:
            process.stop("it was cancelled")

    def close(self) -> None:
        for process in self._running.values():
            process.stop("it was cancelled")
        for process in self._running.values():
            process.thread.join(timeout=2 * TERMINATION_SECONDS)  # asked to end, then killed
        self._pool.close()
