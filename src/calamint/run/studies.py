"""The studies of a storage: finding one, making it, refusing to open it as something else; and
what may be changed of its problem."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Row, insert, select

from calamint.checks import nearest, shown
from calamint.decide import Settings
from calamint.errors import ProblemError, StorageError
from calamint.problem import Choice, Parameter, Problem
from calamint.run.store import Database, schema, write_problem


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


def stored_problem(database: Database, name: str) -> Problem:
    """The problem of a study that exists, if its functions can be imported."""
    found = find(database, name)
    if found is None:
        others = names(database)
        close = nearest(name, others) if others else "it has none."
        raise StorageError(f"storage {database.where} has no study {name!r}: {close}")
    try:
        return Problem.from_content(found.problem)
    except ProblemError as error:
        raise ProblemError(
            f"study {name!r} has functions that cannot be imported ({error}):"
            " write cm.Study.load(..., problem=problem)."
        ) from error


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
) -> tuple[Row[Any], Problem, Settings]:
    """The study of that name, made if there is none, with the problem that it solves and the
    settings that it was made with.

    given  settings that the user wrote: they must be those of the study
    """
    found = find(database, name)
    if found is None:
        found = _create(database, name, wanted.applied(problem), wanted, now)
    if found.settings["couple"]:
        problem = replace(wanted, couple=True).applied(problem)
    differ = differences(found.problem, problem.to_content())
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
        return found, problem, Settings.from_json(stored)
    # It may be one of the user's own, which a storage cannot make.
    settings = Settings.from_json({**stored, "acquisition": {"name": "random"}})
    return found, problem, replace(settings, acquisition=wanted.acquisition)


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
                problem=problem.to_content(),
                settings=settings.to_json(),
                sequence=0,
                revision=0,
            )
        )
        found = connection.execute(query).one()
        write_problem(connection, found.id, problem)
        return found


def differences(old: Mapping[str, Any], new: Mapping[str, Any], where: str = "") -> list[str]:
    """What differs between two specs or settings, each in a few words."""
    found = []
    for key in [*old, *(key for key in new if key not in old)]:
        name = f"{where}{key}"
        if key not in new:
            found.append(f"{name} is missing (it is {shown(old[key], 60)})")
        elif key not in old:
            found.append(f"{name} is new ({shown(new[key], 60)})")
        elif isinstance(old[key], Mapping) and isinstance(new[key], Mapping):
            found += differences(old[key], new[key], f"{name}.")
        elif json.dumps(old[key]) != json.dumps(new[key]):  # 1 is not True
            found.append(f"{name} is {shown(new[key], 60)}, and was {shown(old[key], 60)}")
    # The order of parameters and of tasks decides, too.
    if not found and list(old) != list(new):
        found.append(f"{where or 'the spec '}has another order: {', '.join(map(str, old))}")
    return found


def allowed_changes(old: Problem, new: Problem) -> list[str]:
    """The differences, if they only add: tasks, resources, capacity, other costs, wider bounds."""
    changed = differences(old.to_content(), new.to_content())
    refused = [
        f"{what}: start another study"
        for what, same in (
            ("the objective is another", old.objective == new.objective),
            ("constraints differ", old.constraints == new.constraints),
            ("known functions differ", list(old.known) == list(new.known)),
            (
                "parameters differ",
                list(old.space.parameters) == list(new.space.parameters),
            ),
        )
        if not same
    ]
    for name, before in old.tasks.items():
        after = new.tasks.get(name)
        if after is None or after.measures != before.measures:
            refused.append(f"task {name!r} is gone or measures something else")
    refused += [
        f"resource {name!r} is gone: jobs may be running on it"
        for name in old.resources
        if name not in new.resources
    ]
    refused += [
        f"parameter {name!r} does not allow all that it did"
        for name, parameter in old.space.parameters.items()
        if name in new.space.parameters and not _wider(parameter, new.space.parameters[name])
    ]
    if refused:
        raise ProblemError(
            f"the problem cannot be changed so: {'; '.join(refused)}. Tasks, resources, capacity"
            " and costs may be added or changed, and bounds widened."
        )
    return changed


def _wider(old: Parameter, new: Parameter) -> bool:
    """Whether all that was allowed still is, and spaced in the same way."""
    if isinstance(old, Choice) or isinstance(new, Choice):
        both = isinstance(old, Choice) and isinstance(new, Choice)
        return both and json.dumps(new.options[: len(old.options)]) == json.dumps(old.options)  # type: ignore[union-attr]
    same = type(old) is type(new) and old.log == new.log
    return same and new.low <= old.low and new.high >= old.high
