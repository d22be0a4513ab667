"""The books of one study: every change is one short transaction, and one event in its history.

| event | what happened |
|---|---|
| asked | a decision made a job, and its first attempt started |
| enqueued | the user wants a job |
| started | an attempt at a waiting job started |
| told | a result finished a job |
| failed | a job failed for good |
| returned | an attempt failed or was lost, and its job waits to be tried again |
| cancelled | a job will not be run |
| closed | an attempt ended whose job had ended before |
| added | measurements from elsewhere |
| changed | the problem was changed |

Capacity belongs to attempts, not to jobs: while an attempt is open, it has its resources.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from sqlalchemy import Connection, Row, and_, bindparam, delete, func, insert, select, update

from calamint.decide import Decision, Recommendation, ResultError, Suggestion
from calamint.problem import Problem
from calamint.problem.spec import to_content
from calamint.run import schema
from calamint.run.database import Database
from calamint.run.jobs import OPEN, JobRecord, is_dead

Measured = Mapping[str, tuple[float, float | None]]  # by function: value and standard error


@final
@dataclass(frozen=True)
class Policy:
    """What happens to an attempt whose owner is gone, or whose task says `failures="retry"`.

    attempts  how many there are at most
    pause     seconds before the second; doubled before every further one
    """

    attempts: int = 3
    pause: float = 1.0


def write_problem(connection: Connection, study: int, problem: Problem) -> None:
    """Tasks and resources as tables that a person can read."""
    for table in (schema.tasks, schema.resources):
        connection.execute(delete(table).where(table.c.study_id == study))
    content = to_content(problem)
    connection.execute(
        insert(schema.tasks),
        [
            {
                "study_id": study,
                "name": name,
                "measures": entry["measures"],
                "runs_on": entry["runs_on"],
                "cost": str(entry.get("cost", 1.0)),
                "command": entry.get("command"),
                "failures": entry.get("failures", "model"),
            }
            for name, entry in content["tasks"].items()
        ],
    )
    connection.execute(
        insert(schema.resources),
        [
            {"study_id": study, "name": name, "capacity": capacity}
            for name, capacity in problem.resources.items()
        ],
    )


@final
class Ledger:
    """Transactions on one study.

    now  the time, in seconds since 1970, or a virtual one
    """

    def __init__(
        self, database: Database, study: int, policy: Policy, now: Callable[[], float]
    ) -> None:
        self.database, self.study, self.policy, self.now = database, study, policy, now

    # -- jobs ---------------------------------------------------------------------------------

    def book(
        self,
        suggestion: Suggestion,
        decision: Decision,
        revision: int,
        free: Mapping[str, int] | None,
        owner: str,
        lease: float | None,
        memory: Mapping[str, Any] | None,
    ) -> bool:
        """Make a job of a decision and start its first attempt; False if others came first."""
        with self.database.write() as connection:
            if self._revision(connection) != revision:
                return False
            if self._next_number(connection) != suggestion.number:
                return False
            if not self._fits(connection, suggestion.resources):
                return False
            now = self.now()
            connection.execute(
                insert(schema.decisions).values(
                    study_id=self.study,
                    number=decision.number,
                    made=now,
                    kind=decision.kind,
                    seconds=decision.seconds,
                    warnings=list(decision.warnings),
                    free=None if free is None else dict(free),
                )
            )
            job = self._insert_job(connection, suggestion, "running", 1, decision.number)
            self._open(connection, job, 1, suggestion.resources, owner, lease)
            self._event(connection, "asked", suggestion.number, 1, list(suggestion.resources))
            if memory is not None:
                self._update_study(connection, memory=memory)
            return True

    def enqueue(self, task: str, params: Mapping[str, Any]) -> int:
        """A job that the user wants; its number."""
        with self.database.write() as connection:
            number = self._next_number(connection)
            job = Suggestion(number, task, dict(params), ())
            self._insert_job(connection, job, "waiting", 0, None)
            self._event(connection, "enqueued", number)
            return number

    def start(
        self,
        number: int,
        resources: tuple[str, ...],
        revision: int,
        owner: str,
        lease: float | None,
    ) -> int | None:
        """Start an attempt at a waiting job: its number, or None if others came first."""
        with self.database.write() as connection:
            job = self._job(connection, number)
            if job.state != "waiting" or self._revision(connection) != revision:
                return None
            if not self._fits(connection, resources):
                return None
            attempt = job.attempts + 1
            self._open(connection, job.id, attempt, resources, owner, lease)
            self._update_job(
                connection, job.id, state="running", attempts=attempt, resources=list(resources)
            )
            self._event(connection, "started", number, attempt, list(resources))
            return attempt

    def tell(
        self,
        number: int,
        attempt: int | None,
        measured: Measured,
        broken: Mapping[str, str],
        seconds: float | None,
    ) -> bool:
        """What an attempt measured; False if it came too late, and was kept without being used."""
        with self.database.write() as connection:
            job, row = self._attempt(connection, number, attempt, "told")
            late = job.state not in OPEN
            now = self.now()
            took = seconds if seconds is not None else max(now - row.started, 0.0)
            reason = "; ".join(f"{name} is {value}" for name, value in broken.items()) or None
            detail = {"seconds": took, "broken": list(broken)} if not late else None
            kind = "closed" if late else "told"
            sequence = self._event(connection, kind, number, row.number, detail)
            rows = self._measurements(
                sequence, job.params, measured, job.id, row.number, used=not late
            )
            if rows:
                connection.execute(insert(schema.measurements), rows)
            self._close(connection, row.id, "late" if late else "done", reason)
            if not late:
                state = "failed" if broken else "done"
                self._update_job(
                    connection, job.id, state=state, ended=now, seconds=took, reason=reason
                )
            return not late

    def fail(self, number: int, attempt: int | None, reason: str, retry: bool) -> None:
        """An attempt ended without a result."""
        with self.database.write() as connection:
            job, row = self._attempt(connection, number, attempt, "failed")
            self._fail(connection, job, row, reason, retry, "failed")

    def cancel(self, number: int, reason: str | None = None) -> None:
        """A job will not be run, nor tried again; its attempts give their resources back."""
        with self.database.write() as connection:
            job = self._job(connection, number)
            if job.state not in OPEN:
                raise ResultError(f"job {number} is already {job.state}: nothing was changed.")
            for row in self._open_attempts(connection):
                if row.job_id == job.id:
                    self._close(connection, row.id, "cancelled", reason)
            self._update_job(connection, job.id, state="cancelled", ended=self.now(), reason=reason)
            self._event(connection, "cancelled", number)

    def close(self, number: int, attempt: int, reason: str) -> None:
        """An attempt whose job has ended was stopped."""
        with self.database.write() as connection:
            job = self._job(connection, number)
            for row in self._open_attempts(connection):
                if row.job_id == job.id and row.number == attempt:
                    self._close(connection, row.id, "cancelled", reason)
                    self._event(connection, "closed", number, attempt)

    def add(self, rows: Iterable[tuple[Mapping[str, Any], Measured]]) -> None:
        """Measurements from elsewhere, all of them or none."""
        given = list(rows)
        with self.database.write() as connection:
            first = self._sequence(connection, len(given)) - len(given) + 1
            events = [
                {"study_id": self.study, "sequence": first + i, "time": self.now(), "kind": "added"}
                for i in range(len(given))
            ]
            if events:
                connection.execute(insert(schema.events), events)
            measured = [
                row
                for i, (params, values) in enumerate(given)
                for row in self._measurements(first + i, params, values, None, None, True)
            ]
            if measured:
                connection.execute(insert(schema.measurements), measured)

    # -- the study ----------------------------------------------------------------------------

    def head(self) -> Row[Any]:
        """How far the study is: sequence, revision and problem."""
        with self.database.read() as connection:
            return self._study(connection)

    def open_attempts(self) -> Sequence[Row[Any]]:
        with self.database.read() as connection:
            return self._open_attempts(connection)

    def change(self, problem: Problem, revision: int, changes: Sequence[str]) -> int | None:
        """Another problem: its revision, or None if others changed it since `revision`."""
        with self.database.write() as connection:
            if self._revision(connection) != revision:
                return None
            self._update_study(
                connection, problem=to_content(problem), revision=revision + 1, memory=None
            )
            write_problem(connection, self.study, problem)
            self._event(connection, "changed", detail=list(changes))
            return revision + 1

    def recommended(self, found: Recommendation, kind: str, sequence: int) -> None:
        with self.database.write() as connection:
            connection.execute(
                insert(schema.recommendations).values(
                    study_id=self.study,
                    sequence=sequence,
                    made=self.now(),
                    kind=kind,
                    params=found.params,
                    objective=found.objective,
                    probability=found.probability,
                    confident=found.confident,
                )
            )

    def records(self) -> list[JobRecord]:
        """All jobs, oldest first, with what they measured."""
        jobs, decisions, measured = schema.jobs, schema.decisions, schema.measurements
        with self.database.read() as connection:
            rows = connection.execute(
                select(jobs, decisions.c.kind)
                .outerjoin(
                    decisions,
                    and_(
                        decisions.c.study_id == jobs.c.study_id,
                        decisions.c.number == jobs.c.decision,
                    ),
                )
                .where(jobs.c.study_id == self.study)
                .order_by(jobs.c.number)
            ).all()
            found = connection.execute(
                select(measured.c.job_id, measured.c.function, measured.c.value).where(
                    measured.c.study_id == self.study, measured.c.used
                )
            ).all()
        values: dict[int, dict[str, float]] = {}
        for job, function, value in found:
            values.setdefault(job, {})[function] = value
        return [
            JobRecord(
                row.number,
                row.task,
                row.params,
                row.state,
                tuple(row.resources),
                row.attempts,
                row.created,
                row.ended,
                row.seconds,
                row.reason,
                row.bits,
                row.predicted_cost,
                row.kind or "enqueued",
                values.get(row.id, {}),
            )
            for row in rows
        ]

    # -- leases -------------------------------------------------------------------------------

    def beat(self, held: Sequence[tuple[int, int]], lease: float) -> list[tuple[int, int]]:
        """Renew the leases of attempts (job, attempt); returns those that are not open any more."""
        with self.database.write() as connection:
            now = self.now()
            rows = {(row.job, row.number): row for row in self._open_attempts(connection)}
            for key in held:
                if key in rows:
                    renewed = _UPDATE_ATTEMPT.values(heartbeat=now, lease_until=now + lease)
                    connection.execute(renewed, {"attempt": rows[key].id})
            return [key for key in held if key not in rows]

    def reap(self) -> int:
        """Give back the jobs of attempts whose lease has run out, or whose owner is dead."""
        with self.database.read() as connection:
            if not self._lost(connection):
                return 0
        with self.database.write() as connection:
            lost = self._lost(connection)
            for row in lost:
                job = self._job(connection, row.job)
                self._fail(connection, job, row, "its owner is gone", True, "lost")
            return len(lost)

    def _lost(self, connection: Connection) -> list[Row[Any]]:
        now = self.now()
        return [
            row
            for row in self._open_attempts(connection)
            if row.lease_until is not None and (row.lease_until < now or is_dead(row.owner))
        ]

    # -- inside a transaction -----------------------------------------------------------------

    def _study(self, connection: Connection) -> Row[Any]:
        return connection.execute(_STUDY, {"study": self.study}).one()

    def _revision(self, connection: Connection) -> int:
        return int(connection.execute(_REVISION, {"study": self.study}).scalar_one())

    def _update_study(self, connection: Connection, **values: Any) -> None:
        connection.execute(
            update(schema.studies).where(schema.studies.c.id == self.study).values(**values)
        )

    def _job(self, connection: Connection, number: int) -> Row[Any]:
        found = connection.execute(_JOB, {"study": self.study, "number": number}).first()
        if found is None:
            raise ResultError(f"job {number!r} was not asked for here: nothing was changed.")
        return found

    def _update_job(self, connection: Connection, job: int, **values: Any) -> None:
        connection.execute(_UPDATE_JOB.values(**values), {"job": job})

    def _next_number(self, connection: Connection) -> int:
        last = connection.execute(_LAST_NUMBER, {"study": self.study}).scalar()
        return 0 if last is None else last + 1

    def _attempt(
        self, connection: Connection, number: int, attempt: int | None, doing: str
    ) -> tuple[Row[Any], Row[Any]]:
        """A job and its attempt (or the latest), which has not spoken yet."""
        job = self._job(connection, number)
        which = job.attempts if attempt is None else attempt
        row = connection.execute(_ATTEMPT, {"job": job.id, "number": which}).first()
        if row is None:
            raise ResultError(
                f"job {number} cannot be {doing}: it is {job.state}, and no such attempt was"
                " started; nothing was changed."
            )
        if row.outcome in ("done", "failed", "late"):
            word = "failed" if row.outcome == "failed" else "told"
            raise ResultError(f"job {number} was already {word}: nothing was changed.")
        return job, row

    def _open_attempts(self, connection: Connection) -> Sequence[Row[Any]]:
        """Attempts that have their resources, with the number of their `job`."""
        return connection.execute(_OPEN_ATTEMPTS, {"study": self.study}).all()

    def _fits(self, connection: Connection, resources: Iterable[str]) -> bool:
        used = Counter(name for row in self._open_attempts(connection) for name in row.resources)
        capacity = connection.execute(_CAPACITY, {"study": self.study}).all()
        return all(used[name] < room for name, room in capacity if name in resources)

    def _open(
        self,
        connection: Connection,
        job: int,
        number: int,
        resources: Iterable[str],
        owner: str,
        lease: float | None,
    ) -> None:
        now = self.now()
        connection.execute(
            insert(schema.attempts).values(
                job_id=job,
                study_id=self.study,
                number=number,
                owner=owner,
                resources=list(resources),
                started=now,
                heartbeat=now,
                lease_until=None if lease is None else now + lease,
            )
        )

    def _close(
        self, connection: Connection, attempt: int, outcome: str, reason: str | None
    ) -> None:
        ended = _UPDATE_ATTEMPT.values(outcome=outcome, reason=reason, ended=self.now())
        connection.execute(ended, {"attempt": attempt})

    def _fail(
        self,
        connection: Connection,
        job: Row[Any],
        attempt: Row[Any],
        reason: str,
        retry: bool,
        outcome: str,
    ) -> None:
        latest = job.state == "running" and attempt.number == job.attempts
        self._close(connection, attempt.id, outcome, reason)
        now = self.now()
        if not latest:
            self._event(connection, "closed", job.number, attempt.number)
        elif retry and job.attempts < self.policy.attempts:
            pause = self.policy.pause * 2 ** (job.attempts - 1)
            self._update_job(
                connection, job.id, state="waiting", not_before=now + pause, reason=reason
            )
            self._event(connection, "returned", job.number, attempt.number, now + pause)
        else:
            self._update_job(connection, job.id, state="failed", ended=now, reason=reason)
            self._event(connection, "failed", job.number, attempt.number, reason)

    def _insert_job(
        self,
        connection: Connection,
        job: Suggestion,
        state: str,
        attempts: int,
        decision: int | None,
    ) -> int:
        made = connection.execute(
            insert(schema.jobs)
            .returning(schema.jobs.c.id)
            .values(
                study_id=self.study,
                number=job.number,
                task=job.task,
                params=job.params,
                resources=list(job.resources),
                state=state,
                attempts=attempts,
                created=self.now(),
                bits=job.bits,
                predicted_cost=None if decision is None else job.cost,
                worth=job.values,
                decision=decision,
            )
        )
        return int(made.scalar_one())

    def _measurements(
        self,
        sequence: int,
        params: Mapping[str, Any],
        measured: Measured,
        job: int | None,
        attempt: int | None,
        used: bool,
    ) -> list[dict[str, Any]]:
        return [
            {
                "study_id": self.study,
                "sequence": sequence,
                "job_id": job,
                "attempt": attempt,
                "params": dict(params),
                "function": name,
                "value": value,
                "noise": error,
                "used": used,
            }
            for name, (value, error) in measured.items()
        ]

    def _event(
        self,
        connection: Connection,
        kind: str,
        job: int | None = None,
        attempt: int | None = None,
        detail: Any = None,
    ) -> int:
        """Write the next event; its sequence number."""
        sequence = self._sequence(connection, 1)
        connection.execute(
            insert(schema.events),
            {
                "study_id": self.study,
                "sequence": sequence,
                "time": self.now(),
                "kind": kind,
                "job": job,
                "attempt": attempt,
                "detail": detail,
            },
        )
        return sequence

    def _sequence(self, connection: Connection, count: int) -> int:
        """Take the next so many sequence numbers; the last of them."""
        taken = {"study": self.study, "count": count}
        return int(connection.execute(_TAKE_SEQUENCE, taken).scalar_one())


_ATTEMPTS, _JOBS, _STUDIES = schema.attempts.c, schema.jobs.c, schema.studies.c
_THIS_STUDY = _STUDIES.id == bindparam("study")
_STUDY = select(schema.studies).where(_THIS_STUDY)
_REVISION = select(_STUDIES.revision).where(_THIS_STUDY)
_TAKE_SEQUENCE = (
    update(schema.studies)
    .where(_THIS_STUDY)
    .values(sequence=_STUDIES.sequence + bindparam("count"))
    .returning(_STUDIES.sequence)
)
_JOB = select(schema.jobs).where(
    _JOBS.study_id == bindparam("study"), _JOBS.number == bindparam("number")
)
_LAST_NUMBER = select(func.max(_JOBS.number)).where(_JOBS.study_id == bindparam("study"))
_ATTEMPT = select(schema.attempts).where(
    _ATTEMPTS.job_id == bindparam("job"), _ATTEMPTS.number == bindparam("number")
)
_OPEN_ATTEMPTS = (
    select(schema.attempts, _JOBS.number.label("job"))
    .join(schema.jobs, _JOBS.id == _ATTEMPTS.job_id)
    .where(_ATTEMPTS.study_id == bindparam("study"), _ATTEMPTS.outcome.is_(None))
    .order_by(_ATTEMPTS.id)
)
_CAPACITY = select(schema.resources.c.name, schema.resources.c.capacity).where(
    schema.resources.c.study_id == bindparam("study")
)
_UPDATE_JOB = update(schema.jobs).where(_JOBS.id == bindparam("job"))
_UPDATE_ATTEMPT = update(schema.attempts).where(_ATTEMPTS.id == bindparam("attempt"))
