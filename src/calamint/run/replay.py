"""Replaying a study: its events, whoever caused them, folded over an optimiser.

All events in order give the same optimiser in every process and after every restart. What a
decision leaves for the next one (`State`) is not among them: hyper-parameters are stored with the
study, and for partial updates the last full update, and those after it, are made again.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, final

import numpy as np
from sqlalchemy import Row, Select, and_, bindparam, select

from calamint.decide import (
    Clock,
    Decision,
    FullUpdate,
    Optimizer,
    Settings,
    State,
    Suggestion,
    VirtualClock,
    free_capacity,
    recompute_update,
)
from calamint.errors import ProblemError, ResultError, StorageError
from calamint.problem import Params, Problem, Task
from calamint.run.corrected import Corrected
from calamint.run.jobs import Job
from calamint.run.store import Database, LeaseClock, schema


@final
class Replica:
    """What a process knows of a study.

    sequence  how many events it has seen     open     resources of attempts that have them
    waiting   jobs that may be started, and not before when, by the clock of leases
    held      jobs that wait for the user
    ended     finished jobs by task           spent    what was expected to be paid for them
    last      the time of the last event      decision_seconds  of all decisions
    """

    def __init__(
        self,
        database: Database,
        study: Row[Any],
        problem: Problem,
        settings: Settings,
        clock: Clock,
        now: Callable[[], float],
        lease_clock: LeaseClock,
    ) -> None:
        """study: its row; now: the time, in seconds since 1970, or a virtual one."""
        self.database, self.study, self.name = database, int(study.id), str(study.name)
        self.uid = str(study.uid)
        self.settings, self.clock, self.now = settings, clock, now
        self.lease_clock = lease_clock
        self._corrections = Corrected()
        self.restart(problem, study.revision)

    def restart(self, problem: Problem, revision: int) -> None:
        """Forget everything, to replay it, perhaps under a changed problem."""
        self.problem, self.revision = problem, revision
        # The store itself has failed jobs tried again: to the optimiser one that failed has failed.
        settings = replace(self.settings, retries=0)
        self.optimizer = Optimizer.with_settings(problem, settings, self.clock)
        self.sequence = 0
        self.jobs: dict[int, Suggestion] = {}
        self.open: dict[tuple[int, int], tuple[str, ...]] = {}
        self.waiting: dict[int, float] = {}
        self.held: set[int] = set()
        self.ended: Counter[str] = Counter()
        self.spent = self.decision_seconds = self.last = 0.0
        self._decided: tuple[int, State] | None = None

    def under(self, problem: Problem) -> "Replica":
        """A copy that has seen nothing yet, under another problem."""
        other = copy(self)
        other.restart(problem, self.revision)
        return other

    @property
    def free(self) -> dict[str, int]:
        """How many more jobs each resource can take."""
        return free_capacity(self.problem.graph, self.open.values())

    @property
    def running(self) -> set[int]:
        """Jobs that have not ended; those that were told in part have."""
        seen = self.optimizer.observations
        return set(seen.pending) - set(seen.awaited)

    def resolve(self, job: Job | int) -> tuple[int, int | None, Task]:
        """The number, the attempt (or None for the latest) and the task of a job of this study."""
        if isinstance(job, Job):
            number, attempt = job.number, job.attempt
        elif isinstance(job, int) and not isinstance(job, bool):
            number, attempt = job, None
        else:
            raise ResultError(f"job is {job!r}: write what ask() returned, or its number.")
        known = self.jobs.get(number)
        if known is None or (
            isinstance(job, Job)
            and (job.study, job.task, job.params) != (self.uid, known.task, known.params)
        ):
            raise ResultError(f"job {number!r} does not belong to this study: nothing was changed.")
        return number, attempt, self.problem.tasks[known.task]

    def moved(self, number: int, params: Mapping[str, Any] | None) -> Params | None:
        """Where a job was really measured, if that is another input than its own."""
        job = self.jobs[number]
        return None if params is None else job.moved(self.problem.space, params).params

    def attempt(self, number: int, attempt: int) -> Job:
        """An attempt at a job of this study."""
        made = self.jobs[number]
        return Job(number, made.task, made.params, (), attempt, suggestion=made, study=self.uid)

    def decided(self, number: int, state: State) -> None:
        """A decision that was made here, and booked: its event need not be made again."""
        self._decided = number, state

    def sync(self) -> None:
        """Apply all events that were not seen yet, under the problem as it is now."""
        while (revision := self._apply_events()) != self.revision:
            with self.database.read() as connection:
                content = connection.execute(_PROBLEM, {"study": self.study}).scalar_one()
            try:
                problem = Problem.from_content(content, like=self.problem)
            except ProblemError as error:
                raise StorageError(
                    f"study {self.name!r} was changed by another process, and names other functions"
                    f" now ({error}): open it again with the problem that it has."
                ) from error
            self.restart(problem, revision)

    def _apply_events(self) -> int:
        """Apply what is new; after a change of the problem, nothing. The problem's revision."""
        with self.database.read() as connection:
            head = connection.execute(_HEAD, {"study": self.study}).one()
            if head.revision != self.revision or head.sequence == self.sequence:
                return int(head.revision)
            since = {"study": self.study, "after": self.sequence}
            rows = connection.execute(_EVENTS, since).all()
            measured = connection.execute(_MEASUREMENTS, since).all()
            stored = connection.execute(_STATE, {"study": self.study}).scalar_one()
        corrections = self._corrections.after(rows)
        if corrections is not self._corrections:
            self._corrections = corrections
            if self.sequence:  # it is as if the truth had been told at once
                self.restart(self.problem, self.revision)
                return self._apply_events()
        # By job, whenever they were told; measurements from elsewhere by their event.
        values: dict[tuple[int | None, int], dict[str, Any]] = {}
        params: dict[int, dict[str, Any]] = {}
        binary = self.problem.binary
        for row in measured:
            number: Any = row.value if row.sem is None else (row.value, row.sem)
            value = bool(row.value) if row.function in binary else number
            key = (row.job, 0) if row.job is not None else (None, row.sequence)
            values.setdefault(key, {})[row.function] = value
            params[row.sequence] = row.params
        for row in rows:
            key = (row.job, 0) if row.job is not None else (None, row.sequence)
            self._apply(row, values.get(key, {}), params.get(row.sequence), stored)
            self.sequence, self.last = row.sequence, row.time
        return int(head.revision)

    def _apply(
        self,
        row: Row[Any],
        values: Mapping[str, Any],
        params: Mapping[str, Any] | None,
        stored: Mapping[str, Any] | None,
    ) -> None:
        """One event."""
        optimizer, kind = self.optimizer, row.kind
        if kind == "asked":
            suggestion = self._suggestion(row)
            decision = Decision(row.job, row.update_kind, row.stage_seconds, tuple(row.warnings))
            optimizer.book(self._state_after(row, stored), suggestion, decision, row.free)
            self.decision_seconds += suggestion.decision_seconds
            self.open[row.job, 1] = suggestion.resources
        elif kind == "enqueued":
            optimizer.enqueue(self._suggestion(row))
            self.waiting[row.job] = -math.inf
        elif kind == "started":
            self.open[row.job, row.attempt] = tuple(row.detail)
            self.waiting.pop(row.job, None)
        elif kind == "returned":
            self.open.pop((row.job, row.attempt), None)
            self.waiting[row.job] = self._moment(row.detail)
        elif kind == "held":
            self.open.pop((row.job, row.attempt), None)
            self.held.add(row.job)
            optimizer.observations = optimizer.observations.hold(self.jobs[row.job])
        elif kind == "released":
            self._release(row.job)
            self.waiting[row.job] = -math.inf
        elif kind == "closed":
            self.open.pop((row.job, row.attempt), None)
        elif kind in ("told", "failed"):
            self._release(row.job)
            self.open.pop((row.job, row.attempt), None)
            self.waiting.pop(row.job, None)
            self._end(row, values)
        elif kind == "cancelled":
            self._release(row.job)
            optimizer.cancel(self.jobs[row.job])
            for key in [key for key in self.open if key[0] == row.job]:
                del self.open[key]
            self.waiting.pop(row.job, None)
        elif kind == "added" and params is not None:
            optimizer.add(params, values, None if row.detail is None else row.detail["notes"])

    def _end(self, row: Row[Any], values: Mapping[str, Any]) -> None:
        """A job was told or failed, with the values that it has after all corrections."""
        job, corrections = self.jobs[row.job], self._corrections
        withdrawn = corrections.withdrawn.get(row.job)
        told: Mapping[str, Any] = row.detail if row.kind == "told" else {}
        broken = [name for name in told.get("broken", ()) if name not in values]
        if withdrawn == "withdrawn" or (withdrawn == "forgiven" and not values):
            self.optimizer.cancel(job)
        elif row.kind == "told" or values:
            failed: dict[str, Any] = {} if withdrawn else dict.fromkeys(broken)
            used = corrections.params.get(row.job) or told.get("params")
            self.optimizer.tell(job, {**values, **failed}, told.get("seconds"), used)
            if corrections.more.get(row.job, told.get("more", False)):
                self._await(job, used, values)
        else:
            self.optimizer.fail(job, row.detail)
        if not withdrawn:
            self.ended[row.task] += 1
            self.spent += job.cost

    def _await(
        self, job: Suggestion, used: Mapping[str, Any] | None, told: Collection[str]
    ) -> None:
        """What a job has not told yet is still pending, at the input that was used."""
        optimizer = self.optimizer
        at = job if used is None else job.moved(self.problem.space, used)
        measures = self.problem.tasks[job.task].measures
        rest = tuple(name for name in measures if name not in told)
        optimizer.observations = optimizer.observations.wait_for(at, rest)

    def _release(self, number: int) -> None:
        """A job that was held is pending again."""
        if number in self.held:
            self.held.discard(number)
            optimizer = self.optimizer
            optimizer.observations = optimizer.observations.release(self.jobs[number])

    def _moment(self, detail: Any) -> float:
        """From when on a job may be tried again, by the clock of leases; of another boot: now."""
        here = isinstance(detail, Mapping) and detail["boot"] == self.lease_clock.boot
        return float(detail["at"]) if here else -math.inf

    def _suggestion(self, row: Row[Any]) -> Suggestion:
        enqueued = row.update_kind is None
        suggestion = Suggestion(
            row.job,
            row.task,
            row.params,
            tuple(row.detail) if row.kind == "asked" else (),
            bits=row.bits,
            cost=1.0 if row.predicted_cost is None else row.predicted_cost,
            scores=row.scores,
            update="enqueued" if enqueued else row.update_kind,
            decision_seconds=0.0 if enqueued else float(row.stage_seconds["total"]),
            warnings=() if enqueued else tuple(row.warnings),
            point=self.problem.space.encode(row.params),
        )
        self.jobs[row.job] = suggestion
        return suggestion

    def _state_after(self, row: Row[Any], stored: Mapping[str, Any] | None) -> State:
        """What the decision of an event left."""
        optimizer = self.optimizer
        decided, self._decided = self._decided, None
        if decided is not None and decided[0] == row.job:
            return decided[1]
        state, update = optimizer.state, row.update_kind
        # What was before the last full update does not matter any more.
        if stored is None or update not in ("full", "partial") or row.job < stored["decision"]:
            return state
        if row.job == stored["decision"]:
            ended = self.clock.now() - (self.now() - row.made)
            if not isinstance(self.clock, VirtualClock):  # the wall clock may have been set back
                ended = min(ended, self.clock.now())
            seconds = float(row.stage_seconds["total"])
            version = optimizer.observations.version
            state = State(FullUpdate.from_json(stored, version, ended, seconds))
        if self.settings.rationality == math.inf:
            return state  # nothing goes on from it
        rng = np.random.default_rng([self.settings.seed, row.job])
        seen = optimizer.observations
        return recompute_update(self.problem, self.settings, state, seen, update, rng, self.clock)


