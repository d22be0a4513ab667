"""Jobs in this very process, for functions that take less time than a message to another."""

import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import final

from calamint.errors import ProblemError
from calamint.run.execute.base import Executor, JobResult, TaskFunction
from calamint.run.execute.command import Command
from calamint.run.execute.worker import cause_of
from calamint.run.jobs import Job


@final
class InProcess(Executor):
    """Calls functions in this process, one after the other.

    For functions of microseconds. Exceptions fail a job as ever, but nothing protects the run from
    a function that hangs or ends the process, and there are no time limits.
    """

    def prepare(
        self,
        functions: Mapping[str, TaskFunction | Command],
        folder: Path | None,
        name: str,
        study: str,
    ) -> None:
        super().prepare(functions, folder, name, study)
        self._waiting: deque[Job] = deque()
        self._stopped: list[JobResult] = []
        for task, function in functions.items():
            if isinstance(function, Command):
                raise ProblemError(f"tasks[{task!r}] is a command: write cm.Local() to run it.")

    def start(self, job: Job) -> None:
        self._waiting.append(job)

    def wait(self, seconds: float) -> list[JobResult]:
        if self._stopped:
            return [self._stopped.pop()]
        if not self._waiting:
            time.sleep(max(seconds, 0.0))
            return []
        job = self._waiting.popleft()
        function = self.functions[job.task]
        assert not isinstance(function, Command)  # `prepare` refused them
        begin = time.perf_counter()
        try:
            values, error = function(dict(job.params)), None
        except Exception as raised:
            values, error = None, raised
        took = time.perf_counter() - begin
        if error is None:
            return [JobResult(job, values, seconds=took)]
        words = f"{type(error).__name__}: {error}"
        return [JobResult(job, error=words, seconds=took, cause=cause_of(error))]

    def stop(self, job: Job) -> None:
        if job in self._waiting:
            self._waiting.remove(job)
            self._stopped.append(JobResult(job, error="it was cancelled"))
