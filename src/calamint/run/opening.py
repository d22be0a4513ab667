"""Finding a study in a storage, or making it; refusing to open it as something else."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Row, insert, select

from calamint.problem import Problem, ProblemError
from calamint.problem.spec import to_content
from calamint.run import schema
from calamint.run.database import Database
from calamint.run.errors import StorageError
from calamint.run.ledger import write_problem
from calamint.run.settings import Settings, differences


def check_study_name(name: object) -> str:
    """Refuse what cannot be the name of a study."""
    if not isinstance(name, str) or not 0 < len(name) <= 200 or not name.isprintable():
        raise ProblemError(f"name is {name!r}: write a text of at most 200 printable characters.")
    return name


def names(database: Database) -> list[str]:
    """The studies of a storage, oldest first."""
    with database.read() as connection:
        query = select(schema.studies.c.name).order_by(schema.studies.c.id)
        return list(connection.execute(query).scalars())


def only(database: Database) -> str:
    """The name of the only study of a storage."""
    found = names(database)
    if len(found) == 1:
        return found[0]
    if not found:
        raise StorageError(
            f"storage {database.where} has no study yet: create one, by `calamint init` or"
            " cm.Study(problem, ...)."
        )
    raise StorageError(
        f"storage {database.where} has {len(found)} studies: give the name of one,"
        f" {', '.join(map(repr, found))}."
    )


def find(database: Database, name: str) -> Row[Any] | None:
    with database.read() as connection:
        query = select(schema.studies).where(schema.studies.c.name == name)
        return connection.execute(query).first()


def open_study(
    database: Database,
    name: str,
    problem: Problem,
    wanted: Settings,
    given: Mapping[str, Any],
    now: float,
) -> tuple[Row[Any], Settings]:
    """The study of that name, made if there is none, with the settings that it was made with.

    given  settings that the user wrote: they must be those of the study
    """
    found = find(database, name)
    if found is None:
        found = _create(database, name, problem, wanted, now)
    differ = differences(found.problem, to_content(problem))
    if differ:
        raise ProblemError(
            f"study {name!r} is about another problem: {'; '.join(differ)}. Give another name, or"
            " open it with Study.load and call change(problem)."
        )
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
    if "acquisition" not in given:
        return found, Settings.from_json(stored)
    # It may be one of the user's own, which a storage cannot make.
    settings = Settings.from_json({**stored, "acquisition": {"name": "random"}})
    return found, replace(settings, acquisition=wanted.acquisition)


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
                created=now,
                problem=to_content(problem),
                settings=settings.to_json(),
                sequence=0,
                revision=0,
            )
        )
        found = connection.execute(query).one()
        write_problem(connection, found.id, problem)
        return found
