"""Jobs on this machine, each in a process of its own."""

import queue
import secrets
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from calamint.checks import did_you_mean, finite
from calamint.errors import ProblemError, TaskError
from calamint.run.execute.base import Executor, JobResult, Work
from calamint.run.execute.command import Command, check_command, command_payload
from calamint.run.execute.process import GRACE, JobProcess
from calamint.run.jobs import Job


@final
class Local(Executor):
    """Every job in a process of its own on this machine.

    Args:
        timeout: Seconds that a job may take: a number, or by task.
        folder: Where output is kept, in a folder for each job; by default beside a SQLite file.
    """

    def __init__(
        self, timeout: float | Mapping[str, float] | None = None, folder: str | Path | None = None
    ) -> None:
        for value in timeout.values() if isinstance(timeout, Mapping) else [timeout]:
            number = finite(value)
            if value is not None and (number is None or number <= 0):
                raise ProblemError(f"timeout is {timeout!r}: write a positive number of seconds.")
        if folder is not None and not isinstance(folder, str | Path):
            raise ProblemError(f"folder is {folder!r}: write a path.")
        self.timeout, self._folder = timeout, folder

    def build(self, works: Mapping[str, Work | Command], folder: Path | None, name: str) -> None:
        import cloudpickle

        super().build(works, folder, name)
        # Nothing of an earlier run may reach this one.
        self._ended: queue.SimpleQueue[JobResult] = queue.SimpleQueue()
        self._running: dict[tuple[int, int], JobProcess] = {}
        for task in self.timeout if isinstance(self.timeout, Mapping) else ():
            if task not in works:
                raise ProblemError(f"timeout has {task!r}: {did_you_mean(str(task), works)}")
        self._pickled: dict[str, bytes] = {}
        for task, work in works.items():
            if isinstance(work, Command):
                check_command(task, work)
                continue
            try:
                self._pickled[task] = cloudpickle.dumps(work)
            except Exception as error:
                raise TaskError(
                    f"task {task!r} cannot be sent to a process of its own"
                    f" ({type(error).__name__}: {error}): write a function that holds no open"
                    " files, locks or connections."
                ) from error
        root = self._folder or folder or tempfile.mkdtemp(prefix="calamint-")
        self.root = Path(root).absolute() / name

    def start(self, job: Job) -> None:
        limit = self.timeout.get(job.task) if isinstance(self.timeout, Mapping) else self.timeout
        folder = self.root / f"job-{job.number}-{job.attempt}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TaskError(f"the folder {folder} cannot be made: {error.strerror}.") from error
        payload: dict[str, Any] = {
            "path": sys.path,
            "params": job.params,
            "result": str(folder / f".result-{secrets.token_hex(4)}"),
        }
        work = self.works[job.task]
        if isinstance(work, Command):
            payload |= command_payload(work, job, folder)
        else:
            payload["function"] = self._pickled[job.task]
        process = JobProcess(job, payload, folder, limit, self._ended)
        self._running[job.number, job.attempt] = process

    def wait(self, seconds: float) -> list[JobResult]:
        ended = []
        with suppress(queue.Empty):
            ended.append(self._ended.get(timeout=max(seconds, 0.0)))
            while True:
                ended.append(self._ended.get_nowait())
        for outcome in ended:
            self._running.pop((outcome.job.number, outcome.job.attempt), None)
        return ended

    def stop(self, job: Job) -> None:
        process = self._running.get((job.number, job.attempt))
        if process is not None:
            process.stop("it was cancelled")

    def close(self) -> None:
        for process in self._running.values():
            process.stop("it was cancelled")
        for process in self._running.values():
            process.thread.join(timeout=2 * GRACE)
