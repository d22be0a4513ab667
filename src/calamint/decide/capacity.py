"""Which tasks can start now, and on what: no resource ever runs more jobs than its capacity."""

from collections import Counter
from collections.abc import Iterable, Mapping

from calamint.checks import nearest
from calamint.errors import ProblemError
from calamint.problem import Graph


def free_capacity(graph: Graph, booked: Iterable[tuple[str, ...]]) -> dict[str, int]:
    """How many more jobs each resource can take, given the resources of the jobs that run."""
    used = Counter(resource for resources in booked for resource in resources)
    return {resource: capacity - used[resource] for resource, capacity in graph.resources.items()}


def placement(
    graph: Graph, task: str, free: Mapping[str, int], on: str | None = None
) -> tuple[str, ...] | None:
    """The first alternative of a task whose resources are all free (and include `on`), or None."""
    for resources in graph.tasks[task].runs_on or ():
        if (on is None or on in resources) and all(
            free.get(resource, 0) > 0 for resource in resources
        ):
            return resources
    return None


def competing_tasks(
    graph: Graph,
    free: Mapping[str, int],
    passed_over: Mapping[str, int],
    resource: str | None = None,
    task: str | None = None,
) -> dict[str, tuple[str, ...]]:
    """The tasks that compete for the first resource that some task can use, with their resources.

    passed_over    how often in a row each task could not start for want of a resource
    resource, task only this one is asked about
    """
    for name, given, known in (
        ("resource", resource, graph.resources),
        ("task", task, graph.tasks),
    ):
        if given is not None and (not isinstance(given, str) or given not in known):
            raise ProblemError(f"{name} is {given!r}: {nearest(str(given), known)}")
    # A task that needs several resources could starve while others take them in turn: after some
    # time they are reserved for it. Naming a task bypasses this.
    patience = 2 * sum(graph.resources.values()) + 2
    waiting = [name for name in graph.tasks if passed_over.get(name, 0) > patience]
    waiting = waiting if task is None else []
    held = {word for name in waiting for word in graph.reach(name)}
    tasks = list(graph.tasks) if task is None else [task]
    for word in graph.resources if resource is None else [resource]:
        places = {}
        for name in tasks:
            place = placement(graph, name, free, word)
            if place is not None and (name in waiting or not held & set(place)):
                places[name] = place
        if places:
            return places
    return {}


def blocked(graph: Graph, free: Mapping[str, int]) -> list[str]:
    """Tasks that could use a free resource, if only the others that they need were free too."""
    return [
        task
        for task in graph.tasks
        if placement(graph, task, free) is None
        and any(free.get(resource, 0) > 0 for resource in graph.reach(task))
    ]
