"""The progress of a run, as watchers see it, and its report at the end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, final

from calamint.decide import Recommendation
from calamint.run.execute import JobResult
from calamint.run.jobs import Job

Stop = Literal["evaluations", "seconds", "cost", "bits", "exhausted", "stopped", "interrupted"]


@final
@dataclass(frozen=True)
class Progress:
    """What a run is doing.

    Attributes:
        name: The study.
        running: Jobs of this run, with the `time.monotonic` at which each started.
        capacities: The capacity of each resource.
        ended: The number of finished jobs by task.
        failed: The number of jobs that failed in this run.
        failure: Why the last of these failed.
        other_jobs: Jobs of other processes, by resource.
        budget: The number of evaluations to make, if it is limited.
        best: The last recommendation.
        last: The last job that was decided.
        seconds: Time since the run began.
        decision_seconds: How much of it was spent on decisions.
        resumed: The number of evaluations before this run.
    """

    name: str
    running: Mapping[Job, float]
    capacities: Mapping[str, int]
    ended: Mapping[str, int]
    failed: int
    failure: str | None
    other_jobs: Mapping[str, list[str]]
    budget: int | None
    best: Recommendation | None
    last: Job | None
    seconds: float
    decision_seconds: float
    resumed: int


class Watcher(Protocol):
    """What `Study.run(watch=...)` calls while it runs; `cm.Live` is one.

    All methods are called from the thread that called `run`. An exception in one of them ends the
    run, as Ctrl-C pressed twice would.
    """

    def started(self, progress: Progress, job: Job) -> None:
        """A job was just started."""

    def ended(self, progress: Progress, result: JobResult) -> None:
        """A job ended, and its result was stored; `result.error` says why if it failed."""

    def refresh(self, progress: Progress) -> None:
        """Called several times a second while jobs run."""

    def message(self, sentence: str) -> None:
        """Something that a person should read, such as that a disk is full."""


@final
@dataclass(frozen=True)
class RunEvent:
    """Something that happened in a run, as `Study.run(on=...)` is told.

    Attributes:
        kind: "started", "ended" (its result is stored), or "message".
        progress: What the run is doing.
        job: The job that was started, or ended.
        result: How it ended: `values`, or `error` with its `cause`, and `seconds`.
        message: Something that a person should read, such as that a disk is full.
    """

    kind: Literal["started", "ended", "message"]
    progress: Progress | None
    job: Job | None = None
    result: JobResult | None = None
    message: str = ""


@final
@dataclass(frozen=True)
class Observed:
    """A watcher that also calls a function for every event."""

    call: Callable[[RunEvent], object]
    watch: Watcher | None

    def started(self, progress: Progress, job: Job) -> None:
        self.call(RunEvent("started", progress, job))
        if self.watch is not None:
            self.watch.started(progress, job)

    def ended(self, progress: Progress, result: JobResult) -> None:
        self.call(RunEvent("ended", progress, result.job, result))
        if self.watch is not None:
            self.watch.ended(progress, result)

    def refresh(self, progress: Progress) -> None:
        if self.watch is not None:
            self.watch.refresh(progress)

    def message(self, sentence: str) -> None:
        self.call(RunEvent("message", None, message=sentence))
        if self.watch is not None:
            self.watch.message(sentence)


@final
@dataclass(frozen=True)
class RunReport:
    """How a run ended.

    Attributes:
        stopped: Which limit stopped it.
        evaluations: The number of jobs that ended in it.
        failed: The number of those that failed.
        seconds: How long it took.
        decision_seconds: How much of that was spent on decisions.
        elsewhere: The number of jobs that other processes were still running.
        held: The number of jobs that wait to be released, as they were lost too often.
    """

    stopped: Stop
    evaluations: int
    failed: int
    seconds: float
    decision_seconds: float
    elsewhere: int = 0
    held: int = 0

    def __str__(self) -> str:
        why = {
            "evaluations": "all evaluations were made"
            + (f", but for {self.elsewhere} that others are running" if self.elsewhere else ""),
            "seconds": "the time was over",
            "cost": "the cost was reached",
            "bits": "no measurement was expected to yield enough",
            "exhausted": "every input was measured, and measuring again gives the same",
            "stopped": "it was told to",
            "interrupted": "it was interrupted",
        }[self.stopped]
        share = self.decision_seconds / self.seconds if self.seconds > 0 else 0.0
        failed = f" ({self.failed} failed)" if self.failed else ""
        held = f"; {self.held} held, see `calamint jobs --state held`" if self.held else ""
        many = "" if self.evaluations == 1 else "s"
        return (
            f"{self.evaluations} evaluation{many}{failed} in {self.seconds:.1f} s,"
            f" {share:.0%} of it spent on deciding; it stopped because {why}{held}"
        )
