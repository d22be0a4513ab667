"""What corrections make of the results of jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

from sqlalchemy import Row

from calamint.run.store import CORRECTIONS


@final
@dataclass(frozen=True)
class Corrected:
    """All corrections so far, by the number of a job; corrected values are in the storage.

    sequence   of the last correction that is counted
    withdrawn  "withdrawn", or "forgiven" if only its failure is
    params     the input, if it was amended
    more       whether values are still to come, if some came later
    """

    sequence: int = 0
    withdrawn: Mapping[int, str] = field(default_factory=dict)
    params: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    more: Mapping[int, bool] = field(default_factory=dict)

    def after(self, events: Sequence[Row[Any]]) -> "Corrected":
        """With these events, as far as they are new; itself without any."""
        new = [row for row in events if row.kind in CORRECTIONS and row.sequence > self.sequence]
        found = self
        for row in new:
            found = found._after(row)
        return found

    def _after(self, row: Row[Any]) -> "Corrected":
        job, counted = row.job, replace(self, sequence=row.sequence)
        if row.kind in ("withdrawn", "forgiven"):
            return replace(counted, withdrawn={**self.withdrawn, job: row.kind})
        if row.kind == "completed":
            return replace(counted, more={**self.more, job: row.detail["more"]})
        if row.kind == "amended":
            used = row.detail["params"]
            return counted if used is None else replace(counted, params={**self.params, job: used})
        return replace(
            counted,
            withdrawn=_without(self.withdrawn, job),
            params=_without(self.params, job),
            more=_without(self.more, job),
        )


def _without(by_job: Mapping[int, Any], job: int) -> dict[int, Any]:
    return {number: value for number, value in by_job.items() if number != job}
