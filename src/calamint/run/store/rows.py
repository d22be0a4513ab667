"""Reading and writing the rows of one study, inside a transaction that the caller holds."""

import getpass
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, final

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from calamint.decide import Suggestion
from calamint.errors import JobStateError, RepeatedRequestError, UnknownJobError
from calamint.run.jobs import Cause
from calamint.run.store import schema
from calamint.run.store.caller import Caller
from calamint.run.store.liveness import LeaseClock

Measured = Mapping[str, tuple[float, float | None]]  # by function: value and standard error


@final
class Rows:
    """The rows of one study; every method works inside a transaction that the caller holds.

    now     the time, in seconds since 1970, or a virtual one
    clock   what leases are timed by
    caller  who wants a change, if that is not the user of this process
    """

    def __init__(
        self,
        study: int,
        now: Callable[[], float],
        clock: LeaseClock,
        caller: Caller | None = None,
    ) -> None:
        self.study_id, self.now, self.clock, self.caller = study, now, clock, caller

    def study(self, connection: Connection) -> Row[Any]:
        return connection.execute(_STUDY, {"study": self.study_id}).one()

    def revision(self, connection: Connection) -> int:
        return int(connection.execute(_REVISION, {"study": self.study_id}).scalar_one())

    def update_study(self, connection: Connection, **values: Any) -> None:
        connection.execute(
            update(schema.studies).where(schema.studies.c.id == self.study_id).values(**values)
        )

    def job(self, connection: Connection, number: int) -> Row[Any]:
        found = connection.execute(_JOB, {"study": self.study_id, "number": number}).first()
        if found is None:
            raise UnknownJobError(f"job {number!r} was not asked for here: nothing was changed.")
        return found

    def update_job(self, connection: Connection, job: int, **values: Any) -> None:
        connection.execute(_UPDATE_JOB.values(**values), {"job": job})

    def next_number(self, connection: Connection) -> int:
        last = connection.execute(_LAST_NUMBER, {"study": self.study_id}).scalar()
        return 0 if last is None else last + 1

    def attempt(
        self, connection: Connection, number: int, attempt: int | None, doing: str
    ) -> tuple[Row[Any], Row[Any]]:
        """A job and its attempt (or the latest), which has not spoken yet."""
        job = self.job(connection, number)
        which = job.attempts if attempt is None else attempt
        row = connection.execute(_ATTEMPT, {"job": job.id, "number": which}).first()
        if row is None:
            raise JobStateError(
                f"job {number} cannot be {doing}: it is {job.state}, and no such attempt was"
                " started; nothing was changed."
            )
        if row.outcome in ("done", "failed", "late"):
            word = "failed" if row.outcome == "failed" else "told"
            raise JobStateError(f"job {number} was already {word}: nothing was changed.")
        return job, row

    def latest_attempt(self, connection: Connection, job: Row[Any]) -> Row[Any]:
        return connection.execute(_ATTEMPT, {"job": job.id, "number": job.attempts}).one()

    def open_attempts(self, connection: Connection) -> Sequence[Row[Any]]:
        """Attempts that have their resources, with the number of their `job`."""
        return connection.execute(_OPEN_ATTEMPTS, {"study": self.study_id}).all()

    def fits(self, connection: Connection, resources: Iterable[str]) -> bool:
        used = Counter(name for row in self.open_attempts(connection) for name in row.resources)
        capacity = connection.execute(_CAPACITY, {"study": self.study_id}).all()
        return all(used[name] < room for name, room in capacity if name in resources)

    def open(
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
                study_id=self.study_id,
                number=number,
                owner=owner,
                resources=list(resources),
                started=now,
                heartbeat=now,
                lease=lease,
                lease_until=None if lease is None else self.clock.now() + lease,
                boot=self.clock.boot,
            )
        )

    def renew(
        self, connection: Connection, attempt: int, lease: float, owner: str | None = None
    ) -> None:
        """owner: who has it from now on, if that is another one"""
        renewed = _UPDATE_ATTEMPT.values(
            heartbeat=self.now(),
            lease=lease,
            lease_until=self.clock.now() + lease,
            boot=self.clock.boot,
            renewals=_ATTEMPTS.renewals + 1,
            **({} if owner is None else {"owner": owner}),
        )
        connection.execute(renewed, {"attempt": attempt})

    def close(
        self,
        connection: Connection,
        attempt: int,
        outcome: str,
        reason: str | None,
        cause: Cause | None = None,
    ) -> None:
        # One that was lost or cancelled gave its resources back then, whatever it says now.
        ended = func.coalesce(_ATTEMPTS.ended, self.now())
        closed = _UPDATE_ATTEMPT.values(outcome=outcome, reason=reason, cause=cause, ended=ended)
        connection.execute(closed, {"attempt": attempt})

    def causes(self, connection: Connection, job: Row[Any]) -> list[Cause | None]:
        """Why the attempts at a job ended, in order, since it was last released."""
        given = {"study": self.study_id, "number": job.number}
        before = connection.execute(_RELEASED, given).scalar() or 0
        return list(connection.execute(_CAUSES, {"job": job.id, "before": before}).scalars())

    def insert_job(
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
                study_id=self.study_id,
                number=job.number,
                task=job.task,
                params=job.params,
                resources=list(job.resources),
                state=state,
                attempts=attempts,
                created=self.now(),
                bits=job.bits,
                predicted_cost=None if decision is None else job.cost,
                scores=job.scores,
                decision=decision,
            )
        )
        return int(made.scalar_one())

    def measurements(
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
                "study_id": self.study_id,
                "sequence": sequence,
                "job_id": job,
                "attempt": attempt,
                "params": dict(params),
                "function": name,
                "value": value,
                "sem": error,
                "used": used,
            }
            for name, (value, error) in measured.items()
        ]

    def event(
        self,
        connection: Connection,
        kind: str,
        job: int | None = None,
        attempt: int | None = None,
        detail: Any = None,
    ) -> int:
        """Write the next event; its sequence number."""
        sequence = self.sequence(connection, 1)
        connection.execute(
            insert(schema.events),
            {
                "study_id": self.study_id,
                "sequence": sequence,
                "time": self.now(),
                "kind": kind,
                "job": job,
                "attempt": attempt,
                "detail": detail,
                **self.cause(connection),
            },
        )
        return sequence

    def cause(self, connection: Connection) -> dict[str, str | None]:
        """Who causes the next event, by which request; the others of a transaction have none.

        Raises:
            RepeatedRequestError: If that request has caused an event already.
        """
        caller = self.caller
        if caller is None or caller.key is None:
            return {"caller": caller and caller.name, "request": None, "digest": None}
        given = {"study": self.study_id, "request": caller.key}
        if connection.execute(_REQUESTED, given).first() is not None:
            raise RepeatedRequestError(f"request {caller.key!r} was made before.")
        return {"caller": caller.name, "request": caller.key, "digest": caller.digest}

    @property
    def by(self) -> str:
        """Who makes a change."""
        return user() if self.caller is None else self.caller.name

    def sequence(self, connection: Connection, count: int) -> int:
        """Take the next `count` sequence numbers; the last of them."""
        taken = {"study": self.study_id, "count": count}
        return int(connection.execute(_TAKE_SEQUENCE, taken).scalar_one())