_STUDIES = schema.studies.c
_THIS_STUDY = _STUDIES.id == bindparam("study")
_HEAD = select(_STUDIES.sequence, _STUDIES.revision).where(_THIS_STUDY)
_PROBLEM = select(_STUDIES.problem).where(_THIS_STUDY)
_STATE = select(_STUDIES.state).where(_THIS_STUDY)


def _events() -> Select[Any]:
    """Events with the jobs and the decisions that they are about, in order."""
    events, jobs, decisions = schema.events, schema.jobs, schema.decisions
    return (
        select(
            events.c.sequence,
            events.c.time,
            events.c.kind,
            events.c.job,
            events.c.attempt,
            events.c.detail,
            jobs.c.task,
            jobs.c.params,
            jobs.c.bits,
            jobs.c.predicted_cost,
            jobs.c.scores,
            decisions.c.update_kind,
            decisions.c.made,
            decisions.c.stage_seconds,
            decisions.c.warnings,
            decisions.c.free,
        )
        .outerjoin(jobs, and_(jobs.c.study_id == events.c.study_id, jobs.c.number == events.c.job))
        .outerjoin(
            decisions,
            and_(
                decisions.c.study_id == events.c.study_id,
                decisions.c.number == jobs.c.decision,
            ),
        )
        .where(events.c.study_id == bindparam("study"), events.c.sequence > bindparam("after"))
        .order_by(events.c.sequence)
    )


_EVENTS: Select[Any] = _events()
_MEASURED = schema.measurements.c
_MEASUREMENTS: Select[Any] = (
    select(
        _MEASURED.sequence,
        _MEASURED.params,
        _MEASURED.function,
        _MEASURED.value,
        _MEASURED.sem,
        schema.jobs.c.number.label("job"),
    )
    .outerjoin(schema.jobs, schema.jobs.c.id == _MEASURED.job_id)
    .where(
        _MEASURED.study_id == bindparam("study"),
        _MEASURED.sequence > bindparam("after"),
        _MEASURED.used,
    )
    .order_by(_MEASURED.id)
)
