"""Jobs in processes of the machine that this runs on, with their files."""

import itertools
import json
import queue
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from calamint.run.execute.base import JobResult, SpooledFile, SpooledResult
from calamint.run.execute.command import Command, command_payload
from calamint.run.execute.pool import TERMINATION_SECONDS, WorkerPool
from calamint.run.execute.process import JobProcess
from calamint.run.jobs import Job


@final
class Machine:
    """The jobs of one study that run here.

    Args:
        folder: Where their files are kept, in a folder for each job.
        study: What no other study has: results of others are not `spooled` for this one.
        reuse: Keep a process for the next job.
        import_path: Where functions look for modules; by default where this process does.
        working_folder: Where commands run; by default where this process does.
        place: What results in files say of where they are.
    """

    def __init__(
        self,
        folder: Path,
        study: str,
        reuse: bool = True,
        import_path: Sequence[str] | None = None,
        working_folder: Path | None = None,
        place: str = "",
    ) -> None:
        self.folder, self.study, self.place = folder, study, place
        self._import_path, self._working_folder = import_path, working_folder
        self._running: dict[tuple[int, int], JobProcess] = {}
        self._ended: queue.SimpleQueue[JobResult] = queue.SimpleQueue()
        self._reuse, self._pool = reuse, WorkerPool()

    def start(
        self,
        job: Job,
        work: bytes | Command,
        limit: float | None,
        ended: "queue.SimpleQueue[JobResult] | None" = None,
    ) -> None:
        """Start a job.

        Args:
            work: Its function, pickled, or its command.
            limit: Seconds after which it is ended.
            ended: Where its result is put, if `wait` is not to return it.

        Raises:
            OSError: If this machine cannot now, as it has no space or no file handles left.
        """
        folder = self._fresh_folder(job)
        path = sys.path if self._import_path is None else self._import_path
        payload: dict[str, Any] = {
            "path": list(path),
            "params": job.params,
            "result": str(folder / f"result-{self.study}-{job.number}-{job.attempt}.json"),
        }
        pool = None
        if isinstance(work, Command):
            payload |= command_payload(work, job, folder, self._working_folder or Path.cwd())
        else:
            payload["function"] = work
            pool = self._pool if self._reuse else None
        try:
            process = JobProcess(job, payload, folder, limit, ended or self._ended, pool)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._running[job.number, job.attempt] = process

    def _fresh_folder(self, job: Job) -> Path:
        """A new folder that nobody else can read; one may be there from a deleted database."""
        for each in (self.folder.parent, self.folder):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        for again in itertools.count(1):
            name = f"job-{job.number}-{job.attempt}{f'~{again}' if again > 1 else ''}"
            folder = self.folder / name
            try:
                folder.mkdir(mode=0o700)
            except FileExistsError:
                continue
            return folder
        raise AssertionError

    @property
    def running(self) -> list[tuple[int, int]]:
        """Jobs that run, with their attempts."""
        return [key for key, process in list(self._running.items()) if process.thread.is_alive()]

    def spooled(self) -> list[SpooledResult]:
        """Results in files of jobs that do not run."""
        found = []
        for file in sorted(self.folder.glob(f"job-*/result-{self.study}-*-*.json")):
            number, attempt = file.stem.split("-")[-2:]
            if (int(number), int(attempt)) in self.running:
                continue
            if file.is_symlink() or file.parent.is_symlink():
                continue  # not followed
            with suppress(OSError, ValueError):  # a torn one is no result
                said = json.loads(file.read_text())
                # A task that could not be loaded says nothing about its input.
                if "values" in said or "error" in said:
                    values, error, cause = map(said.get, ("values", "error", "cause"))
                    which = int(number), int(attempt)
                    spooled = SpooledFile(file, self.place)
                    found.append(SpooledResult(*which, values, error, cause, spooled))
        return found

    def wait(self, seconds: float) -> list[JobResult]:
        """Jobs that have ended, after waiting up to this many seconds for one."""
        ended = []
        with suppress(queue.Empty):
            ended.append(self._ended.get(timeout=max(seconds, 0.0)))
            while True:
                ended.append(self._ended.get_nowait())
        for result in ended:
            self.forget(result.job)
        return ended

    def forget(self, job: Job) -> None:
        """A job has ended, and its result was taken."""
        self._running.pop((job.number, job.attempt), None)

    def stop(self, number: int, attempt: int) -> bool:
        """End a job, as it was cancelled; whether it ran here."""
        process = self._running.get((number, attempt))
        if process is not None:
            process.stop("it was cancelled")
        return process is not None

    def close(self) -> None:
        """End all jobs."""
        for process in self._running.values():
            process.stop("it was cancelled")
        for process in self._running.values():
            process.thread.join(timeout=2 * TERMINATION_SECONDS)  # asked to end, then killed
        self._pool.close()
