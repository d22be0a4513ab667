"""What a study hands out and keeps: jobs, with their attempts."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, final, get_args

from calamint.decide import Suggestion, short
from calamint.errors import ResultError
from calamint.html import as_table
from calamint.problem import Params

# One that is "partial" was told, but for functions that will follow.
JobState = Literal[
    "waiting", "running", "held", "partial", "done", "failed", "cancelled", "withdrawn"
]
JOB_STATES: tuple[JobState, ...] = get_args(JobState)
OPEN: tuple[JobState, ...] = ("waiting", "running", "held")
# Why an attempt ended without a result. Only the first two can be a property of the input.
Cause = Literal["crashed", "timeout", "refused", "lost", "infrastructure"]
CAUSES: tuple[Cause, ...] = ("crashed", "timeout", "refused", "lost", "infrastructure")


@final
@dataclass(frozen=True)
class Job:
    """An attempt at one task at one input, with its resources booked, and why.

    attempt  the first is 1
    study    what no other study has
    bits, cost, scores, update, decision_seconds, warnings  as in `Suggestion`; an enqueued job has
    none
    """

    number: int
    task: str
    params: Params
    resources: tuple[str, ...]
    attempt: int = 1
    suggestion: Suggestion = field(repr=False, compare=False, kw_only=True)
    study: str = field(default="", repr=False, kw_only=True)

    def __hash__(self) -> int:
        return hash((self.number, self.attempt))

    @property
    def bits(self) -> dict[str, float]:
        return self.suggestion.bits

    @property
    def cost(self) -> float:
        return self.suggestion.cost

    @property
    def scores(self) -> dict[str, float]:
        return self.suggestion.scores

    @property
    def update(self) -> str:
        return self.suggestion.update

    @property
    def decision_seconds(self) -> float:
        return self.suggestion.decision_seconds

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.suggestion.warnings

    def _repr_html_(self) -> str:
        inputs = {name: short(value) for name, value in self.params.items()}
        bits = ", ".join(f"{bits:.3g} from {name}" for name, bits in self.bits.items())
        why = {"bits": bits} if bits else {}
        place = {"resources": ", ".join(self.resources)}
        return as_table(f"Job {self.number}: {self.task}", {**inputs, **place, **why})

    def __str__(self) -> str:
        again = f" (attempt {self.attempt})" if self.attempt > 1 else ""
        return f"job {self.number}{again}: {self.suggestion}"


def listed_jobs(jobs: object) -> list[Job]:
    """Any iterable of jobs, or a single one, as a list."""
    listed: list[Any] = list(jobs) if isinstance(jobs, Iterable) else [jobs]
    if not all(isinstance(job, Job) for job in listed):
        raise ResultError(f"jobs is {jobs!r}: write a list of what ask() returned.")
    return listed


@final
@dataclass(frozen=True)
class AttemptRecord:
    """An attempt at a job; times are seconds since 1970.

    Attributes:
        job: The number of its job.
        number: Which attempt at that job it is; the first is 1.
        owner: The process that runs it: host, process id, when that was started, the boot of the
            machine, and the namespace of the process id.
        resources: What it occupies.
        started: When it started.
        heartbeat: When its lease was last renewed.
        lease: How many seconds a renewal is good for; None if it has no lease.
        ended: When it ended, or None.
        outcome: How it ended: "done", "failed", "lost", "cancelled", or None.
    """

    job: int
    number: int
    owner: str
    resources: tuple[str, ...]
    started: float
    heartbeat: float
    lease: float | None
    ended: float | None = None
    outcome: str | None = None


@final
@dataclass(frozen=True)
class JobRecord:
    """A job as it is stored; times are seconds since 1970.

    Attributes:
        seconds: How long it ran.
        cause: If it failed or is held: "crashed", "timeout", "refused", "lost", "infrastructure".
        reason: What was said about it.
        update: How it was decided; warnings: what went wrong meanwhile.
        scores: Of its task and those that it competed with, as in `Suggestion`.
        stage_seconds: How long each stage of the decision took, and all of them ("total").
    """

    number: int
    task: str
    params: Params
    state: JobState
    resources: tuple[str, ...]
    attempts: int
    created: float
    ended: float | None
    seconds: float | None
    cause: Cause | None
    reason: str | None
    bits: dict[str, float]
    predicted_cost: float | None
    update: str
    warnings: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    stage_seconds: dict[str, float] = field(default_factory=dict)
