"""What replaying a study reads: its events, and what they are about."""

from typing import Any

from sqlalchemy import Select, and_, bindparam, select

from calamint.run.store import schema

_STUDIES = schema.studies.c
_THIS_STUDY = _STUDIES.id == bindparam("study")
HEAD = select(_STUDIES.sequence, _STUDIES.revision).where(_THIS_STUDY)
PROBLEM = select(_STUDIES.problem).where(_THIS_STUDY)
STATE = select(_STUDIES.state).where(_THIS_STUDY)


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


EVENTS: Select[Any] = _events()
_MEASURED = schema.measurements.c
MEASUREMENTS: Select[Any] = (
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
