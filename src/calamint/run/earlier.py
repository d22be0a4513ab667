"""What the problem of a study was before it was changed, as far as old jobs depend on it."""

from collections.abc import Mapping, Sequence
from typing import Any, final

from sqlalchemy import Row

from calamint.problem import Problem, read_constraint


@final
class EarlierProblems:
    """The problems that a study had, while its events are replayed under the last one."""

    def __init__(self, events: Sequence[Row[Any]], problem: Problem) -> None:
        """events: all of the study, or those since its last change."""
        changes = (row.detail for row in events if row.kind == "changed")
        # Calamint 0.1 kept only what differed.
        self._before = [each["before"] for each in changes if isinstance(each, Mapping)]
        self._problem = problem

    @property
    def binary(self) -> dict[str, bool]:
        """Functions that were measured, and whether as pass or fail."""
        return {name: kind for before in self._before for name, kind in kinds_of(before).items()}

    @property
    def measured(self) -> dict[str, set[str]]:
        """What tasks measured, by task."""
        found: dict[str, set[str]] = {}
        for before in self._before:
            for name, task in before["tasks"].items():
                found.setdefault(name, set()).update(task["measures"])
        return found

    def changed(self) -> None:
        """The next event is of the next problem."""
        if self._before:
            self._before.pop(0)

    def not_asked(self, task: str) -> tuple[str, ...]:
        """Functions that a task measures, but does not at this event."""
        if not self._before or task not in self._problem.tasks:
            return ()
        then = self._before[0]["tasks"].get(task, {"measures": ()})["measures"]
        return tuple(name for name in self._problem.tasks[task].measures if name not in then)


def kinds_of(content: Mapping[str, Any]) -> dict[str, bool]:
    """The functions that the tasks of a spec measure, and whether as pass or fail."""
    limits = map(read_constraint, content.get("constraints", ()))
    binary = {limit.name for limit in limits if limit.binary}
    measured = {name for task in content["tasks"].values() for name in task["measures"]}
    return {name: name in binary for name in measured}
