"""Starting jobs: one that this machine cannot start now waits alone, and is tried again."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from calamint.run.execute import Executor, JobResult
from calamint.run.jobs import Job

# Seconds until a job is given up that cannot be started, and between attempts to.
_PATIENCE, _FIRST_PAUSE, _LONGEST_PAUSE = 600.0, 0.5, 15.0


@dataclass
class _Postponed:
    since: float
    due: float
    pause: float


@final
class Starting:
    """Jobs on their way into an executor.

    started  called for each job that was started
    """

    def __init__(
        self, executor: Executor, started: Callable[[Job], None], say: Callable[[str], None]
    ) -> None:
        self.executor, self.started, self.say = executor, started, say
        self.postponed: dict[Job, _Postponed] = {}

    def start(self, job: Job) -> None:
        try:
            self.executor.start(job)
        except OSError as error:
            now = time.monotonic()
            self.postponed[job] = _Postponed(now, now + _FIRST_PAUSE, 2 * _FIRST_PAUSE)
            self.say(f"Job {job.number} cannot be started now, and waits: {error}.")
            return
        self.started(job)

    def try_again(self) -> list[JobResult]:
        """Start what is due; returns jobs that are given up."""
        given_up = []
        for job, waits in list(self.postponed.items()):
            now = time.monotonic()
            if now < waits.due:
                continue
            try:
                self.executor.start(job)
            except OSError as error:
                waits.due, waits.pause = now + waits.pause, min(2 * waits.pause, _LONGEST_PAUSE)
                if now - waits.since > _PATIENCE:
                    del self.postponed[job]
                    words = f"it could not be started: {error}"
                    given_up.append(JobResult(job, error=words, cause="infrastructure"))
                continue
            del self.postponed[job]
            self.started(job)
        return given_up

    def forget(self, job: Job) -> bool:
        """Whether it was waiting; it is not any more."""
        return self.postponed.pop(job, None) is not None
