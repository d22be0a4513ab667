"""What people want to see of a study's tables: jobs, attempts, recommendations."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, select

from calamint.decide import Recommendation
from calamint.run.jobs import AttemptRecord, JobRecord
from calamint.run.store import schema
from calamint.run.store.database import Database
from calamint.run.store.retries import retried


@retried
def attempt_records(database: Database, study: int, running: bool) -> list[AttemptRecord]:
    """Attempts, oldest first: those that run, or all."""
    which = [schema.attempts.c.outcome.is_(None)] if running else []
    with database.read() as connection:
        return read_attempts(connection, study, *which)


def read_attempts(
    connection: Connection, study: int, *which: ColumnElement[bool]
) -> list[AttemptRecord]:
    """Attempts, oldest first, of which some conditions hold."""
    attempts, jobs = schema.attempts, schema.jobs
    rows = connection.execute(
        select(attempts, jobs.c.number.label("job"))
        .join(jobs, jobs.c.id == attempts.c.job_id)
        .where(attempts.c.study_id == study, *which)
        .order_by(attempts.c.id)
    ).all()
    return [
        AttemptRecord(
            row.job,
            row.number,
            row.owner,
            tuple(row.resources),
            row.started,
            row.heartbeat,
            row.lease,
            row.ended,
            row.outcome,
        )
        for row in rows
    ]


@retried
def last_recommendation(database: Database, study: int) -> tuple[Recommendation, int] | None:
    """The last answer that was stored, and how many results there have been since."""
    stored, events = schema.recommendations, schema.events
    with database.read() as connection:
        row = connection.execute(
            select(stored).where(stored.c.study_id == study).order_by(stored.c.id.desc()).limit(1)
        ).first()
        if row is None:
            return None
        since = connection.execute(
            select(func.count()).where(
                events.c.study_id == study,
                events.c.sequence > row.sequence,
                events.c.kind.in_(("told", "failed", "added")),
            )
        ).scalar_one()
    return _recommendation(row), int(since)


def _recommendation(row: Row[Any]) -> Recommendation:
    interval = None if row.interval is None else (row.interval[0], row.interval[1])
    return Recommendation(
        row.params,
        row.objective,
        row.probability,
        row.confident,
        interval,
        bool(row.confirmed),
    )


@retried
def standard_errors(database: Database, study: int, number: int) -> dict[str, float]:
    """Those that a job was told with, by function."""
    jobs, measured = schema.jobs.c, schema.measurements.c
    query = (
        select(measured.function, measured.sem)
        .join(schema.jobs, jobs.id == measured.job_id)
        .where(jobs.study_id == study, jobs.number == number, measured.used)
    )
    with database.read() as connection:
        rows = connection.execute(query).all()
    return {function: sem for function, sem in rows if sem is not None}


@retried
def job_records(database: Database, study: int) -> list[JobRecord]:
    """All jobs, oldest first, with what they measured."""
    with database.read() as connection:
        return read_jobs(connection, study)


def read_jobs(connection: Connection, study: int, *which: ColumnElement[bool]) -> list[JobRecord]:
    """Jobs, oldest first, of which some conditions hold, with what they measured."""
    jobs, decisions, measured = schema.jobs, schema.decisions, schema.measurements
    rows = connection.execute(
        select(jobs, decisions.c.update_kind, decisions.c.warnings, decisions.c.stage_seconds)
        .outerjoin(
            decisions,
            and_(
                decisions.c.study_id == jobs.c.study_id,
                decisions.c.number == jobs.c.decision,
            ),
        )
        .where(jobs.c.study_id == study, *which)
        .order_by(jobs.c.number)
    ).all()
    some = [measured.c.job_id.in_([row.id for row in rows])] if which else []
    found = connection.execute(
        select(measured.c.job_id, measured.c.function, measured.c.value).where(
            measured.c.study_id == study, measured.c.used, *some
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
            row.cause,
            row.reason,
            row.bits,
            row.predicted_cost,
            row.update_kind or "enqueued",
            tuple(row.warnings or ()),
            values.get(row.id, {}),
            row.scores,
            row.stage_seconds or {},
        )
        for row in rows
    ]
