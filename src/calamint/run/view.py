"""A study that is only read, also from media that cannot be written."""

import threading
import time
from collections.abc import Mapping
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Row

from calamint.arrays import Array
from calamint.decide import (
    Clock,
    Optimizer,
    Prediction,
    Recommendation,
    Record,
    Settings,
    VirtualClock,
)
from calamint.html import as_table
from calamint.problem import Problem
from calamint.run.jobs import AttemptRecord, JobRecord
from calamint.run.replay import Replica
from calamint.run.store import (
    Database,
    LeaseClock,
    Pausable,
    ProblemChange,
    attempt_records,
    job_records,
    paused,
    problem_changes,
    standard_errors,
)
from calamint.run.studies import find_study, stored_problem
from calamint.run.summary import Summary, summarise
from calamint.run.tables import as_dataframe, rows_of, write_table


def time_of(clock: Clock | None) -> float:
    """Unix time, or the time of a `VirtualClock`."""
    return clock.now() if isinstance(clock, VirtualClock) else time.time()


def stored_study(
    database: Database, name: str | None, problem: Problem | None, trust: bool
) -> tuple[Row[Any], Problem, Settings]:
    """The row of a study, its problem, unless that is given, and its settings."""
    row = find_study(database, name)
    problem = stored_problem(row, trust) if problem is None else problem
    return row, problem, Settings.from_json(row.settings)


class StudyView:
    """A study that is only read: where it stands, what was measured, what is believed."""

    def __init__(
        self,
        database: Database,
        row: Row[Any],
        problem: Problem,
        settings: Settings,
        clock: Clock | None = None,
    ) -> None:
        """row: that of the study in the table of studies."""
        self.name, self.database, self.settings = str(row.name), database, settings
        self.clock = clock if clock is not None else Clock()
        self._lock = threading.RLock()  # threads may share a study
        virtual = isinstance(self.clock, VirtualClock)
        lease_clock = LeaseClock.virtual(self.clock.now) if virtual else database.lease_clock()
        self._replica = Replica(database, row, problem, settings, self.clock, self.now, lease_clock)
        self._replica.sync()
        if isinstance(self.clock, VirtualClock):
            self.clock.move(self._replica.last)

    @staticmethod
    def of(
        storage: str | Database,
        name: str | None = None,
        problem: Problem | None = None,
        trust: bool = False,
    ) -> "StudyView":
        """Open a study to read it, as `Study.load` does to go on with it."""
        database = storage if isinstance(storage, Database) else Database(storage, read_only=True)
        return StudyView(database, *stored_study(database, name, problem, trust))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} in {self.database.where}>"

    def __str__(self) -> str:
        """Where it stands, read from storage without fitting a model."""
        said = "; ".join(f"{name} {value}" for name, value in self._standing().items())
        return f"Study {self.name!r} in {self.database.where}: {said}"

    def _repr_html_(self) -> str:
        return as_table(f"Study {self.name} in {self.database.where}", self._standing())

    def _standing(self) -> dict[str, str]:
        summary = self.summary()
        found = {
            "evaluations": ", ".join(f"{n} by {task}" for task, n in summary.evaluations.items())
        }
        others = [f"{count} {state}" for state, count in summary.states.items() if count]
        if others:
            found["jobs"] = ", ".join(others)
        if summary.paused:
            found["paused"] = ", ".join(summary.paused)
        if summary.recommendation is not None:
            count = summary.results_since
            since = f" ({count} result{'s' * (count != 1)} since)" if count else ""
            found["last recommendation"] = f"{summary.recommendation}{since}"
        return found

    def now(self) -> float:
        """Unix time, or the time of a `VirtualClock`."""
        return time_of(self.clock)

    @property
    def problem(self) -> Problem:
        return self._replica.problem

    def replica(self) -> Replica:
        """This process's copy of the study, brought up to date; read only."""
        with self._lock:
            self._replica.sync()
        return self._replica

    @property
    def optimizer(self) -> Optimizer:
        """A copy of the optimiser, up to date, to try things on; nothing of it is stored."""
        return copy(self.replica().optimizer)

    def recommend(
        self, delta: float | None = None, kind: Literal["believed", "observed"] = "believed"
    ) -> Recommendation:
        """Recommend an input, as `Optimizer.recommend`."""
        with self._lock:
            return self.replica().optimizer.recommend(delta, kind)

    def predict(self, params: Mapping[str, Any]) -> Prediction:
        """Mean, standard deviation and probability of meeting the limits at one input."""
        with self._lock:
            return self.replica().optimizer.predict(params)

    def gains(self, points: Any) -> dict[str, Array]:
        """The bits that measuring each function would be expected to yield about the optimum.

        Args:
            points: A dict of parameter values, or a list of dicts.
        """
        with self._lock:
            return self.replica().optimizer.gains(points)

    @property
    def plots(self) -> Any:
        """Plots of this study: `study.plots.progress()`; see `calamint.plots`."""
        # By name: what shows studies builds on what runs them, not the other way round.
        return import_module("calamint.show.plots").Plots(self)

    def report(self, path: str | Path) -> Path:
        """Write a report to an .html file: what was found and why, with every plot and its data."""
        return import_module("calamint.show.report").write_report(self, path)

    @property
    def history(self) -> list[Record]:
        """What was measured, in the order in which it was told."""
        return self.replica().optimizer.history

    @property
    def jobs(self) -> list[JobRecord]:
        """All jobs, with their states and what they measured."""
        return job_records(self.database, self._replica.study)

    @property
    def changes(self) -> list[ProblemChange]:
        """All changes of the problem, oldest first: what, who, when and why."""
        return problem_changes(self.database, self._replica.study)

    @property
    def paused(self) -> dict[Pausable, list[str]]:
        """Tasks and resources that are paused."""
        found: dict[Pausable, list[str]] = {"task": [], "resource": []}
        for kind, name in sorted(paused(self.database, self._replica.study)):
            found[kind].append(name)
        return found

    def standard_errors(self, number: int) -> dict[str, float]:
        """Those that a job was told with, by function."""
        return standard_errors(self.database, self._replica.study, number)

    def attempts(self, running: bool = True) -> list[AttemptRecord]:
        """Attempts, oldest first: those that run, or all."""
        return attempt_records(self.database, self._replica.study, running)

    def occupied(self) -> dict[str, list[int]]:
        """The jobs that run on each resource, by number."""
        found: dict[str, list[int]] = {}
        for (number, _), resources in self.replica().open.items():
            for resource in resources:
                found.setdefault(resource, []).append(number)
        return found

    def summary(self) -> Summary:
        """The progress of the study, read from storage without fitting a model."""
        return summarise(self.database, self.name)

    def table(self) -> list[dict[str, Any]]:
        """What was measured, a row for each finished job."""
        return rows_of(self.problem, self.history)

    def to_csv(self, path: str | Path) -> None:
        """Write what was measured, a row for each finished job; `add_table` reads it."""
        write_table(self.problem, self.table(), path)

    def to_pandas(self) -> Any:
        """What was measured as a DataFrame, a row for each finished job."""
        return as_dataframe(self.problem, self.table())
