"""A study: an optimiser whose every step is stored before it is answered."""

import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, final

from calamint.acquire import Acquisition
from calamint.arrays import Array
from calamint.checks import did_you_mean, finite
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
    read_seconds,
)
from calamint.errors import ProblemError, ResultError, StorageError
from calamint.model import Model
from calamint.problem import Problem, Task
from calamint.run.ask import Request, next_job
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
    read_measurements,
    read_rows,
    read_table,
    rows_of,
    write_table,
)


@final
class Study:
    """An optimiser whose every step is stored before it is answered.

    A study that exists continues as it was created: settings that are given must be the same.

    Args:
        problem: The problem to solve; it must be the one that the study was created with.
        storage: A URL, such as "sqlite:///nn.db"; without it, the study lives in memory.
        name: The name of the study; several can share a storage.
        clock: Where time is read from; `VirtualClock` for simulations.

    All other arguments are the fields of `Settings`.

    Raises:
        ProblemError: If a setting is not valid, or the study was created otherwise.
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
        }
        given = {key: value for key, value in options.items() if value is not None}
        wanted = Settings.of(**given)
        self.name = name
        self.clock = clock if clock is not None else Clock()
        self.database = storage if isinstance(storage, Database) else Database(storage)
        found, problem, self.settings = open_study(
            self.database, name, problem, wanted, given, self.now()
        )
        self._lock = threading.RLock()  # threads may share a study
        self._store = Store(self.database, found.id, self.settings, self.now)
        self._replica = Replica(self.database, found, problem, self.settings, self.clock, self.now)
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
        """Open a study that exists, by its name, or the only one of the storage.

        Args:
            storage: The URL of the storage.
            name: The name of the study.
            problem: Needed only if the problem has functions that cannot be imported.
            clock: Where time is read from.
        """
        database = storage if isinstance(storage, Database) else Database(storage, create=False)
        found = find_study(database, name)
        problem = stored_problem(found) if problem is None else problem
        return Study(problem, database, found.name, clock=clock)

    def now(self) -> float:
        """Seconds since 1970, or on the virtual clock."""
        return self.clock.now() if isinstance(self.clock, VirtualClock) else time.time()

    @property
    def problem(self) -> Problem:
        return self._replica.problem

    def replica(self) -> Replica:
        """What this process knows of the study, up to date: to look at, not to change."""
        with self._lock:
            self._replica.sync()
        return self._replica

    # -- asking -------------------------------------------------------------------------------

    def ask(
        self, resource: str | None = None, task: str | None = None, lease: float | None = None
    ) -> Job | None:
        """Book the next job.

        Args:
            resource: Let tasks compete for this resource.
            task: Consider only this task.
            lease: Seconds after which the job is tried again unless `renew` was called; without
                it, the job stays booked until it is told, failed or cancelled.

        Returns:
            The job, with its resources booked; None while nothing can start.
        """
        return self.request(Request(resource, task, lease))

    def request(self, request: Request) -> Job | None:
        """The next job that a run asks for; see `Request`."""
        if request.lease is not None:
            _check_lease(request.lease)
        with self._lock:
            return next_job(self._store, self._replica, request)

    def ask_all(self, lease: float | None = None) -> list[Job]:
        """Jobs for all free capacity."""
        jobs = []
        while (job := self.ask(lease=lease)) is not None:
            jobs.append(job)
        return jobs

    def enqueue(self, task: str, params: Mapping[str, Any]) -> int:
        """Queue a job, which comes before all others; returns its number."""
        if not isinstance(task, str) or task not in self.problem.tasks:
            raise ProblemError(f"task is {task!r}: {did_you_mean(str(task), self.problem.tasks)}")
        return self._store.enqueue(task, self.problem.space.accept(params))

    def run(
        self,
        tasks: Tasks = None,
        evaluations: int | None = None,
        seconds: float | None = None,
        cost: float | None = None,
        bits: float | None = None,
        executor: Executor | None = None,
        watch: Watcher | None = None,
        lease: float = LEASE,
    ) -> RunReport:
        """Decide, run and tell jobs until a budget is used up.

        Ctrl-C stops asking and lets running jobs finish; pressed again, it cancels them. The study
        can be resumed after either, and after a crash.

        Args:
            tasks: What each task does: a dict of functions of the parameters, or of commands; a
                task that is left out runs the command of its spec.
            evaluations: The total number of finished jobs, including those of earlier runs: the
                same call continues where a killed one stopped.
            seconds: No more jobs are started after this time.
            cost: The total expected cost of all jobs, including those of earlier runs.
            bits: Stop when no measurement is expected to yield this many.
            executor: `Local(timeout=..., folder=...)`, each job in a process of its own; or
                `Simulated(durations, clock)`.
            watch: Something that shows what happens, such as `cm.Live()`.
            lease: Seconds for which a job stays booked if this process dies.

        Returns:
            What stopped the run, and how many jobs ended in it.

        Raises:
            TaskError: If a task cannot be started at all.
        """
        return Loop(self, tasks, evaluations, seconds, cost, bits, executor, watch, lease).run()

    # -- telling ------------------------------------------------------------------------------

    def tell(
        self, job: Job | int, values: Mapping[str, Value], seconds: float | None = None
    ) -> bool:
        """Report what a job measured; the result is durable when this returns.

        The optimiser learns of it when the event that is stored here is replayed.

        Args:
            job: What `ask` returned, or its number.
            values: A number for each function, or (value, standard error); True or False for a
                binary constraint. Functions that are left out were not measured. One that is NaN,
                infinite or None failed: the others are kept, and the job counts as failed.
            seconds: How long the job ran; the time since it was asked for by default.

        Returns:
            False if the job had ended before, by another attempt or because it was cancelled: then
            the result is kept, and not used.

        Raises:
            ResultError: If the values cannot be read, or this attempt was told before.
        """
        number, attempt, task = self._asked(job)
        measured, broken = read_measurements(self.problem, values, task.measures)
        took = read_seconds(seconds)
        return self._store.tell(number, attempt, measured, broken, took, task.failures == "retry")

    def fail(self, job: Job | int, reason: str) -> None:
        """Report that a job ended without a result, and why: see `Task(failures=...)`."""
        number, attempt, task = self._asked(job)
        self._store.fail(number, attempt, str(reason), task.failures == "retry")

    def _asked(self, job: Job | int) -> tuple[int, int | None, Task]:
        """The number, the attempt (or None for the latest) and the task of a job of this study."""
        if isinstance(job, Job):
            number, attempt = job.number, job.attempt
        elif isinstance(job, int) and not isinstance(job, bool):
            number, attempt = job, None
        else:
            raise ResultError(f"job is {job!r}: write what ask() returned, or its number.")
        if number not in self._replica.jobs:
            self.replica()
        made = self._replica.jobs.get(number)
        if made is None or (
            isinstance(job, Job) and (job.task, job.params) != (made.task, made.params)
        ):
            raise ResultError(f"job {number!r} was not asked for here: nothing was changed.")
        return number, attempt, self.problem.tasks[made.task]

    def cancel(self, job: Job | int) -> None:
        """A job will not be run; its resources are free again."""
        self._store.cancel(self._asked(job)[0])

    def renew(self, jobs: Iterable[Job], lease: float) -> list[Job]:
        """Renew the leases of jobs, for `lease` seconds from now.

        Returns:
            Jobs that were given to others, or have ended, in the meantime.
        """
        _check_lease(lease)
        if not isinstance(jobs, Iterable) or not all(isinstance(job, Job) for job in (*jobs,)):
            raise ResultError(f"jobs is {jobs!r}: write a list of what ask() returned.")
        held = {(job.number, job.attempt): job for job in jobs}
        return [held[key] for key in self._store.renew(list(held), lease)] if held else []

    def reap(self) -> int:
        """Give back jobs whose lease has run out, or whose owner is dead; returns how many.

        Asking does that by itself.
        """
        return self._store.reap()

    def add(self, params: Mapping[str, Any], values: Mapping[str, Value]) -> None:
        """Measurements from elsewhere: any of the functions, at any input."""
        self.add_all([(params, values)])

    def add_all(self, rows: Iterable[tuple[Mapping[str, Any], Mapping[str, Value]]]) -> None:
        """Many measurements from elsewhere: all of them, or, if one is refused, none."""
        self._store.add(read_rows(self.problem, rows))

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
        """Continue with a problem that has more: tasks, resources, capacity, costs, wider bounds.

        Returns:
            What changed, which is also recorded.
        """
        problem = self.settings.applied(problem)
        replica = self.replica()
        changed = allowed_changes(self.problem, problem)
        if not changed:
            return []
        # All that has happened must make sense under the new problem, before anything is changed.
        found = self._store.head()
        trial = Replica(self.database, found, problem, self.settings, self.clock, self.now)
        trial.sync()
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
        """What decides, with all that was measured: to look at, not to tell."""
        return self.replica().optimizer

    def recommend(
        self, delta: float | None = None, kind: Literal["believed", "observed"] = "believed"
    ) -> Recommendation:
        """Recommend an input, as `Optimizer.recommend`; the answer is stored."""
        with self._lock:
            found = self.optimizer.recommend(delta, kind)
        self._store.recommended(found, kind, self._replica.sequence)
        return found

    def predict(self, params: Mapping[str, Any]) -> Prediction:
        """Mean, std and probability of meeting the limits at one input."""
        with self._lock:
            return self.optimizer.predict(params)

    def gains(self, points: Any) -> dict[str, Array]:
        """Bits that measuring each function at each point would yield about the optimum."""
        with self._lock:
            return self.optimizer.gains(points)

    @property
    def history(self) -> list[Record]:
        """What was measured, in the order in which it was told."""
        return self.optimizer.history

    @property
    def jobs(self) -> list[JobRecord]:
        """All jobs, with their states and what they measured."""
        return job_records(self.database, self._store.study)

    def attempts(self) -> list[AttemptRecord]:
        """Attempts that have their resources, oldest first."""
        return open_attempts(self.database, self._store.study)

    def summary(self) -> Summary:
        """How far the study has come, without computing anything."""
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


def _check_lease(lease: object) -> None:
    if finite(lease) is None:
        raise ProblemError(f"lease is {lease!r}: write a number of seconds.")
