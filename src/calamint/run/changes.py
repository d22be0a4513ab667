"""What differs between two problems or settings, and what may be changed of a problem."""

import json
from collections.abc import Mapping
from typing import Any

from calamint.checks import shown
from calamint.errors import ProblemError, StorageError
from calamint.problem import Choice, Parameter, Problem
from calamint.run.replay import Replica
from calamint.run.store import Store


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


def change_problem(store: Store, replica: Replica, problem: Problem) -> list[str]:
    """Extend the problem of a study; what changed, which is also recorded."""
    changed = allowed_changes(replica.problem, problem)
    if not changed:
        return []
    # The history must replay under the new problem before anything is changed.
    replica.under(problem).sync()
    revision = store.change(problem, replica.revision, changed)
    if revision is None:
        raise StorageError(
            f"study {replica.name!r} was changed meanwhile: open it again, and compare."
        )
    replica.restart(problem, revision)
    return changed
