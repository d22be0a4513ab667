"""Creating a study, or opening the one that exists; refusing to open it as something else."""

import secrets
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from sqlalchemy import Row, insert, select

from calamint.decide import Settings
from calamint.errors import ProblemError
from calamint.problem import Problem
from calamint.run.changes import differences, former_options, with_former_options
from calamint.run.store import Database, retried, schema, write_problem
from calamint.run.studies import find


def settings_among(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `Settings` that have a value."""
    names = [each.name for each in fields(Settings)]
    return {name: given[name] for name in names if given[name] is not None}


def open_study(
    database: Database,
    name: str,
    problem: Problem,
    wanted: Settings,
    given: Mapping[str, Any],
    now: float,
) -> tuple[Row[Any], Problem, Settings]:
    """The study of that name, made if there is none, with the problem that it solves and the
    settings that it was made with.

    Args:
        given: Settings that the user wrote: they must be those of the study.
    """
    found = find(database, name)
    if found is not None and "couple" not in given:
        wanted = replace(wanted, couple=found.settings["couple"])
    problem = wanted.applied(problem)
    wanted.check(problem)  # what is wrong is refused before anything is stored
    if found is None:
        found = _create(database, name, problem, wanted, now)
    stored, written = dict(found.settings), wanted.to_json()
    differ = differences(
        {key: stored[key] for key in written if key in given},
        {key: written[key] for key in written if key in given},
    )
    if differ:
        raise ProblemError(
            f"study {name!r} was created otherwise: {'; '.join(differ)}. Leave it out, or give"
            " another name."
        )
    problem = with_former_options(problem, former_options(found.problem))
    differ = differences(found.problem, problem.to_content())
    if differ:
        raise ProblemError(
            f"study {name!r} is about another problem: {'; '.join(differ)}. Give another name, or"
            " open it with Study.load and call change(problem)."
        )
    stored["threads"] = wanted.threads  # it is of this process, and not of the study
    if "acquisition" not in given:
        return found, problem, Settings.from_json(stored)
    # It may be one of the user's own, which a storage cannot make.
    settings = Settings.from_json({**stored, "acquisition": {"name": "random"}})
    return found, problem, replace(settings, acquisition=wanted.acquisition)


@retried
def _create(
    database: Database, name: str, problem: Problem, settings: Settings, now: float
) -> Row[Any]:
    with database.write() as connection:
        query = select(schema.studies).where(schema.studies.c.name == name)
        found = connection.execute(query).first()
        if found is not None:  # another process was faster
            return found
        connection.execute(
            insert(schema.studies).values(
                name=name,
                uid=secrets.token_hex(16),
                created=now,
                problem=problem.to_content(),
                settings=settings.to_json(),
                sequence=0,
                revision=0,
            )
        )
        found = connection.execute(query).one()
        write_problem(connection, found.id, problem)
        return found
