"""Changing the problem of a study, and what differs between two problems or settings.

Everything that was measured is replayed under the new problem: measurements out of the new bounds,
or with options that were dropped, keep teaching, and values of functions that were dropped wait in
the storage for a change back.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calamint.checks import did_you_mean, shown
from calamint.errors import ProblemError, StorageError
from calamint.problem import Choice, Params, Problem, Space
from calamint.run.replay import Replica
from calamint.run.store import Pausable, ProblemChange, Store


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


def with_former_options(problem: Problem, former: Mapping[str, Iterable[Any]]) -> Problem:
    """The problem in which these options, by parameter, are known as former ones."""
    parameters = dict(problem.space.parameters)
    for name, options in former.items():
        parameter = parameters.get(name)
        if isinstance(parameter, Choice):
            known = [*parameter.options, *parameter.former]
            more = [each for each in options if not _is_among(each, known)]
            parameters[name] = Choice(*parameter.options, former=[*parameter.former, *more])
    space = Space(parameters)
    return problem if space == problem.space else problem.changed(space=space)


def former_options(content: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The former options that a stored spec has, by parameter."""
    space = content["space"].items()
    return {name: entry["former"] for name, entry in space if "former" in entry}


def _is_among(option: Any, options: Iterable[Any]) -> bool:
    return json.dumps(option) in map(json.dumps, options)


def _dropped_options(replica: Replica, problem: Problem) -> dict[str, list[Any]]:
    """Options that were measured, or will be, and that the new problem does not have."""
    used: list[Params] = [job.params for job in replica.jobs.values()]
    used += [record.params for record in replica.optimizer.history]
    dropped = {}
    for name, before in replica.problem.space.parameters.items():
        after = problem.space.parameters.get(name)
        if isinstance(before, Choice) and isinstance(after, Choice):
            values = [params[name] for params in used]
            allowed = [*before.options, *before.former]
            gone = [each for each in allowed if not _is_among(each, after.options)]
            dropped[name] = [each for each in gone if _is_among(each, values)]
    return dropped


def _check(replica: Replica, new: Problem) -> None:
    """Raise `ProblemError` if what was measured would have no meaning under the new problem."""
    old = replica.problem
    refused = []
    if old.objective != new.objective:
        refused.append("the objective is another")
    before, after = old.space.parameters, new.space.parameters
    if set(before) != set(after):
        refused.append("parameters were added or left out")
    refused += [
        f"parameter {name!r} is of another kind"
        for name in before.keys() & after.keys()
        if type(before[name]) is not type(after[name])
    ]
    kinds = {**replica.earlier, **{name: name in old.binary for name in old.measured}}
    for name in sorted(kinds.keys() & set(new.measured)):
        if kinds[name] != (name in new.binary):
            was = "as pass or fail" if kinds[name] else "as a number"
            refused.append(f"{name!r} was measured {was}")
    for name in set(old.functions) & set(new.functions):
        if (name in old.known) != (name in new.known):
            refused.append(f"{name!r} is known in one, and measured in one")
    if refused:
        raise ProblemError(
            f"the problem cannot be changed so: {'; '.join(refused)}. Bounds, options, limits,"
            " tasks and resources can be changed; for anything else start another study."
        )
    awaited = replica.optimizer.observations.awaited
    waiting = {*replica.running, *replica.held, *replica.waiting, *awaited}
    jobs = [n for n in sorted(waiting) if replica.jobs[n].task not in new.tasks]
    jobs += [
        number
        for (number, _), resources in replica.open.items()
        if any(name not in new.resources for name in resources)
    ]
    if jobs:
        raise ProblemError(
            f"the problem cannot be changed so while job {' and job '.join(map(str, jobs))} runs or"
            " waits, whose task or resource is left out: cancel it first, or pause the task."
        )


def changes_of(replica: Replica, problem: Problem) -> tuple[Problem, list[str]]:
    """The problem as it would be stored, and what would change; nothing is changed."""
    former = {**former_options(replica.problem.to_content()), **_dropped_options(replica, problem)}
    problem = with_former_options(problem, former)
    changed = differences(replica.problem.to_content(), problem.to_content())
    if changed:
        _check(replica, problem)
        # The history must replay under the new problem.
        replica.under(problem).sync()
    return problem, changed


def change_problem(store: Store, replica: Replica, problem: Problem, reason: str) -> list[str]:
    """Change the problem of a study; what changed, which is also recorded."""
    before = replica.revision
    while replica.revision == before:
        stored, changed = changes_of(replica, problem)
        if not changed:
            return []
        # What happened since it was checked, such as a job that was booked, is checked again.
        revision = store.changes.change(stored, before, replica.sequence, changed, reason)
        if revision is not None:
            replica.restart(stored, revision)
            return changed
        replica.sync()
    raise StorageError(f"study {replica.name!r} was changed meanwhile: open it again, and compare.")


def problem_before(problem: Problem, changes: Sequence[ProblemChange], trust: bool) -> Problem:
    """The problem before the last change, which made it what it is now."""
    if not changes:
        raise ProblemError("the problem was never changed: there is nothing to take back.")
    return Problem.from_content(changes[-1].before, like=problem, trust=trust)


def check_pausable(
    problem: Problem, task: str | None, resource: str | None
) -> tuple[Pausable, str]:
    """The one of a task and a resource that is given, if the problem has it."""
    if (task is None) == (resource is None):
        raise ProblemError("write a task or a resource, such as task='train'.")
    kind: Pausable = "resource" if task is None else "task"
    name = resource if task is None else task
    known = problem.resources if task is None else problem.tasks
    if not isinstance(name, str) or name not in known:
        raise ProblemError(f"{kind} is {name!r}: {did_you_mean(str(name), known)}")
    return kind, name
