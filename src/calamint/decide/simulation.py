"""Running tasks on a virtual clock: hours of measurements in seconds, the same way every time."""

import heapq
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import final

from calamint.checks import finite
from calamint.decide.clock import VirtualClock
from calamint.decide.optimizer import Optimizer
from calamint.decide.records import Suggestion
from calamint.decide.results import Value
from calamint.errors import ProblemError
from calamint.problem import Params

Duration = float | Callable[[Params], float]


@final
@dataclass(frozen=True)
class SimulatedJob:
    """A simulated job: what was suggested, what it found, and when it ran, in virtual seconds."""

    job: Suggestion
    values: Mapping[str, Value]
    started: float
    ended: float


def simulate(
    optimizer: Optimizer,
    evaluate: Callable[[str, Params], Mapping[str, Value]],
    durations: Mapping[str, Duration],
    seconds: float = math.inf,
    jobs: float = math.inf,
) -> Iterator[SimulatedJob]:
    """Ask for jobs while there is capacity, let them take their time, and tell what they find.

    Args:
        optimizer: One with a `VirtualClock`.
        evaluate: What a task measures at an input.
        durations: How long each task takes: seconds, or a function of the parameters.
        seconds: Virtual time after which no more jobs are asked for.
        jobs: How many jobs to run.

    Yields each job when it ends, after it was told. Decisions take time of their own: the clock
    moves while they are computed, and jobs that end meanwhile are told after.
    """
    clock = optimizer.clock
    if not isinstance(clock, VirtualClock):
        raise ProblemError("optimizer has the machine's clock: write clock=VirtualClock().")
    running: list[tuple[float, int, float, Suggestion]] = []
    asked = 0
    while True:
        over = asked >= jobs or clock.now() >= seconds
        # What ended while the last decision was made is told before the next.
        ready = bool(running) and running[0][0] <= clock.now()
        job = None if over or ready else optimizer.ask()
        if job is not None:
            asked += 1
            lasts = duration_of(durations, job)
            heapq.heappush(running, (clock.now() + lasts, job.number, clock.now(), job))
            continue
        if not running:
            return
        ended, _, started, job = heapq.heappop(running)
        clock.move(ended)
        values = evaluate(job.task, job.params)
        optimizer.tell(job, values, seconds=ended - started)
        yield SimulatedJob(job, values, started, ended)


def duration_of(durations: Mapping[str, Duration], job: Suggestion) -> float:
    if job.task not in durations:
        raise ProblemError(f"durations has no entry for task {job.task!r}: write its seconds.")
    given = durations[job.task]
    lasts = finite(given(job.params) if callable(given) else given)
    if lasts is None or lasts < 0:
        raise ProblemError(f"durations[{job.task!r}] is {given!r}: write seconds, at least 0.")
    return lasts
