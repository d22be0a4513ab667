"""Which tasks can start now, and on what: no resource ever runs more jobs than its capacity."""

from collections import Counter
from collections.abc import Iterable

from calamint.problem import Graph


def free_capacity(graph: Graph, booked: Iterable[tuple[str, ...]]) -> dict[str, int]:
    """How many more jobs each resource can take, given the resources of the jobs that run."""
    used = Counter(resource for resources in booked for resource in resources)
    return {resource: capacity - used[resource] for resource, capacity in graph.resources.items()}


def placement(graph: Graph, task: str, free: dict[str, int]) -> tuple[str, ...] | None:
    """The first alternative of a task whose resources are all free, or None."""
    for resources in graph.tasks[task].runs_on or ():
        if all(free[resource] > 0 for resource in resources):
            return resources
    return None
