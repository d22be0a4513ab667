"""Reading and writing the tables of one study, inside a transaction that the caller holds."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from calamint.decide import ResultError, Suggestion
from calamint.run import schema
from calamint.run.database import Database

Measured = Mapping[str, tuple[float, float | None]]  # by function: value and standard error


@final
@dataclass(frozen=True)
class Policy:
    """What happens to an attempt whose owner is gone, or whose task says `failures="retry"`.

    attempts  how many there are at most
    pause     seconds before the second; doubled before every further one
    """

    attempts: int
    pause: float


class Books:
    """The tables of one study.

    now  the time, in seconds since 1970, or a virtual one
    """

    def __init__(
        self, database: Database, study: int, policy: Policy, now: Callable[[], float]
    ) -> None:
        self.database, self.study, self.policy, self.now = database, study, policy, now

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

    def _renew(self, connection: Connection, attempt: int, lease: float) -> None:
        now = self.now()
        renewed = _UPDATE_ATTEMPT.values(heartbeat=now, lease_until=now + lease)
        connection.execute(renewed, {"attempt": attempt})

    def _close(
        self, connection: Connection, attempt: int, outcome: str, reason: str | None
    ) -> None:
        # One that was lost or cancelled gave its resources back then, whatever it says now.
        ended = func.coalesce(_ATTEMPTS.ended, self.now())
        closed = _UPDATE_ATTEMPT.values(outcome=outcome, reason=reason, ended=ended)
        connection.execute(closed, {"attempt": attempt})

    def _fail(
        self,
        connection: Connection,
        job: Row[Any],
        attempt: Row[Any],
        reason: str,
        retry: bool,
        outcome: str,
    ) -> bool:
        """Whether it mattered: the job was running, by this attempt."""
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
        return latest

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
