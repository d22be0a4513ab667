"""Which tasks can start now, and on what: no resource ever runs more jobs than its capacity."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from calamint.checks import did_you_mean
from calamint.errors import ProblemError
from calamint.problem import TaskGraph


def free_capacity(graph: TaskGraph, booked: Iterable[tuple[str, ...]]) -> dict[str, int]:
    """How many more jobs each resource can take, given the resources of the jobs that run."""
    used = Counter(resource for resources in booked for resource in resources)
    return {resource: capacity - used[resource] for resource, capacity in graph.resources.items()}


# Whether a job on some resources could be started now, besides that they are free.
CanStart = Callable[[tuple[str, ...]], bool]


def anywhere(resources: tuple[str, ...]) -> bool:  # noqa: ARG001
    """What is free can be used."""
    return True


def available_resources(
    graph: TaskGraph,
    task: str,
    free: Mapping[str, int],
    including: str | None = None,
    can_start: CanStart = anywhere,
) -> tuple[str, ...] | None:
    """The first alternative of a task whose resources are all free, or None.

    With `including`, only alternatives that contain this resource.
    """
    for resources in graph.tasks[task].runs_on or ():
        is_free = all(free.get(resource, 0) > 0 for resource in resources)
        if is_free and including in (None, *resources) and can_start(resources):
            return resources
    return None


def competing_tasks(
    graph: TaskGraph,
    free: Mapping[str, int],
    times_blocked: Mapping[str, int],
    resource: str | None = None,
    task: str | None = None,
    paused: Collection[str] = (),
    can_start: CanStart = anywhere,
) -> dict[str, tuple[str, ...]]:
    """The tasks that compete for the first resource that some task can use, with their resources.

    times_blocked   how often in a row each task could not start for want of a resource
    resource, task  only this one is asked about
    paused          tasks that must not start, and wait for nothing
    """
    for name, given, known in (
        ("resource", resource, graph.resources),
        ("task", task, graph.tasks),
    ):
        if given is not None and (not isinstance(given, str) or given not in known):
            raise ProblemError(f"{name} is {given!r}: {did_you_mean(str(given), known)}")
    # A task that needs several resources could starve while others take them in turn: once every
    # place could have been taken twice, they are reserved for it. Naming a task bypasses this.
    max_blocked = 2 * sum(graph.resources.values()) + 2
    waiting = [name for name in graph.tasks if times_blocked.get(name, 0) > max_blocked]
    waiting = [name for name in waiting if name not in paused] if task is None else []
    reserved = {r for name in waiting for r in graph.usable_resources(name)}
    tasks = [name for name in graph.tasks if task in (None, name) and name not in paused]
    for candidate in graph.resources if resource is None else [resource]:
        starts = {}
        for name in tasks:
            needed = available_resources(graph, name, free, candidate, can_start)
            if needed is not None and (name in waiting or not reserved & set(needed)):
                starts[name] = needed
        if starts:
            return starts
    return {}


def blocked(graph: TaskGraph, free: Mapping[str, int]) -> list[str]:
    """Tasks that could use a free resource, if the others that they need were free, too."""
    return [
        task
        for task in graph.tasks
        if available_resources(graph, task, free) is None
        and any(free.get(resource, 0) > 0 for resource in graph.usable_resources(task))
    ]
