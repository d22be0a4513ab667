"""Changes of a study's problem, and what of it is paused; each is an event that is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

from sqlalchemy import Connection, delete, insert, select

from calamint.problem import Problem
from calamint.run.store import schema
from calamint.run.store.database import Database
from calamint.run.store.retries import retried
from calamint.run.store.rows import Rows, words

Pausable = Literal["task", "resource"]


@final
@dataclass(frozen=True)
class ProblemChange:
    """A change of the problem.

    Attributes:
        time: When it was made, in seconds since 1970.
        by: Who made it.
        reason: Why, in words.
        differences: What changed.
        before: The spec of the problem before, as a dict.
    """

    time: float
    by: str
    reason: str
    differences: tuple[str, ...]
    before: Mapping[str, Any]

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return "; ".join(self.differences) + why


@final
class ProblemChanges:
    """Transactions that change the problem of one study."""

    def __init__(self, database: Database, rows: Rows) -> None:
        self.database, self._rows = database, rows

    @retried
    def change(
        self,
        problem: Problem,
        revision: int,
        sequence: int,
        differences: Sequence[str],
        reason: str,
    ) -> int | None:
        """Another problem: its revision, or None if anything happened since `sequence`."""
        with self.database.write(self._rows.study_id) as connection:
            row = self._rows.study(connection)
            if (row.revision, row.sequence) != (revision, sequence):
                return None
            resumed = Rows(row.id, self._rows.now, self._rows.clock)
            for kind, name in _paused(_read_events(connection, row.id, "paused", "resumed")):
                if name not in (problem.tasks if kind == "task" else problem.resources):
                    resumed.event(connection, "resumed", detail=self._said(kind, name, ""))
            # What was learnt under the old problem is no start for what is learnt under this one.
            self._rows.update_study(
                connection, problem=problem.to_content(), revision=revision + 1, state=None
            )
            write_problem(connection, row.id, problem)
            said = {"by": self._rows.by, "reason": words(reason)}
            detail = {"differences": list(differences), "before": row.problem, **said}
            self._rows.event(connection, "changed", detail=detail)
            return revision + 1

    def pause(self, kind: Pausable, name: str, reason: str) -> None:
        """Start no more jobs of a task, or on a resource."""
        self._event("paused", kind, name, reason)

    def resume(self, kind: Pausable, name: str) -> None:
        self._event("resumed", kind, name, "")

    @retried
    def _event(self, event: str, kind: Pausable, name: str, reason: str) -> None:
        with self.database.write(self._rows.study_id) as connection:
            self._rows.event(connection, event, detail=self._said(kind, name, reason))

    def _said(self, kind: Pausable, name: str, reason: str) -> dict[str, str]:
        return {"kind": kind, "name": name, "by": self._rows.by, "reason": words(reason)}


def problem_changes(database: Database, study: int) -> list[ProblemChange]:
    """All changes of a study's problem, oldest first."""
    return [
        ProblemChange(
            row.time,
            row.detail["by"],
            row.detail["reason"],
            tuple(row.detail["differences"]),
            row.detail["before"],
        )
        for row in _events(database, study, "changed")
        if isinstance(row.detail, Mapping)  # Calamint 0.1 kept only what differed
    ]


def paused(database: Database, study: int) -> set[tuple[Pausable, str]]:
    """Tasks and resources that are paused, by kind and name."""
    return _paused(_events(database, study, "paused", "resumed"))


def _paused(events: Sequence[Any]) -> set[tuple[Pausable, str]]:
    found: set[tuple[Pausable, str]] = set()
    for row in events:
        pair = row.detail["kind"], row.detail["name"]
        (found.add if row.kind == "paused" else found.discard)(pair)
    return found


@retried
def _events(database: Database, study: int, *kinds: str) -> Sequence[Any]:
    with database.read() as connection:
        return _read_events(connection, study, *kinds)


def _read_events(connection: Connection, study: int, *kinds: str) -> Sequence[Any]:
    events = schema.events.c
    query = (
        select(events.time, events.kind, events.detail)
        .where(events.study_id == study, events.kind.in_(kinds))
        .order_by(events.sequence)
    )
    return connection.execute(query).all()


def write_problem(connection: Connection, study: int, problem: Problem) -> None:
    """Tasks and resources as tables that a person can read."""
    for table in (schema.tasks, schema.resources):
        connection.execute(delete(table).where(table.c.study_id == study))
    content = problem.to_content()
    connection.execute(
        insert(schema.tasks),
        [
            {
                "study_id": study,
                "name": name,
                "measures": entry["measures"],
                "runs_on": entry["runs_on"],
                "cost": str(entry.get("cost", 1.0)),
                "command": entry.get("command"),
                "failures": entry.get("failures", "model"),
            }
            for name, entry in content["tasks"].items()
        ],
    )
    connection.execute(
        insert(schema.resources),
        [
            {"study_id": study, "name": name, "capacity": capacity}
            for name, capacity in problem.resources.items()
        ],
    )
