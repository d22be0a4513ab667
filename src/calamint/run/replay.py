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
from sqlalchemy import Connection, Row

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
from calamint.errors import ProblemError, ResultError, StorageError, UnknownJobError
from calamint.problem import Params, Problem, Task
from calamint.run.corrected import Corrected
from calamint.run.earlier import EarlierProblems
from calamint.run.jobs import Job
from calamint.run.store import Database, LeaseClock, Pausable, log


@final
class Replica:
    """What a process knows of a study.

    sequence  how many events it has seen     open     resources of attempts that have them
    waiting   jobs that may be started, and not before when, by the clock of leases
    held      jobs that wait for the user
    paused    tasks and resources, by kind and name
    earlier   functions that were ever measured, before a change, and whether as pass or fail
    measured_before  what tasks measured before a change, by task
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
        self.paused: set[tuple[Pausable, str]] = set()
        self.earlier: dict[str, bool] = {}
        self.measured_before: dict[str, set[str]] = {}
        # Jobs of tasks, or with options, that the problem does not have any more.
        self._passed_over: set[int] = set()
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
        free = free_capacity(self.problem.graph, self.open.values())
        return {
            name: 0 if ("resource", name) in self.paused else room for name, room in free.items()
        }

    @property
    def paused_tasks(self) -> set[str]:
        """Tasks that cannot start, because they or all places where they could run are paused."""
        return {
            name
            for name, task in self.problem.tasks.items()
            if ("task", name) in self.paused
            or all(
                any(("resource", each) in self.paused for each in resources)
                for resources in task.runs_on or ()
            )
        }

    @property
    def running(self) -> set[int]:
        """Jobs that have not ended; those that were told in part have."""
        seen = self.optimizer.observations
        return set(seen.pending) - set(seen.awaited)

    def resolve(self, job: Job | int) -> tuple[int, int | None]:
        """The number and the attempt (or None for the latest) of a job of this study."""
        number, attempt = (job.number, job.attempt) if isinstance(job, Job) else (job, None)
        if not isinstance(number, int) or isinstance(number, bool):
            raise ResultError(f"job is {job!r}: write what ask() returned, or its number.")
        known = self.jobs.get(number)
        if known is None or (
            isinstance(job, Job)
            and (job.study, job.task, job.params) != (self.uid, known.task, known.params)
        ):
            raise UnknownJobError(
                f"job {number!r} does not belong to this study: nothing was changed."
            )
        return number, attempt

    def task_of(self, number: int) -> Task | None:
        """If the problem still has it."""
        return self.problem.tasks.get(self.jobs[number].task)

    def tellable(self, number: int) -> tuple[str, ...]:
        """Functions of which a job can tell values: what its task measures, or ever did."""
        task = self.task_of(number)
        now = () if task is None else task.measures
        before = sorted(self.measured_before.get(self.jobs[number].task, ()))
        return tuple(dict.fromkeys((*now, *before)))

    @property
    def binary(self) -> list[str]:
        """Functions that are measured as pass or fail, or were."""
        return [*self.problem.binary, *(name for name, kind in self.earlier.items() if kind)]

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

    def sync(self, within: Connection | None = None) -> None:
        """Apply all events that were not seen yet, under the problem as it is now.

        within  a transaction that is open, if there is one
        """
        while (revision := self._apply_events(within)) != self.revision:
            content = log.read_problem(self.database, self.study, within)
            try:
                problem = Problem.from_content(content, like=self.problem)
            except ProblemError as error:
                raise StorageError(
                    f"study {self.name!r} was changed by another process, and names other functions"
                    f" now ({error}): open it again with the problem that it has."
                ) from error
            self.restart(problem, revision)

    def _apply_events(self, within: Connection | None) -> int:
        """Apply what is new; after a change of the problem, nothing. The problem's revision."""
        seen = self.revision, self.sequence
        revision, news = log.read_news(self.database, self.study, *seen, within)
        if news is None:
            return revision
        rows, measured, stored = news
        corrections = self._corrections.after(rows)
        if corrections is not self._corrections:
            self._corrections = corrections
            if self.sequence:  # it is as if the truth had been told at once
                self.restart(self.problem, self.revision)
                return self._apply_events(within)
        # By job, whenever they were told; measurements from elsewhere by their event.
        values: dict[tuple[int | None, int], dict[str, Any]] = {}
        params: dict[int, dict[str, Any]] = {}
        functions = {*self.problem.measured}
        for row in measured:
            params[row.sequence] = row.params
            if row.function not in functions:
                continue
            number: Any = row.value if row.sem is None else (row.value, row.sem)
            value = bool(row.value) if row.function in self.problem.binary else number
            key = (row.job, 0) if row.job is not None else (None, row.sequence)
            values.setdefault(key, {})[row.function] = value
        self._earlier = EarlierProblems(rows, self.problem)
        self.earlier |= self._earlier.binary
        for task, functions_then in self._earlier.measured.items():
            self.measured_before.setdefault(task, set()).update(functions_then)
        for row in rows:
            key = (row.job, 0) if row.job is not None else (None, row.sequence)
            self._apply(row, values.get(key, {}), params.get(row.sequence), stored)
            self.sequence, self.last = row.sequence, row.time
        return revision

    def _apply(
        self,
        row: Row[Any],
        values: Mapping[str, Any],
        params: Mapping[str, Any] | None,
        stored: Mapping[str, Any] | None,
    ) -> None:
        """One event."""
        optimizer, kind = self.optimizer, row.kind
        if kind in ("asked", "enqueued") and not (
            row.task in self.problem.tasks and self._can_encode(row.params)
        ):
            self._pass_over(row)
        elif kind == "asked":
            suggestion = self._suggestion(row)
            optimizer.book(self._state_after(row, stored), suggestion, _decision(row), row.free)
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
            if row.job not in self._passed_over:
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
            if row.job not in self._passed_over:
                optimizer.cancel(self.jobs[row.job])
            for key in [key for key in self.open if key[0] == row.job]:
                del self.open[key]
            self.waiting.pop(row.job, None)
        elif kind == "added" and params is not None and values and self._can_encode(params):
            notes = None if row.detail is None else row.detail["notes"]
            optimizer.add(params, values, notes, outside=True)
        elif kind == "changed":
            self._earlier.changed()
        elif kind in ("paused", "resumed"):
            pair = row.detail["kind"], row.detail["name"]
            (self.paused.add if kind == "paused" else self.paused.discard)(pair)

    def _can_encode(self, params: Mapping[str, Any]) -> bool:
        """Not an option that was never the problem's, nor a negative number on a log scale."""
        try:
            self.problem.space.validate(params, outside=True)
        except ProblemError:
            return False
        return True

    def _pass_over(self, row: Row[Any]) -> None:
        """A job that the problem has no place for any more: it counts, and has a number."""
        suggestion = self._suggestion(row)
        self._passed_over.add(row.job)
        self.decision_seconds += suggestion.decision_seconds
        optimizer, seen = self.optimizer, self.optimizer.observations
        optimizer.observations = replace(seen, jobs=seen.jobs + 1)
        if row.kind == "asked":
            self.open[row.job, 1] = suggestion.resources
            optimizer.decisions.append(_decision(row))

    def _end(self, row: Row[Any], values: Mapping[str, Any]) -> None:
        """A job was told or failed, with the values that it has after all corrections."""
        job, corrections, optimizer = self.jobs[row.job], self._corrections, self.optimizer
        withdrawn = corrections.withdrawn.get(row.job)
        told: Mapping[str, Any] = row.detail if row.kind == "told" else {}
        used = corrections.params.get(row.job) or told.get("params")
        passed_over = row.job in self._passed_over
        measures = () if passed_over else self.problem.tasks[row.task].measures
        can_encode = self._can_encode({**job.params, **(used or {})})
        own = {name: value for name, value in values.items() if name in measures}
        broken = [n for n in told.get("broken", ()) if n not in values and n in measures]
        failed: dict[str, Any] = {} if withdrawn else dict.fromkeys(broken)
        if passed_over:
            pass
        elif withdrawn == "withdrawn" or (withdrawn == "forgiven" and not own) or not can_encode:
            optimizer.cancel(job)
        elif own or failed:
            optimizer.tell(job, {**own, **failed}, told.get("seconds"), used)
            if corrections.more.get(row.job, told.get("more", False)):
                self._await(job, used, values)
        elif row.kind == "told":  # nothing that it told is in the problem any more
            optimizer.cancel(job)
        else:
            optimizer.fail(job, row.detail)
        others = {name: value for name, value in values.items() if name not in own}
        # The task does not measure them any more.
        if others and withdrawn != "withdrawn" and can_encode:
            at = job if used is None else job.moved(self.problem.space, used)
            optimizer.add(at.params, others, outside=True, job=row.job)
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
        rest = tuple(n for n in measures if n not in told and n not in job.not_asked)
        optimizer.observations = optimizer.observations.wait_for(at, rest)

    def _release(self, number: int) -> None:
        """A job that was held is pending again."""
        if number in self.held:
            self.held.discard(number)
            optimizer = self.optimizer
            if number not in self._passed_over:
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
            point=self.problem.space.encode(row.params, outside=True)
            if self._can_encode(row.params)
            else np.empty(0),
            not_asked=self._earlier.not_asked(row.task),
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
            seconds = row.stage_seconds["total"]
            seen = (stored.get("prepared") and state.booked) or optimizer.observations
            full = FullUpdate.from_json(stored, seen.version, ended, seconds)
            state = State(full, booked=state.booked)
        if self.settings.rationality == math.inf:
            return state  # nothing goes on from it
        rng = np.random.default_rng([self.settings.seed, row.job])
        given = self.problem, self.settings, state, optimizer.observations, update, rng, self.clock
        return recompute_update(*given)


def _decision(row: Row[Any]) -> Decision:
    return Decision(row.job, row.update_kind, row.stage_seconds, tuple(row.warnings))