def user() -> str:
    """Who runs this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container need not have names of users
        return ""


def words(reason: str) -> str:
    """A reason that any database can keep: no broken characters, and not a book."""
    text = reason.encode("utf-8", "replace").decode()
    # Nor anything that a terminal would obey.
    text = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
    return text if len(text) <= 1000 else f"{text[:1000]}..."


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
_CAUSES = (
    select(_ATTEMPTS.cause)
    .where(_ATTEMPTS.job_id == bindparam("job"), _ATTEMPTS.number > bindparam("before"))
    .order_by(_ATTEMPTS.number)
)
_RELEASED = select(func.max(schema.events.c.attempt)).where(
    schema.events.c.study_id == bindparam("study"),
    schema.events.c.job == bindparam("number"),
    schema.events.c.kind == "released",
)
_REQUESTED = select(schema.events.c.sequence).where(
    schema.events.c.study_id == bindparam("study"), schema.events.c.request == bindparam("request")
)
_OPEN_ATTEMPTS = (
    select(schema.attempts, _JOBS.number.label("job"), _JOBS.state.label("job_state"))
    .join(schema.jobs, _JOBS.id == _ATTEMPTS.job_id)
    .where(_ATTEMPTS.study_id == bindparam("study"), _ATTEMPTS.outcome.is_(None))
    .order_by(_ATTEMPTS.id)
)
_CAPACITY = select(schema.resources.c.name, schema.resources.c.capacity).where(
    schema.resources.c.study_id == bindparam("study")
)
_UPDATE_JOB = update(schema.jobs).where(_JOBS.id == bindparam("job"))
_UPDATE_ATTEMPT = update(schema.attempts).where(_ATTEMPTS.id == bindparam("attempt"))
