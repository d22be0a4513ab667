"""A page at a time of what a study has: jobs and events, filtered and sorted by the database, so
that it does not matter how many there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from sqlalchemy import Row, Select, func, select

from calamint.checks import did_you_mean
from calamint.errors import ProblemError, UnknownJobError
from calamint.run.jobs import AttemptRecord, JobRecord
from calamint.run.store import schema
from calamint.run.store.database import Database
from calamint.run.store.records import read_attempts, read_jobs
from calamint.run.store.retries import retried

_JOBS, _EVENTS = schema.jobs.c, schema.events.c
# Besides these, the values of each function.
JOB_ORDERS = ("number", "task", "state", "created", "ended", "seconds", "predicted_cost")


@final
@dataclass(frozen=True)
class JobsQuery:
    """Which jobs, in which order.

    Attributes:
        states: Only jobs in one of these; all if there are none.
        task: Only jobs of this task.
        chosen: Only jobs that were decided, and not enqueued.
        order: One of `JOB_ORDERS`, or the name of a function, for its values.
        descending: The largest first; what has no value is last either way.
        offset: How many to pass over.
        limit: How many at most.
    """

    states: tuple[str, ...] = ()
    task: str | None = None
    chosen: bool = False
    order: str = "number"
    descending: bool = False
    offset: int = 0
    limit: int = 100


@final
@dataclass(frozen=True)
class EventRecord:
    """Something that happened; `caller` is who caused it through a server, if it was caused so."""

    sequence: int
    time: float
    kind: str
    job: int | None
    attempt: int | None
    detail: Any
    caller: str | None


@final
@dataclass(frozen=True)
class StudyRecord:
    """A study as it is stored.

    Attributes:
        id: Its number in the storage.
        uid: What no other study has.
        problem: The spec of its problem.
        sequence: The number of its events.
    """

    id: int
    name: str
    uid: str
    created: float
    problem: dict[str, Any]
    settings: dict[str, Any]
    sequence: int
    revision: int


# A value with its standard error.
_Value = tuple[float, float | None]
ToldValues = dict[int, dict[str, tuple[_Value | None, _Value]]]


@retried
def job_page(
    database: Database, study: int, functions: Sequence[str], query: JobsQuery
) -> tuple[int, list[JobRecord]]:
    """How many jobs there are, and a page of them."""
    which = [_JOBS.study_id == study]
    if query.states:
        which.append(_JOBS.state.in_(query.states))
    if query.task is not None:
        which.append(_JOBS.task == query.task)
    if query.chosen:
        which.append(_JOBS.decision.is_not(None))
    numbers = select(_JOBS.id).where(*which)
    ordered = _ordered(numbers, functions, query).offset(query.offset).limit(query.limit)
    with database.read() as connection:
        count = connection.execute(select(func.count()).where(*which)).scalar_one()
        ids = list(connection.execute(ordered).scalars())
        found = {job.number: job for job in read_jobs(connection, study, _JOBS.id.in_(ids))}
        rows = connection.execute(select(_JOBS.id, _JOBS.number).where(_JOBS.id.in_(ids))).all()
    number_of = {row.id: row.number for row in rows}
    return int(count), [found[number_of[each]] for each in ids]


def _ordered(numbers: Select[Any], functions: Sequence[str], query: JobsQuery) -> Select[Any]:
    if query.order in JOB_ORDERS:
        column: Any = _JOBS[query.order]
    elif query.order in functions:
        measured = schema.measurements.c
        # One value for each job: that which counts.
        values = (
            select(measured.job_id, func.max(measured.value).label("value"))
            .where(measured.function == query.order, measured.used, measured.job_id.is_not(None))
            .group_by(measured.job_id)
            .subquery()
        )
        numbers = numbers.outerjoin(values, values.c.job_id == _JOBS.id)
        column = values.c.value
    else:
        known = (*JOB_ORDERS, *functions)
        raise ProblemError(f"order is {query.order!r}: {did_you_mean(query.order, known)}")
    by = column.desc() if query.descending else column.asc()
    return numbers.order_by(by.nulls_last(), _JOBS.number)


@retried
def job_details(
    database: Database, study: int, number: int
) -> tuple[JobRecord, list[AttemptRecord], list[EventRecord]]:
    """A job, its attempts, and what happened to it."""
    with database.read() as connection:
        found = read_jobs(connection, study, _JOBS.number == number)
        if not found:
            raise UnknownJobError(f"job {number} does not belong to this study.")
        attempts = read_attempts(connection, study, _JOBS.number == number)
        events = connection.execute(
            select(schema.events)
            .where(_EVENTS.study_id == study, _EVENTS.job == number)
            .order_by(_EVENTS.sequence)
        ).all()
    return found[0], attempts, [_event(row) for row in events]


@retried
def running_attempts(database: Database, study: int) -> list[tuple[AttemptRecord, str]]:
    """Attempts that have their resources, each with the task of its job, oldest first."""
    with database.read() as connection:
        attempts = read_attempts(connection, study, schema.attempts.c.outcome.is_(None))
        numbers = {each.job for each in attempts}
        rows = connection.execute(
            select(_JOBS.number, _JOBS.task).where(
                _JOBS.study_id == study, _JOBS.number.in_(numbers)
            )
        ).all()
    tasks = {row.number: row.task for row in rows}
    return [(each, tasks[each.job]) for each in attempts]


@retried
def job_counts(database: Database, study: int) -> dict[tuple[str, str], int]:
    """How many jobs there are, by task and state."""
    query = (
        select(_JOBS.task, _JOBS.state, func.count())
        .where(_JOBS.study_id == study)
        .group_by(_JOBS.task, _JOBS.state)
    )
    with database.read() as connection:
        return {(task, state): count for task, state, count in connection.execute(query)}


@retried
def event_page(
    database: Database,
    study: int,
    after: int = 0,
    limit: int = 100,
    kinds: Sequence[str] = (),
    newest_first: bool = False,
    offset: int = 0,
) -> list[EventRecord]:
    """Events after a sequence number, in order."""
    which = [_EVENTS.study_id == study, _EVENTS.sequence > after]
    if kinds:
        which.append(_EVENTS.kind.in_(kinds))
    order = _EVENTS.sequence.desc() if newest_first else _EVENTS.sequence
    query = select(schema.events).where(*which).order_by(order).offset(offset).limit(limit)
    with database.read() as connection:
        return [_event(row) for row in connection.execute(query)]


@retried
def count_events(database: Database, study: int, kinds: Sequence[str]) -> int:
    query = select(func.count()).where(_EVENTS.study_id == study, _EVENTS.kind.in_(kinds))
    with database.read() as connection:
        return int(connection.execute(query).scalar_one())


@retried
def told_values(database: Database, study: int, events: Sequence[EventRecord]) -> ToldValues:
    """By event and function, the value that counted before, if there was one, and the new one."""
    numbers = {each.job for each in events if each.kind in ("told", "amended", "completed")}
    measured = schema.measurements.c
    told = (
        select(_JOBS.number, measured.sequence, measured.function, measured.value, measured.sem)
        .join(schema.jobs, _JOBS.id == measured.job_id)
        .where(_JOBS.study_id == study, _JOBS.number.in_(numbers))
        .order_by(measured.sequence)
    )
    back = select(_EVENTS.job, _EVENTS.sequence).where(
        _EVENTS.study_id == study, _EVENTS.kind == "restored", _EVENTS.job.in_(numbers)
    )
    with database.read() as connection:
        rows = connection.execute(told).all()
        restored = [(row.job, row.sequence) for row in connection.execute(back)]
    first = {row.number: row.sequence for row in reversed(rows)}
    known: dict[tuple[int, str], list[Any]] = {}
    found: ToldValues = {}
    for row in rows:
        earlier = known.setdefault((row.number, row.function), [])
        before = earlier[-1] if earlier else None
        if before is not None and any(
            job == row.number and before.sequence < sequence < row.sequence
            for job, sequence in restored
        ):
            before = earlier[0] if earlier[0].sequence == first[row.number] else None
        was = None if before is None else (before.value, before.sem)
        found.setdefault(row.sequence, {})[row.function] = (was, (row.value, row.sem))
        earlier.append(row)
    return found


@retried
def study_records(database: Database) -> list[StudyRecord]:
    """All studies, oldest first."""
    with database.read() as connection:
        rows = connection.execute(select(schema.studies).order_by(schema.studies.c.id)).all()
    return [_study(row) for row in rows]


@retried
def study_record(database: Database, number: int) -> StudyRecord | None:
    """A study by its number in the storage."""
    query = select(schema.studies).where(schema.studies.c.id == number)
    with database.read() as connection:
        row = connection.execute(query).first()
    return None if row is None else _study(row)


@retried
def study_sequence(database: Database, number: int) -> int | None:
    """How many events a study has; None if there is no such study."""
    query = select(schema.studies.c.sequence).where(schema.studies.c.id == number)
    with database.read() as connection:
        return connection.execute(query).scalar()


def _study(row: Row[Any]) -> StudyRecord:
    return StudyRecord(
        row.id,
        row.name,
        row.uid,
        row.created,
        row.problem,
        row.settings,
        row.sequence,
        row.revision,
    )


def _event(row: Row[Any]) -> EventRecord:
    return EventRecord(
        row.sequence, row.time, row.kind, row.job, row.attempt, row.detail, row.caller
    )
