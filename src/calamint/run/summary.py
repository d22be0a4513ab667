"""How far a study has come, read from its tables: nothing is replayed, and no model is fitted."""

from collections import Counter
from dataclasses import dataclass
from typing import final

from sqlalchemy import func, select

from calamint.decide import Recommendation
from calamint.run.store import Database, last_recommendation, paused, retried, schema
from calamint.run.studies import find_study


@final
@dataclass(frozen=True)
class Summary:
    """How far a study has come.

    Attributes:
        name: The name of the study.
        evaluations: The number of finished jobs by task, failed ones included.
        states: The number of jobs by state.
        paused: Tasks and resources that are paused.
        decision_seconds: How long all decisions took.
        warnings: For every decision that something went wrong with, its job and what was last.
        recommendation: The last answer of `recommend`, if there was one.
        results_since: The number of results that it did not know of.
    """

    name: str
    evaluations: dict[str, int]
    states: dict[str, int]
    paused: list[str]
    decision_seconds: float
    warnings: list[tuple[int, str]]
    recommendation: Recommendation | None
    results_since: int | None


@retried
def summarise(database: Database, name: str | None) -> Summary:
    """Summarise a study, by its name, or the only one of the storage."""
    study = find_study(database, name)
    jobs, decisions = schema.jobs.c, schema.decisions.c
    with database.read() as connection:
        counted = connection.execute(
            select(jobs.task, jobs.state, func.count())
            .where(jobs.study_id == study.id)
            .group_by(jobs.task, jobs.state)
        ).all()
        made = connection.execute(
            select(decisions.number, decisions.stage_seconds, decisions.warnings)
            .where(decisions.study_id == study.id)
            .order_by(decisions.number)
        ).all()
    states, ended = Counter[str](), dict.fromkeys(study.problem["tasks"], 0)
    for task, state, count in counted:
        states[state] += count
        if state in ("done", "failed", "partial"):
            ended[task] = ended.get(task, 0) + count
    last = last_recommendation(database, study.id)
    return Summary(
        study.name,
        ended,
        {
            state: states[state]
            for state in (
                *("waiting", "running", "held", "partial"),
                *("failed", "cancelled", "withdrawn"),
            )
        },
        [name for _, name in sorted(paused(database, study.id))],
        sum(float(row.stage_seconds["total"]) for row in made),
        [(row.number, row.warnings[-1]) for row in made if row.warnings],
        None if last is None else last[0],
        None if last is None else last[1],
    )
