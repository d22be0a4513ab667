"""The studies of a storage: their names, and finding one."""

from typing import Any

from sqlalchemy import Row, select

from calamint.checks import did_you_mean
from calamint.errors import ProblemError, StorageError
from calamint.problem import Problem
from calamint.run.store import Database, retried, schema


def check_study_name(name: object) -> str:
    """Refuse what cannot be the name of a study."""
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name.encode()) <= 200:
        raise ProblemError(f"name is {name!r}: write printable text of at most 200 bytes.")
    return name


@retried
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


def find_study(database: Database, name: str | None) -> Row[Any]:
    """The row of a study that exists, by its name, or of the only one of the storage."""
    name = only(database) if name is None else check_study_name(name)
    found = find(database, name)
    if found is None:
        others = names(database)
        close = did_you_mean(name, others) if others else "it has none."
        raise StorageError(f"storage {database.where} has no study {name!r}: {close}")
    return found


def stored_problem(study: Row[Any], trust: bool) -> Problem:
    """The problem of a study; functions that it names are imported only if they are trusted."""
    try:
        return Problem.from_content(study.problem, trust=trust)
    except ProblemError as error:
        raise ProblemError(
            f"study {study.name!r} cannot be opened by its name alone: {error}"
        ) from error


@retried
def find(database: Database, name: str) -> Row[Any] | None:
    with database.read() as connection:
        query = select(schema.studies).where(schema.studies.c.name == name)
        return connection.execute(query).first()
