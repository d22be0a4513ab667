"""An optimiser that follows the events of a stored study, whoever caused them.

Replaying all events gives the same optimiser in every process and after every restart. What a
decision leaves behind for the next one is not among them: hyper-parameters are stored with the
study (`Memory`), and for partial updates the last full update is made again.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from sqlalchemy import Row, Select, and_, bindparam, select

from calamint.decide import Decision, Optimizer, Suggestion
from calamint.decide.booking import free_capacity
from calamint.model import Start
from calamint.problem import Problem
from calamint.run import schema
from calamint.run.database import Database

Starts = Mapping[str, Start] | None


@final
@dataclass(frozen=True)
class Memory:
    """The last full update: its decision, and hyper-parameters before and after it."""

    decision: int
    before: Starts
    after: Starts

    def to_json(self) -> dict[str, Any]:
        return {
            "decision": self.decision,
            "before": _write_starts(self.before),
            "after": _write_starts(self.after),
        }

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "Memory":
        return Memory(
            content["decision"], _read_starts(content["before"]), _read_starts(content["after"])
        )


def _write_starts(starts: Starts) -> dict[str, Any] | None:
    if starts is None:
        return None
    # JSON has no −∞, the logarithm of no noise.
    return {
        name: {
            "theta": [[float(v) if math.isfinite(v) else None for v in row] for row in start.theta],
            "measured": start.measured,
        }
        for name, start in starts.items()
    }


def _read_starts(content: Mapping[str, Any] | None) -> Starts:
    if content is None:
        return None
    return {
        name: Start(
            np.array([[-math.inf if v is None else v for v in row] for row in entry["theta"]]),
            entry["measured"],
        )
        for name, entry in content.items()
    }


@final
class Mirror:
    """What a process knows of a study.

    sequence  how many events it has seen     open     resources of attempts that have them
    waiting   jobs that may be started, and not before when
    ended     finished jobs by task           spent    what was expected to be paid for them
    thinking  seconds of deciding             last     the time of the last event
    """

    def __init__(
        self,
        database: Database,
        study: int,
        problem: Problem,
        make: Callable[[Problem], Optimizer],
        now: Callable[[], float],
    ) -> None:
        self.database, self.study, self.make, self.now = database, study, make, now
        self.restart(problem, 0)

    def restart(self, problem: Problem, revision: int) -> None:
        """See everything again, perhaps under a changed problem."""
        self.problem, self.revision = problem, revision
        self.optimizer = self.make(problem)
        self.sequence = 0
        self.jobs: dict[int, Suggestion] = {}
        self.open: dict[tuple[int, int], tuple[str, ...]] = {}
        self.waiting: dict[int, float] = {}
        self.ended: Counter[str] = Counter()
        self.spent = self.thinking = self.last = 0.0
        self._own: int | None = None
        self._after: Starts = None

    @property
    def free(self) -> dict[str, int]:
        return free_capacity(self.problem.graph, self.open.values())

    @property
    def _partial(self) -> bool:
        """Whether partial updates are made, which go on from full ones."""
        return self.optimizer.rationality != math.inf and self.optimizer.acquisition.uses_model

    def memory(self, number: int) -> Memory:
        """What a full decision that the optimiser just made leaves."""
        return Memory(number, self.optimizer.origin, self.optimizer.start)

    def decided(self, number: int) -> None:
        """The optimiser made this decision itself: its event will not be news."""
        self._own = number

    def sync(self) -> int:
        """Apply all events that were not seen yet; returns the revision that the problem has.

        After a change of the problem nothing is applied: `restart` first.
        """
        with self.database.read() as connection:
            head = connection.execute(_HEAD, {"study": self.study}).one()
            if head.revision != self.revision or head.sequence == self.sequence:
                return int(head.revision)
            since = {"study": self.study, "after": self.sequence}
            rows = connection.execute(_EVENTS, since).all()
            measured = connection.execute(_MEASUREMENTS, since).all()
            memory = connection.execute(_MEMORY, {"study": self.study}).scalar_one()
        values: dict[int, dict[str, Any]] = {}
        params: dict[int, dict[str, Any]] = {}
        verdicts = self.problem.judged
        for row in measured:
            number: Any = row.value if row.noise is None else (row.value, row.noise)
            value = bool(row.value) if row.function in verdicts else number
            values.setdefault(row.sequence, {})[row.function] = value
            params[row.sequence] = row.params
        remembered = None if memory is None else Memory.from_json(memory)
        for row in rows:
            if row.kind == "asked":
                self._asked(row, remembered)
            else:
                self._happened(row, values.get(row.sequence, {}), params.get(row.sequence))
            self.sequence, self.last = row.sequence, row.time
        return int(head.revision)

    def _asked(self, row: Row[Any], memory: Memory | None) -> None:
        suggestion = self._suggested(row)
        if row.job != self._own and memory is not None and row.made_by in ("full", "partial"):
            self._recall(row, memory)
        self._own = None
        total = float(row.seconds_by_stage["total"])
        decision = Decision(row.job, row.made_by, row.seconds_by_stage, tuple(row.warnings))
        self.optimizer.book(suggestion, decision, row.free)
        self.thinking += total
        self.open[row.job, 1] = suggestion.resources

    def _recall(self, row: Row[Any], memory: Memory) -> None:
        """A decision was made elsewhere, or before a restart: take over what it left."""
        if row.job < memory.decision:
            return
        if row.job == memory.decision:
            # Until there are more data, the belief is the one that started from `before`.
            self.optimizer.start, self._after = memory.before, memory.after
        if self._partial:
            ended = self.optimizer.clock.now() - (self.now() - row.made)
            took = float(row.seconds_by_stage["total"])
            self.optimizer.recall(row.job, row.made_by == "full", ended, took)

    def _suggested(self, row: Row[Any]) -> Suggestion:
        suggestion = Suggestion(
            row.job,
            row.task,
            row.params,
            tuple(row.detail) if row.kind == "asked" else (),
            bits=row.bits,
            cost=1.0 if row.predicted_cost is None else row.predicted_cost,
            values=row.worth,
            update="enqueued" if row.made_by is None else row.made_by,
            seconds=0.0 if row.made_by is None else float(row.seconds_by_stage["total"]),
            point=self.problem.space.encode(row.params),
        )
        self.jobs[row.job] = suggestion
        return suggestion

    def _happened(
        self, row: Row[Any], values: Mapping[str, Any], params: Mapping[str, Any] | None
    ) -> None:
        optimizer, kind = self.optimizer, row.kind
        if kind in ("told", "failed", "added") and self._after is not None:
            if not self._partial:
                optimizer.start = self._after
            self._after = None
        if kind == "enqueued":
            optimizer.book(self._suggested(row))
            self.waiting[row.job] = -math.inf
        elif kind == "started":
            self.open[row.job, row.attempt] = tuple(row.detail)
            self.waiting.pop(row.job, None)
        elif kind == "returned":
            self.open.pop((row.job, row.attempt), None)
            self.waiting[row.job] = row.detail
        elif kind == "closed":
            self.open.pop((row.job, row.attempt), None)
        elif kind in ("told", "failed"):
            job = self.jobs[row.job]
            if kind == "told":
                broken: dict[str, Any] = dict.fromkeys(row.detail["broken"])
                optimizer.tell(job, {**values, **broken}, row.detail["seconds"])
            else:
                optimizer.fail(job, row.detail)
            self.open.pop((row.job, row.attempt), None)
            self.waiting.pop(row.job, None)
            self.ended[row.task] += 1
            self.spent += job.cost
        elif kind == "cancelled":
            optimizer.cancel(self.jobs[row.job])
            for key in [key for key in self.open if key[0] == row.job]:
                del self.open[key]
            self.waiting.pop(row.job, None)
        elif kind == "added" and params is not None:
            optimizer.add(params, values)


_STUDIES = schema.studies.c
_HEAD = select(_STUDIES.sequence, _STUDIES.revision).where(_STUDIES.id == bindparam("study"))
_MEMORY = select(_STUDIES.memory).where(_STUDIES.id == bindparam("study"))


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
            jobs.c.worth,
            decisions.c.kind.label("made_by"),
            decisions.c.made,
            decisions.c.seconds.label("seconds_by_stage"),
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
        _MEASURED.sequence, _MEASURED.params, _MEASURED.function, _MEASURED.value, _MEASURED.noise
    )
    .where(
        _MEASURED.study_id == bindparam("study"),
        _MEASURED.sequence > bindparam("after"),
        _MEASURED.used,
    )
    .order_by(_MEASURED.id)
)
