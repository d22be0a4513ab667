"""What replaying a study reads: its events, and what they are about."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, bindparam, select

from calamint.run.store import schema
from calamint.run.store.database import Database
from calamint.run.store.retries import retried

# Kinds of events that no measurement belongs to.
_WITHOUT_MEASUREMENTS = {
    *("asked", "started", "enqueued", "failed", "returned", "held", "released", "cancelled"),
    *("paused", "resumed"),
}
# Events, measurements, and the state that is stored if a decision may have left it.
News = tuple[Sequence[Row[Any]], Sequence[Row[Any]], Mapping[str, Any] | None]


@retried
def read_news(
    database: Database,
    study: int,
    revision: int,
    sequence: int,
    within: Connection | None = None,
) -> tuple[int, News | None]:
    """The problem's revision; and what is new after `sequence`, if it is under that revision.

    within  a transaction that is open, if there is one
    """
    with database.read() if within is None else nullcontext(within) as connection:
        head = connection.execute(_HEAD, {"study": study}).one()
        if head.revision != revision or head.sequence == sequence:
            return int(head.revision), None
        since = {"study": study, "after": sequence, "until": head.sequence}
        events = connection.execute(_EVENTS, since).all()
        measured: Sequence[Row[Any]] = []
        if any(row.kind not in _WITHOUT_MEASUREMENTS for row in events):
            measured = connection.execute(_MEASUREMENTS, since).all()
        state = None
        if any(row.update_kind in ("full", "partial") for row in events):
            state = connection.execute(_STATE, {"study": study}).scalar_one()
        return int(head.revision), (events, measured, state)


@retried
def read_problem(database: Database, study: int, within: Connection | None = None) -> Any:
    """The problem as it is now."""
    with database.read() if within is None else nullcontext(within) as connection:
        return connection.execute(_PROBLEM, {"study": study}).scalar_one()


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
        .where(
            events.c.study_id == bindparam("study"),
            events.c.sequence > bindparam("after"),
            # A server that has no statistics yet then expects few rows, and uses its indexes.
            events.c.sequence <= bindparam("until"),
        )
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
        _MEASURED.sequence <= bindparam("until"),
        _MEASURED.used,
    )
    .order_by(_MEASURED.id)
)
