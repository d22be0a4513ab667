"""A study: an optimiser whose every step is committed to storage before the call returns."""

import threading
import time
from collections.abc import Iterable, Mapping
from copy import copy
from pathlib import Path
from typing import Any, Literal, final

from calamint.acquire import Acquisition
from calamint.arrays import Array
from calamint.checks import did_you_mean
from calamint.decide import (
    Clock,
    Optimizer,
    Prediction,
    Rationality,
    Recommendation,
    Record,
    Settings,
    Value,
    VirtualClock,
    parse_seconds,
)
from calamint.errors import ProblemError, ResultError, StorageError
from calamint.model import Model
from calamint.problem import Problem, Task
from calamint.run.ask import Request, check_lease, next_job
from calamint.run.changes import allowed_changes
from calamint.run.create import open_study
from calamint.run.execute import Executor, Tasks
from calamint.run.jobs import AttemptRecord, Job, JobRecord
from calamint.run.loop import LEASE, Loop
from calamint.run.progress import RunReport, Watcher
from calamint.run.replay import Replica
from calamint.run.store import MEMORY, Database, Store, job_records, open_attempts
from calamint.run.studies import check_study_name, find_study, stored_problem
from calamint.run.summary import Summary, summarise
from calamint.run.tables import (
    as_dataframe,
    parse_measurements,
    parse_rows,
    read_table,
    rows_of,
    write_table,
)


