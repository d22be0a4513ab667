"""Copy a study with its history from one storage to another."""

import secrets
from typing import Any

from sqlalchemy import Row, Table, insert, select

from calamint.errors import ProblemError
from calamint.run.store import Database, retried, schema
from calamint.run.studies import find_study

# Tables with a `study_id`; those with a `job_id` after jobs.
_TABLES = (
    *(schema.tasks, schema.resources, schema.jobs, schema.attempts),
    *(schema.measurements, schema.decisions, schema.recommendations, schema.events),
)


@retried
def copy_study(source: Database, target: Database, name: str | None = None) -> str:
    """Copy a study with all of its events, jobs and measurements.

    What runs goes on in the old storage only: tell it there before, or in the copy by hand.

    Args:
        source: Where it is; it is not changed.
        target: Where it is copied to.
        name: The study; the only one of the storage by default.

    Returns:
        The name of the study.

    Raises:
        ProblemError: If the target has a study of that name; nothing is copied.
    """
    study = find_study(source, name)
    with source.read() as connection:
        rows = {
            table.name: connection.execute(
                select(table).where(table.c.study_id == study.id).order_by(*_order(table))
            ).all()
            for table in _TABLES
        }
    with target.write() as connection:
        known = select(schema.studies.c.id).where(schema.studies.c.name == study.name)
        if connection.execute(known).first() is not None:
            raise ProblemError(
                f"the target has a study {study.name!r} already: nothing was copied."
            )
        content = _content(study) | {
            "uid": secrets.token_hex(16),  # results of the one are none of the other
            "decider": None,
            "decider_boot": None,
            "decider_until": None,
        }
        made = connection.execute(insert(schema.studies).values(content))
        assert made.inserted_primary_key is not None
        copy = made.inserted_primary_key[0]
        jobs: dict[int, int] = {}
        for table in _TABLES:
            copied = [
                _content(row) | {"study_id": copy} | _moved(table, row, jobs)
                for row in rows[table.name]
            ]
            if table is schema.jobs:
                for row, content in zip(rows[table.name], copied, strict=True):
                    made = connection.execute(insert(table).values(content))
                    assert made.inserted_primary_key is not None
                    jobs[row.id] = made.inserted_primary_key[0]
            elif copied:
                connection.execute(insert(table), copied)
    return str(study.name)


def _order(table: Table) -> list[Any]:
    """Of rows, as they were written."""
    return [table.c[name] for name in ("id", "sequence") if name in table.c][:1]


def _content(row: Row[Any]) -> dict[str, Any]:
    """Of a row; its id is its storage's."""
    return {key: value for key, value in row._mapping.items() if key != "id"}


def _moved(table: Table, row: Row[Any], jobs: dict[int, int]) -> dict[str, Any]:
    """The job that a row belongs to, by its new id."""
    if "job_id" not in table.c or row.job_id is None:
        return {}
    return {"job_id": jobs[row.job_id]}
