"""A study that is told, corrected and changed."""

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, Self

from sqlalchemy import Row

from calamint.checks import did_you_mean
from calamint.decide import Clock, Settings, Value, parse_seconds
from calamint.errors import ProblemError, ResultError
from calamint.problem import Problem
from calamint.run.ask import check_lease
from calamint.run.changes import change_problem, changes_of, check_pausable, problem_before
from calamint.run.jobs import CAUSES, Cause, Job, listed_jobs
from calamint.run.read_table import Extra, Imported, rows_to_add
from calamint.run.store import Caller, Database, Measured, Store
from calamint.run.tables import parse_measurements, parse_numbers, parse_rows
from calamint.run.view import StudyView, stored_study


class StudyEditor(StudyView):
    """A study that is told, corrected and changed; it decides nothing."""

    def __init__(
        self,
        database: Database,
        row: Row[Any],
        problem: Problem,
        settings: Settings,
        clock: Clock | None = None,
    ) -> None:
        """row: that of the study in the table of studies."""
        super().__init__(database, row, problem, settings, clock)
        self._store = Store(database, row.id, settings, self.now, self._replica.lease_clock)

    def on_behalf_of(self, caller: Caller | None) -> Self:
        """The same study, changed by somebody else: what happened says by whom, and jobs that are
        asked for are that caller's."""
        other = copy(self)
        other._store = self._store.on_behalf_of(caller)
        return other

    @staticmethod
    def of(
        storage: str | Database,
        name: str | None = None,
        problem: Problem | None = None,
        trust: bool = False,
    ) -> "StudyEditor":
        """Open a study to tell, correct or change it, as `Study.load` does to go on with it."""
        database = storage if isinstance(storage, Database) else Database(storage, create=False)
        return StudyEditor(database, *stored_study(database, name, problem, trust))

    def enqueue(self, task: str, params: Mapping[str, Any]) -> int:
        """Queue a job; queued jobs run before suggested ones. Returns its number."""
        problem = self.replica().problem  # others may have changed it
        if not isinstance(task, str) or task not in problem.tasks:
            raise ProblemError(f"task is {task!r}: {did_you_mean(str(task), problem.tasks)}")
        return self._store.enqueue(task, problem.space.validate(params))

    # -- telling ------------------------------------------------------------------------------

    def tell(
        self,
        job: Job | int,
        values: Mapping[str, Value],
        seconds: float | None = None,
        params: Mapping[str, Any] | None = None,
        more: bool = False,
    ) -> bool:
        """Report what a job measured; the result is durable when this returns.

        Args:
            job: What `ask` returned, or its number.
            values: A number for each function, or (value, standard error); True or False for a
                binary constraint. Omit functions that were not measured. NaN, infinity or None
                marks the job as failed; its other values are kept.
            seconds: How long the job ran; the time since it was asked for by default.
            params: Parameters that were not exactly as suggested, as they really were.
            more: The functions that are left out will follow, by `complete`: until then they are
                pending. The resources are free.

        Returns:
            False if the job had already ended, by another attempt or because it was cancelled; the
            result is then stored but not used.

        Raises:
            ResultError: If the values cannot be read, or this attempt was already reported.
        """
        number, attempt = self._resolve(job)
        replica, task = self._replica, self._replica.task_of(number)
        measured, broken = parse_measurements(values, replica.tellable(number), replica.binary)
        measures = () if task is None else task.measures
        failed = {name: said for name, said in broken.items() if name in measures}
        duration = parse_seconds(seconds)
        used = replica.moved(number, params)
        waits = more and not failed and not set(measures) <= set(measured)
        again = task is not None and task.failures == "retry"
        return self._store.tell(number, attempt, measured, failed, duration, again, used, waits)

    def fail(self, job: Job | int, reason: str, cause: Cause = "crashed") -> None:
        """Report that a job ended without a result.

        "crashed" or "timeout" may be the input's fault: see `Task(failures=...)`. "lost" and
        "infrastructure" are not: the job is tried again, and held for `release` if that happens
        too often in a row. One whose result was "refused", as it cannot be read, is run again.
        """
        if cause not in CAUSES:
            raise ResultError(f"cause is {cause!r}: {did_you_mean(str(cause), CAUSES)}")
        number, attempt = self._resolve(job)
        task = self._replica.task_of(number)
        again = task is not None and task.failures == "retry"
        self._store.fail(number, attempt, str(reason), cause, again)

    def release(self, job: Job | int) -> None:
        """Try a job again that is held, because its attempts were lost too often in a row."""
        self._store.release(self._resolve(job)[0])

    def _resolve(self, job: Job | int) -> tuple[int, int | None]:
        try:
            return self._replica.resolve(job)  # without the lock: a decision may take its time
        except ResultError:
            return self.replica().resolve(job)

    def cancel(self, job: Job | int) -> None:
        """Cancel a job and free its resources; of one that was told in part, expect no more."""
        self._store.cancel(*self._resolve(job))

    def renew(self, jobs: Iterable[Job], lease: float) -> list[Job]:
        """Renew the leases of jobs, for `lease` seconds from now.

        Returns:
            Jobs whose lease could not be renewed: they have ended, or were given to others.
        """
        check_lease(lease)
        by_attempt = {(self._resolve(job)[0], job.attempt): job for job in listed_jobs(jobs)}
        lost = self._store.renew(list(by_attempt), lease) if by_attempt else []
        return [by_attempt[attempt] for attempt in lost]

    def adopt(self, job: Job, lease: float) -> bool:
        """Take over a job that goes on though its owner is gone, and renew its lease; False if it
        has ended, or was given to others."""
        check_lease(lease)
        return self._store.adopt(self._resolve(job)[0], job.attempt, self._store.owner, lease)

    def reap(self, alive: Iterable[Job] = ()) -> int:
        """Release leased jobs whose lease has expired or whose owner is dead, as `ask` does by
        itself. Returns how many there were; those in `alive` are not."""
        return self._store.reap({(job.number, job.attempt) for job in alive})

    def add(
        self, params: Mapping[str, Any], values: Mapping[str, Value], outside: bool = False
    ) -> None:
        """Add existing measurements of some or all functions at one input."""
        self.add_all([(params, values)], outside)

    def add_all(
        self,
        rows: Iterable[tuple[Mapping[str, Any], Mapping[str, Value]]],
        outside: bool = False,
        notes: Iterable[Mapping[str, Any]] | None = None,
    ) -> None:
        """Add many existing measurements, also `outside` of the bounds; if one is invalid, none is
        added. `notes` are kept with them, for each row."""
        problem = self.replica().problem  # others may have changed it
        parsed = parse_rows(problem, rows, outside)
        kept = [{}] * len(parsed) if notes is None else list(notes)
        if len(kept) != len(parsed):
            raise ProblemError(f"notes has {len(kept)} of {len(parsed)}: write one for each row.")
        self._store.add([(*row, note) for row, note in zip(parsed, kept, strict=True)])

    def add_table(
        self, table: Any, extra: Extra = "refuse", again: bool = False, outside: bool = False
    ) -> Imported:
        """Add measurements from a CSV, Excel or JSON file, a DataFrame or a list of dicts.

        There is a column for every parameter and for the functions that were measured;
        `latency_sem` is the standard error of `latency`. If one row is invalid, none is added.

        Args:
            table: A path, a DataFrame or a list of dicts.
            extra: What to do with other columns: "refuse", "ignore" or keep them as "notes".
            again: Add rows that the study has already, as measurements that were repeated.
            outside: Accept values out of bounds, which teach though they are never suggested.

        Returns:
            How many rows were added, and skipped because the study had them already.
        """
        history = self.history
        rows, report = rows_to_add(self.problem, table, extra, () if again else history, outside)
        self._store.add(rows)
        return report

    # -- correcting ---------------------------------------------------------------------------

    def amend(
        self,
        job: Job | int,
        values: Mapping[str, Value] | None = None,
        params: Mapping[str, Any] | None = None,
        reason: str = "",
    ) -> None:
        """Replace values that were told, or the input at which they were measured.

        It is as if the new ones had been told at once. What was told before is kept in the storage,
        with who amended it, when and why; `restore` takes that back.

        Args:
            job: What `ask` returned, or its number.
            values: The right values of functions that were told; others stay as they are.
            params: Parameters that were others than suggested, or than told.
            reason: Why, in words.
        """
        number, _ = self._resolve(job)
        if values is None and params is None:
            raise ResultError("nothing to amend: give values, params or both.")
        measured = {} if values is None else self._numbers(number, values)
        used = self.replica().moved(number, params)
        self._store.corrections.amend(number, measured, used, str(reason))

    def complete(self, job: Job | int, values: Mapping[str, Value], more: bool = False) -> None:
        """Tell values that arrive later, of functions that were left out or failed.

        Args:
            job: What `ask` returned, or its number.
            values: As for `tell`.
            more: Others will follow.
        """
        number, _ = self._resolve(job)
        measured, task = self._numbers(number, values), self._replica.task_of(number)
        measures = () if task is None else task.measures
        self._store.corrections.complete(number, measured, more, measures)

    def _numbers(self, number: int, values: Mapping[str, Value]) -> Measured:
        replica = self._replica
        return parse_numbers(values, replica.tellable(number), replica.binary)

    def withdraw(self, job: Job | int, reason: str) -> None:
        """Take back a result or a failure, with all that it taught; the job does not count as an
        evaluation any more. `restore` takes that back."""
        self._store.corrections.withdraw(self._resolve(job)[0], str(reason))

    def forgive(self, job: Job | int) -> None:
        """Take back a failure that was not the input's fault, with what it taught, but not what
        else was measured; the job does not count as an evaluation any more."""
        self._store.corrections.forgive(self._resolve(job)[0])

    def restore(self, job: Job | int) -> None:
        """Take back all corrections of a job: its result is what was first told."""
        self._store.corrections.restore(self._resolve(job)[0])

    # -- changing -----------------------------------------------------------------------------

    def change(self, problem: Problem, reason: str = "") -> list[str]:
        """Go on with another problem: other bounds, options, limits, tasks, resources or costs.

        Measurements out of the new bounds, or with options that were dropped, keep teaching. A new
        constraint is measured from now on. `changes` has who changed what, when and why.

        Returns:
            What changed, in words.
        """
        with self._lock:
            wanted = self.settings.applied(problem)
            return change_problem(self._store, self.replica(), wanted, str(reason))

    def preview_change(self, problem: Problem) -> list[str]:
        """What `change` would change."""
        with self._lock:
            return changes_of(self.replica(), self.settings.applied(problem))[1]

    def problem_before(self, trust: bool = False) -> Problem:
        """The problem before its last change, to change back to.

        Args:
            trust: Import functions that only that problem has, which runs their modules.
        """
        return problem_before(self.problem, self.changes, trust)

    def pause(self, task: str | None = None, resource: str | None = None, reason: str = "") -> None:
        """Start no more jobs of a task, or on a resource, until `resume`; those that run end."""
        kind, name = check_pausable(self.problem, task, resource)
        self._store.changes.pause(kind, name, str(reason))

    def resume(self, task: str | None = None, resource: str | None = None) -> None:
        """Start jobs again of a task, or on a resource, that was paused."""
        self._store.changes.resume(*check_pausable(self.problem, task, resource))
