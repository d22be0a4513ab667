"""What the problem of a study was before it was changed, as far as old jobs depend on it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

from sqlalchemy import Row

from calamint.problem import Problem


@final
class EarlierProblems:
    """The problems that a study had, while its events are replayed under the last one."""

    def __init__(self, events: Sequence[Row[Any]], problem: Problem) -> None:
        """events: all of the study, or those since its last change."""
        changes = (row.detail for row in events if row.kind == "changed")
        # Calamint 0.1 kept only what differed.
        self._before = [each["before"] for each in changes if isinstance(each, Mapping)]
        self._problem = problem
        self.dropped = frozenset(
            name for before in self._before for name in measured_functions(before)
        ) - {*problem.functions}

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


def measured_functions(content: Mapping[str, Any]) -> Iterable[str]:
    """The functions that the tasks of a spec measure."""
    return (name for task in content["tasks"].values() for name in task["measures"])
