"""The jobs of a run: what they returned, those of others, and noticing that all crash alike."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, final

from calamint.run.execute import JobResult
from calamint.run.jobs import Job
from calamint.run.replay import Replica

# How an attempt ends that is an evaluation, unless its job is tried again.
COUNTED = (None, "crashed", "timeout")
# So many jobs of a task in a row, at different inputs, with the same words: of a task that never
# worked, and of one that did.
SAME_CRASHES, SAME_CRASHES_LATER = 5, 10


def named(values: Any, measures: tuple[str, ...]) -> Any:
    """A plain number is the value of the only function."""
    if not isinstance(values, Mapping) and len(measures) == 1:
        return {measures[0]: values}
    return values


def broken(values: Mapping[str, Any]) -> str | None:
    """Why a result counts as a failure, though it was told."""
    for name, value in values.items():
        number = value[0] if isinstance(value, list | tuple) and value else value
        if number is None or (isinstance(number, float) and not math.isfinite(number)):
            return f"{name} is {number}"
    return None


def jobs_of_others(replica: Replica, mine: Iterable[Job]) -> dict[str, list[str]]:
    """What other processes run on each resource."""
    own = {(job.number, job.attempt) for job in mine}
    found: dict[str, list[str]] = {}
    for (number, attempt), resources in list(replica.open.items()):
        if (number, attempt) not in own:
            for resource in resources:
                found.setdefault(resource, []).append(f"{replica.jobs[number].task} {number}")
    return found


@final
class SameCrash:
    """Counts crashes with the same words, but for their numbers, at different inputs in a row."""

    def __init__(self, worked: Iterable[str]) -> None:
        self._row: dict[str, tuple[str, set[str]]] = {}
        self._worked = set(worked)

    def seen(self, result: JobResult, nothing: str | None = None) -> str | None:
        """What to say if it is the same crash from every input; None while it is not.

        nothing  what was said if it returned nothing at all, which counts like a crash
        """
        task, error = result.job.task, result.error or nothing
        if result.cause in ("lost", "infrastructure"):
            return None  # it says nothing about the task
        if error is None:
            self._worked.add(task)
        if error is None or (result.cause != "crashed" and nothing is None):
            self._row.pop(task, None)
            return None
        words = re.sub(r"[-+]?\d[\d.e+-]*", "#", error)
        last, inputs = self._row.get(task, ("", set()))
        inputs = inputs if words == last else set()
        inputs.add(repr(result.job.params))
        self._row[task] = words, inputs
        most = SAME_CRASHES_LATER if task in self._worked else SAME_CRASHES
        if len(inputs) < most:
            return None
        return (
            f"task {task!r} crashed alike at {len(inputs)} inputs in a row: {error}. Take these"
            " failures back with forgive() if the inputs are not to blame; go on with"
            " keep_going=True (--keep-going) if they are."
        )