@final
class Study:
    """An optimiser whose every step is committed to storage before the call returns.

    A study that exists is resumed with its stored settings; any setting passed here must equal the
    stored one.

    Args:
        problem: The problem to solve; it must be the one that the study was created with.
        storage: A URL, such as "sqlite:///nn.db"; without it, the study lives in memory.
        name: The name of the study; several can share a storage.
        clock: Where time is read from; `VirtualClock` for simulations.

    All other arguments are the fields of `Settings`.

    Raises:
        ProblemError: If a setting is not valid, or differs from the stored one.
        StorageError: If the storage cannot be used.
    """

    def __init__(
        self,
        problem: Problem,
        storage: str | Database = MEMORY,
        name: str = "study",
        seed: int | None = None,
        acquisition: str | Acquisition | None = None,
        model: Model | None = None,
        initial: int | None = None,
        delta: float | None = None,
        rationality: Rationality | None = None,
        fantasies: int | None = None,
        couple: bool | None = None,
        retries: int | None = None,
        pause: float | None = None,
        threads: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        check_study_name(name)
        if clock is not None and not isinstance(clock, Clock):
            raise ProblemError(f"clock is {clock!r}: write Clock() or VirtualClock().")
        options = {
            "acquisition": acquisition,
            "model": model,
            "seed": seed,
            "initial": initial,
            "delta": delta,
            "rationality": rationality,
            "fantasies": fantasies,
            "couple": couple,
            "retries": retries,
            "pause": pause,
            "threads": threads,
        }
        passed = {key: value for key, value in options.items() if value is not None}
        settings = Settings.of(**passed)
        self.name = name
        self.clock = clock if clock is not None else Clock()
        self.database = storage if isinstance(storage, Database) else Database(storage)
        row, problem, self.settings = open_study(
            self.database, name, problem, settings, passed, self.now()
        )
        self._lock = threading.RLock()  # threads may share a study
        self._store = Store(self.database, row.id, self.settings, self.now)
        self._replica = Replica(self.database, row, problem, self.settings, self.clock, self.now)
        self._replica.sync()
        if isinstance(self.clock, VirtualClock):
            self.clock.move(self._replica.last)

    @staticmethod
    def load(
        storage: str | Database,
        name: str | None = None,
        problem: Problem | None = None,
        clock: Clock | None = None,
    ) -> "Study":
        """Open a study by its name; without one, the storage must have exactly one study.

        Args:
            storage: The URL of the storage.
            name: The name of the study.
            problem: Needed only if the problem has functions that cannot be imported.
            clock: Where time is read from.
        """
        database = storage if isinstance(storage, Database) else Database(storage, create=False)
        row = find_study(database, name)
        problem = stored_problem(row) if problem is None else problem
        return Study(problem, database, row.name, clock=clock)

    def now(self) -> float:
        """Unix time, or the time of a `VirtualClock`."""
        return self.clock.now() if isinstance(self.clock, VirtualClock) else time.time()

    @property
    def problem(self) -> Problem:
        return self._replica.problem

    def replica(self) -> Replica:
        """This process's copy of the study, brought up to date; read only."""
        with self._lock:
            self._replica.sync()
        return self._replica

    # -- asking -------------------------------------------------------------------------------

    def ask(
        self,
        resource: str | None = None,
        task: str | None = None,
        lease: float | None = None,
        confirm: bool = False,
    ) -> Job | None:
        """Book the next job.

        Args:
            resource: Let tasks compete for this resource.
            task: Consider only this task.
            lease: The job is tried again after this many seconds without `renew`, or as soon as
                this process is known to be dead. Without it, the job stays booked until it is
                told, failed or cancelled.
            confirm: Confirm the recommendation first, as `Optimizer.confirm`, if it is not yet.

        Returns:
            The job, with its resources booked; None while nothing can start.
        """
        return self.request(Request(resource, task, lease, confirm=confirm))

    def request(self, request: Request) -> Job | None:
        """The next job that a run asks for; see `Request`."""
        if request.lease is not None:
            check_lease(request.lease)
        with self._lock:
            return next_job(self._store, self._replica, request)

    def ask_all(self, lease: float | None = None) -> list[Job]:
        """Jobs for all free capacity."""
        return list(iter(lambda: self.ask(lease=lease), None))

    def enqueue(self, task: str, params: Mapping[str, Any]) -> int:
        """Queue a job; queued jobs run before suggested ones. Returns its number."""
        if not isinstance(task, str) or task not in self.problem.tasks:
            raise ProblemError(f"task is {task!r}: {did_you_mean(str(task), self.problem.tasks)}")
        return self._store.enqueue(task, self.problem.space.validate(params))

    def run(
        self,
        tasks: Tasks = None,
        evaluations: int | None = None,
        seconds: float | None = None,
        cost: float | None = None,
        bits: float | None = None,
        confirm: int = 0,
        executor: Executor | None = None,
        watch: Watcher | None = None,
        lease: float = LEASE,
    ) -> RunReport:
        """Decide, run and tell jobs until a budget is used up.

        Ctrl-C stops asking and lets running jobs finish; pressed again, it cancels them. The study
        can be resumed after either, and after a crash.

        Args:
            tasks: What each task does: a dict from task to a Python function of the parameters, or
                to a command (a list of words). A task that is left out runs its `Task.command`.
                With a single task, its function or command alone will do.
            evaluations: The total number of finished jobs, including those of earlier runs: the
                same call continues where a killed one stopped.
            seconds: Start no more jobs this many seconds after the beginning of this run.
            cost: Stop when the summed expected cost of all jobs, including those of earlier runs,
                reaches this.
            bits: Stop when the best job is expected to yield fewer bits than this, summed over its
                functions.
            confirm: How often to confirm the recommendation with the last evaluations of the
                budget: the recommended input is measured by every task that has not measured it.
            executor: `Local(timeout=..., folder=...)`, or `Simulated(durations, clock)`.
            watch: Something that shows what happens, such as `cm.Live()`.
            lease: Seconds without a sign of life from this process after which others may take over
                its jobs; on the same host they do as soon as it is dead.

        Returns:
            What stopped the run, and how many jobs ended in it.

        Raises:
            TaskError: If a task cannot be started at all.
        """
        return Loop(
            self, tasks, evaluations, seconds, cost, bits, confirm, executor, watch, lease
        ).run()

    # -- telling ------------------------------------------------------------------------------

    def tell(
        self, job: Job | int, values: Mapping[str, Value], seconds: float | None = None
    ) -> bool:
        """Report what a job measured; the result is durable when this returns.

        Args:
            job: What `ask` returned, or its number.
            values: A number for each function, or (value, standard error); True or False for a
                binary constraint. Omit functions that were not measured. NaN, infinity or None
                marks the job as failed; its other values are kept.
            seconds: How long the job ran; the time since it was asked for by default.

        Returns:
            False if the job had already ended, by another attempt or because it was cancelled; the
            result is then stored but not used.

        Raises:
            ResultError: If the values cannot be read, or this attempt was already reported.
        """
        number, attempt, task = self._resolve(job)
        measured, failed = parse_measurements(self.problem, values, task.measures)
        duration = parse_seconds(seconds)
        return self._store.tell(
            number, attempt, measured, failed, duration, task.failures == "retry"
        )

    def fail(self, job: Job | int, reason: str) -> None:
        """Report that a job ended without a result, and why: see `Task(failures=...)`."""
        number, attempt, task = self._resolve(job)
        self._store.fail(number, attempt, str(reason), task.failures == "retry")

    def _resolve(self, job: Job | int) -> tuple[int, int | None, Task]:
        try:
            return self._replica.resolve(job)  # without the lock: a decision may take its time
        except ResultError:
            return self.replica().resolve(job)

    def cancel(self, job: Job | int) -> None:
        """Cancel a job and free its resources."""
        self._store.cancel(self._resolve(job)[0])

    def renew(self, jobs: Iterable[Job], lease: float) -> list[Job]:
        """Renew the leases of jobs, for `lease` seconds from now.

        Returns:
            Jobs whose lease could not be renewed: they have ended, or were given to others.
        """
        check_lease(lease)
        listed = list(jobs) if isinstance(jobs, Iterable) else [jobs]
        if not all(isinstance(job, Job) for job in listed):
            raise ResultError(f"jobs is {jobs!r}: write a list of what ask() returned.")
        by_attempt = {(job.number, job.attempt): job for job in listed}
        lost = self._store.renew(list(by_attempt), lease) if by_attempt else []
        return [by_attempt[attempt] for attempt in lost]

    def reap(self) -> int:
        """Release leased jobs whose lease has expired or whose owner is dead, as `ask` does by
        itself. Returns how many there were."""
        return self._store.reap()

    def add(self, params: Mapping[str, Any], values: Mapping[str, Value]) -> None:
        """Add existing measurements of some or all functions at one input."""
        self.add_all([(params, values)])

    def add_all(self, rows: Iterable[tuple[Mapping[str, Any], Mapping[str, Value]]]) -> None:
        """Add many existing measurements; if one is invalid, none is added."""
        self._store.add(parse_rows(self.problem, rows))

    def add_table(self, table: Any) -> int:
        """Add measurements from a CSV or JSON file, a DataFrame or a list of dicts: all or none.

        There is a column for every parameter and for the functions that were measured;
        `latency_sem` is the standard error of `latency`. Returns the number of rows.
        """
        rows = read_table(self.problem, table)
        self.add_all(rows)
        return len(rows)

    # -- changing -----------------------------------------------------------------------------

    def change(self, problem: Problem) -> list[str]:
        """Extend the problem: new tasks or resources, more capacity, other costs, wider bounds.
        Returns what changed, which is also recorded."""
        problem = self.settings.applied(problem)
        replica = self.replica()
        changed = allowed_changes(self.problem, problem)
        if not changed:
            return []
        # The history must replay under the new problem before anything is changed.
        row = self._store.study_row()
        dry_run = Replica(self.database, row, problem, self.settings, self.clock, self.now)
        dry_run.sync()
        revision = self._store.change(problem, replica.revision, changed)
        if revision is None:
            raise StorageError(
                f"study {self.name!r} was changed meanwhile: open it again, and compare."
            )
        replica.restart(problem, revision)
        return changed

    # -- questions ----------------------------------------------------------------------------

    @property
    def optimizer(self) -> Optimizer:
        """A copy of the optimiser, up to date, to try things on; nothing of it is stored."""
        return copy(self.replica().optimizer)

    def recommend(
        self, delta: float | None = None, kind: Literal["believed", "observed"] = "believed"
    ) -> Recommendation:
        """Recommend an input, as `Optimizer.recommend`; the answer is stored."""
        with self._lock:
            recommendation = self.replica().optimizer.recommend(delta, kind)
        self._store.save_recommendation(recommendation, kind, self._replica.sequence)
        return recommendation

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
    def history(self) -> list[Record]:
        """What was measured, in the order in which it was told."""
        return self.replica().optimizer.history

    @property
    def jobs(self) -> list[JobRecord]:
        """All jobs, with their states and what they measured."""
        return job_records(self.database, self._store.study)

    def attempts(self) -> list[AttemptRecord]:
        """Running attempts, oldest first."""
        return open_attempts(self.database, self._store.study)

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
