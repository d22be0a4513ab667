"""Everything that a decision may depend on, as one value: what was measured, how long it took, what
failed, and which jobs are pending. Each event makes a new one."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

from calamint.arrays import Array
from calamint.decide.capacity import blocked
from calamint.decide.design import Design
from calamint.decide.records import Record, Suggestion
from calamint.growing import Growing
from calamint.model import SHORTEST, Data
from calamint.problem import Params, Problem

# By function: the value, and its noise variance, or NaN where that is not known.
Measured = Mapping[str, tuple[float, float]]


@final
@dataclass(frozen=True)
class Retry:
    """A job that failed and is to be tried again; `tries` is how often that will have been."""

    job: Suggestion
    tries: int


@final
@dataclass(frozen=True)
class Observations:
    """What has been seen.

    Attributes:
        data: Measurements by function, in the user's units.
        durations: Log seconds of finished jobs by task.
        outcomes: 1 where a job worked, 0 where it failed, by task whose failures are modelled.
        failed: The number of failed jobs by task.
        history: Finished jobs and added measurements, in order.
        pending: Jobs that have not ended, by number, and those that were told in part.
        awaited: Functions that the jobs that were told in part have still to tell, by number.
        design: Which inputs of the initial design each task was given.
        retries: Jobs to try again; `tries` is how often those that were, by number.
        times_blocked: How often in a row each task could not start for want of a resource.
        jobs: How many there were in all.
        version: Counts results.
        confirming: The input that is being measured to confirm it.
        failed_at: The task and the input of each failed job.
        repeated: Tasks that have measured an input again, to learn how noisy it is.
    """

    data: Mapping[str, Data]
    durations: Mapping[str, Data]
    outcomes: Mapping[str, Data]
    failed: Mapping[str, int]
    history: Growing[Record] = field(default_factory=Growing)
    pending: Mapping[int, Suggestion] = field(default_factory=dict)
    awaited: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    design: Design = field(default_factory=Design)
    retries: tuple[Retry, ...] = ()
    tries: Mapping[int, int] = field(default_factory=dict)
    times_blocked: Mapping[str, int] = field(default_factory=dict)
    jobs: int = 0
    version: int = 0
    confirming: Params | None = None
    failed_at: tuple[tuple[str, Params], ...] = ()
    repeated: frozenset[str] = frozenset()

    @staticmethod
    def none(problem: Problem) -> "Observations":
        """Before anything has been seen."""
        empty = Data.empty(problem.space.dimension)
        modelled = [name for name, task in problem.tasks.items() if task.failures == "model"]
        return Observations(
            dict.fromkeys(problem.measured, empty),
            dict.fromkeys(problem.tasks, empty),
            dict.fromkeys(modelled, empty),
            dict.fromkeys(problem.tasks, 0),
        )

    def enqueue(self, job: Suggestion) -> "Observations":
        """A job that the user wants is pending."""
        return replace(self, pending={**self.pending, job.number: job}, jobs=self.jobs + 1)

    def book(
        self, problem: Problem, job: Suggestion, free: Mapping[str, int] | None
    ) -> "Observations":
        """A job that was decided is pending.

        Args:
            free: How many more jobs each resource could take when tasks competed, if they did.
        """
        confirming = job.params if job.update == "confirm" else None
        booked = replace(self.enqueue(job), confirming=confirming)
        if job.update == "repeat":
            booked = replace(booked, repeated=self.repeated | {job.task})
        if job.update == "initial":
            booked = replace(booked, design=self.design.give(job.task, job.number))
        if job.update == "retry":
            first = next(retry for retry in self.retries if retry.job.task == job.task)
            left = tuple(retry for retry in self.retries if retry is not first)
            tries = {**self.tries, job.number: first.tries}
            booked = replace(booked, retries=left, tries=tries)
        times_blocked = Counter(self.times_blocked)
        if free is not None:
            times_blocked.update(blocked(problem.graph, free))
        times_blocked[job.task] = 0
        return replace(booked, times_blocked=times_blocked)

    def next_retry(self, competing: Iterable[str]) -> Suggestion | None:
        """The job to try again, of the first of these tasks that has one."""
        waiting = {retry.job.task: retry.job for retry in reversed(self.retries)}
        return next((waiting[task] for task in competing if task in waiting), None)

    def tell(
        self, problem: Problem, job: Suggestion, measured: Measured, seconds: float | None
    ) -> "Observations":
        """What a pending job measured; whether it worked is said by `work` or `fail`."""
        told = self._end(job)
        if seconds is not None:
            durations = self.durations[job.task].append(job.point, math.log(max(seconds, SHORTEST)))
            told = replace(told, durations={**self.durations, job.task: durations})
        if not measured:
            return told
        known = {*measured, *job.not_asked}
        left_out = tuple(name for name in problem.tasks[job.task].measures if name not in known)
        return told._record(
            job.params, job.point, measured, job.task, seconds, {}, left_out, job.number
        )

    def wait_for(self, job: Suggestion, functions: tuple[str, ...]) -> "Observations":
        """A job that was told has more to tell; its resources are free."""
        waiting = {**self.pending, job.number: replace(job, resources=())}
        return replace(
            self,
            pending=dict(sorted(waiting.items())),
            awaited={**self.awaited, job.number: functions},
        )

    def coming(self, problem: Problem) -> list[tuple[Suggestion, tuple[str, ...]]]:
        """Pending jobs, with the functions whose values they will tell."""
        coming = []
        for number, job in self.pending.items():
            asked = self.awaited.get(number, problem.tasks[job.task].measures)
            coming.append((job, tuple(name for name in asked if name not in job.not_asked)))
        return coming

    def work(self, job: Suggestion) -> "Observations":
        """A job worked."""
        if job.task not in self.outcomes:
            return self
        outcomes = self.outcomes[job.task].append(job.point, 1.0)
        return replace(self, outcomes={**self.outcomes, job.task: outcomes})

    def fail(self, problem: Problem, job: Suggestion, retries: int) -> "Observations":
        """A job failed; `retries` is how often one may be tried again."""
        tries = self.tries.get(job.number, 0)
        again = problem.tasks[job.task].failures == "retry" and tries < retries
        failed = replace(
            self._end(job),
            failed={**self.failed, job.task: self.failed[job.task] + 1},
            retries=(*self.retries, Retry(job, tries + 1)) if again else self.retries,
            failed_at=(*self.failed_at, (job.task, job.params)),
            version=self.version + 1,
        )
        if job.task not in self.outcomes:
            return failed
        outcomes = self.outcomes[job.task].append(job.point, 0.0)
        return replace(failed, outcomes={**self.outcomes, job.task: outcomes})

    def cancel(self, job: Suggestion) -> "Observations":
        """A pending job will not be run."""
        return replace(self._end(job), design=self.design.cancel(job.task, job.number))

    def hold(self, job: Suggestion) -> "Observations":
        """A pending job is put aside."""
        return self._end(job)

    def release(self, job: Suggestion) -> "Observations":
        """A job that was put aside is pending again."""
        return replace(self, pending={**self.pending, job.number: job})

    def add(
        self,
        params: Params,
        point: Array,
        measured: Measured,
        notes: dict[str, Any],
        job: int | None = None,
    ) -> "Observations":
        """Measurements that were not asked for, or by a job that the problem no longer has."""
        return self._record(params, point, measured, None, None, notes, (), job)

    def _end(self, job: Suggestion) -> "Observations":
        pending = {number: other for number, other in self.pending.items() if number != job.number}
        return replace(self, pending=pending)

    def _record(
        self,
        params: Params,
        point: Array,
        measured: Measured,
        task: str | None,
        seconds: float | None,
        notes: dict[str, Any],
        left_out: tuple[str, ...],
        job: int | None,
    ) -> "Observations":
        data = dict(self.data)
        for name, (value, noise) in measured.items():
            data[name] = data[name].append(point, value, noise)
        values = {name: value for name, (value, _) in measured.items()}
        errors = {name: math.sqrt(noise) for name, (_, noise) in measured.items() if noise >= 0}
        record = Record(params, values, task, seconds, point, errors, notes, left_out, job)
        return replace(
            self, data=data, history=self.history.append(record), version=self.version + 1
        )
