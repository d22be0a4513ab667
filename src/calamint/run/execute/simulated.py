"""Jobs on a virtual clock: hours of measurements in seconds, the same way every time."""

import heapq
from collections.abc import Mapping
from pathlib import Path
from typing import final

from calamint.decide import Duration, VirtualClock, duration_of
from calamint.errors import ProblemError
from calamint.run.execute.base import Executor, JobResult, TaskFunction
from calamint.run.execute.command import Command
from calamint.run.jobs import Job


@final
class Simulated(Executor):
    """Functions are called here, and take the time that `durations` says, on a virtual clock.

    Args:
        durations: Seconds by task, or functions of the parameters.
    """

    def __init__(self, durations: Mapping[str, Duration], clock: VirtualClock) -> None:
        if not isinstance(clock, VirtualClock):
            raise ProblemError(f"clock is {clock!r}: write the study's own VirtualClock().")
        self.durations, self.clock = durations, clock

    def prepare(
        self,
        functions: Mapping[str, TaskFunction | Command],
        folder: Path | None,
        name: str,
        study: str,
    ) -> None:
        super().prepare(functions, folder, name, study)
        self._running: list[tuple[float, int, float, Job]] = []
        self._stopped: list[JobResult] = []
        for task, function in functions.items():
            if isinstance(function, Command):
                raise ProblemError(f"tasks[{task!r}] is a command: simulations call functions.")

    def start(self, job: Job) -> None:
        now = self.clock.now()
        lasts = duration_of(self.durations, job.suggestion)
        heapq.heappush(self._running, (now + lasts, job.number, now, job))

    def wait(self, seconds: float) -> list[JobResult]:
        """The job that ends first; the clock moves there, or by `seconds`."""
        if self._stopped:
            return [self._stopped.pop()]
        if not self._running:
            self.clock.move(self.clock.now() + seconds)
            return []
        ended, _, started, job = heapq.heappop(self._running)
        self.clock.move(ended)
        function = self.functions[job.task]
        assert not isinstance(function, Command)  # `prepare` refused them
        try:
            return [JobResult(job, function(dict(job.params)), seconds=ended - started)]
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            return [JobResult(job, error=words, seconds=ended - started, cause="crashed")]

    def stop(self, job: Job) -> None:
        self._running = [entry for entry in self._running if entry[3] != job]
        heapq.heapify(self._running)
        self._stopped.append(JobResult(job, error="it was cancelled"))
