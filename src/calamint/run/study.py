"""A study: an optimiser whose every step is committed to storage before the call returns."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, final, overload

from calamint.acquire import Acquisition
from calamint.checks import check_integer, did_you_mean
from calamint.decide import Clock, Rationality, Recommendation, Settings, Value, parse_seconds
from calamint.errors import ProblemError, ResultError
from calamint.model import Model
from calamint.problem import Problem, Task
from calamint.run.ask import Request, check_lease, next_job
from calamint.run.changes import change_problem
from calamint.run.create import open_study, settings_among
from calamint.run.execute import Executor, Tasks
from calamint.run.jobs import CAUSES, Cause, Job, listed_jobs
from calamint.run.loop import LEASE, Loop
from calamint.run.progress import Observed, RunEvent, RunReport, Watcher
from calamint.run.read_table import Extra, Imported, rows_to_add
from calamint.run.store import MEMORY, Database, Store, Turn
from calamint.run.studies import check_study_name, find_study, stored_problem
from calamint.run.tables import parse_measurements, parse_numbers, parse_rows
from calamint.run.view import StudyView, time_of


@final
class Study(StudyView):
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
        given = settings_among(locals())
        check_study_name(name)
        if clock is not None and not isinstance(clock, Clock):
            raise ProblemError(f"clock is {clock!r}: write Clock() or VirtualClock().")
        wanted = Settings.of(**given)
        database = storage if isinstance(storage, Database) else Database(storage)
        row, problem, settings = open_study(database, name, problem, wanted, given, time_of(clock))
        super().__init__(database, row, problem, settings, clock)
        self._store = Store(database, row.id, settings, self.now, self._replica.lease_clock)
        self._turn = Turn(database, row.id, self._replica.lease_clock)
        self._loop: Loop | None = None

    @staticmethod
    def load(
        storage: str | Database,
        name: str | None = None,
        problem: Problem | None = None,
        clock: Clock | None = None,
        trust: bool = False,
    ) -> "Study":
        """Open a study by its name; without one, the storage must have exactly one study.

        Args:
            storage: The URL of the storage.
            name: The name of the study.
            problem: Needed if the problem has functions: opening a storage runs no code.
            clock: Where time is read from.
            trust: Import the functions that the storage names instead, which runs their modules.
        """
        database = storage if isinstance(storage, Database) else Database(storage, create=False)
        row = find_study(database, name)
        problem = stored_problem(row, trust) if problem is None else problem
        return Study(problem, database, row.name, clock=clock)

    # -- asking -------------------------------------------------------------------------------

    @overload
    def ask(
        self,
        resource: str | None = None,
        task: str | None = None,
        lease: float | None = None,
        confirm: bool = False,
        n: None = None,
    ) -> Job | None: ...

    @overload
    def ask(
        self,
        resource: str | None = None,
        task: str | None = None,
        lease: float | None = None,
        confirm: bool = False,
        *,
        n: int,
    ) -> list[Job]: ...

    def ask(
        self,
        resource: str | None = None,
        task: str | None = None,
        lease: float | None = None,
        confirm: bool = False,
        n: int | None = None,
    ) -> Job | list[Job] | None:
        """Book the next job, or the next n.

        Args:
            resource: Let tasks compete for this resource.
            task: Consider only this task.
            lease: The job is tried again after this many seconds without `renew`, or as soon as
                this process is known to be dead. Without it, the job stays booked until it is
                told, failed or cancelled.
            confirm: Confirm the recommendation first, as `Optimizer.confirm`, if it is not yet.
            n: How many jobs to book, whatever the capacity: those beyond it book no resources.

        Returns:
            The job, with its resources booked; None while nothing can start. With n, a list.
        """
        if n is None:
            return self.request(Request(resource, task, lease, confirm=confirm))
        count = check_integer(n, "n", 1)
        request = Request(resource, task, lease, confirm=confirm, beyond=True)
        return [job for _ in range(count) if (job := self.request(request)) is not None]

    def request(self, request: Request) -> Job | None:
        """The next job that a run asks for; see `Request`."""
        if request.lease is not None:
            check_lease(request.lease)
        with self._lock:
            return next_job(self._store, self._turn, self._replica, request)

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
        keep_going: bool = False,
        on: Callable[[RunEvent], object] | None = None,
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
                its jobs; those that can see this process do as soon as it is dead.
            keep_going: Go on even if a task crashes in the same way at every input.
            on: Called with a `RunEvent` when a job starts or ends, and for messages; `stop()`
                ends the run from there.

        Returns:
            What stopped the run, and how many jobs ended in it.

        Raises:
            TaskError: If a task cannot be started at all, returns what cannot be read, or crashes
                in the same way at every input; jobs that run are waited for.
        """
        if on is not None:
            watch = Observed(on, watch)
        self._loop = Loop(
            *(self, tasks, evaluations, seconds, cost, bits),
            *(confirm, executor, watch, lease, keep_going),
        )
        return self._loop.run()

    def stop(self) -> None:
        """Have a run of this study, in this process, start no more jobs."""
        if self._loop is not None:
            self._loop.is_stopped = True

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
        number, attempt, task = self._resolve(job)
        measured, failed = parse_measurements(self.problem, values, task.measures)
        duration = parse_seconds(seconds)
        used = self._replica.moved(number, params)
        waits = more and not failed and len(measured) < len(task.measures)
        again = task.failures == "retry"
        return self._store.tell(number, attempt, measured, failed, duration, again, used, waits)

    def fail(self, job: Job | int, reason: str, cause: Cause = "crashed") -> None:
        """Report that a job ended without a result.

        "crashed" or "timeout" may be the input's fault: see `Task(failures=...)`. "lost" and
        "infrastructure" are not: the job is tried again, and held for `release` if that happens
        too often in a row. One whose result was "refused", as it cannot be read, is run again.
        """
        if cause not in CAUSES:
            raise ResultError(f"cause is {cause!r}: {did_you_mean(str(cause), CAUSES)}")
        number, attempt, task = self._resolve(job)
        self._store.fail(number, attempt, str(reason), cause, task.failures == "retry")

    def release(self, job: Job | int) -> None:
        """Try a job again that is held, because its attempts were lost too often in a row."""
        self._store.release(self._resolve(job)[0])

    def _resolve(self, job: Job | int) -> tuple[int, int | None, Task]:
        try:
            return self._replica.resolve(job)  # without the lock: a decision may take its time
        except ResultError:
            return self.replica().resolve(job)

    def cancel(self, job: Job | int) -> None:
        """Cancel a job and free its resources; of one that was told in part, expect no more."""
        number, attempt, _ = self._resolve(job)
        self._store.cancel(number, attempt)

    def renew(self, jobs: Iterable[Job], lease: float) -> list[Job]:
        """Renew the leases of jobs, for `lease` seconds from now.

        Returns:
            Jobs whose lease could not be renewed: they have ended, or were given to others.
        """
        check_lease(lease)
        by_attempt = {(self._resolve(job)[0], job.attempt): job for job in listed_jobs(jobs)}
        lost = self._store.renew(list(by_attempt), lease) if by_attempt else []
        return [by_attempt[attempt] for attempt in lost]

    def reap(self, alive: Iterable[Job] = ()) -> int:
        """Release leased jobs whose lease has expired or whose owner is dead, as `ask` does by
        itself. Returns how many there were; those in `alive` are not."""
        return self._store.reap({(job.number, job.attempt) for job in alive})

    def add(self, params: Mapping[str, Any], values: Mapping[str, Value]) -> None:
        """Add existing measurements of some or all functions at one input."""
        self.add_all([(params, values)])

    def add_all(self, rows: Iterable[tuple[Mapping[str, Any], Mapping[str, Value]]]) -> None:
        """Add many existing measurements; if one is invalid, none is added."""
        self._store.add([(*row, {}) for row in parse_rows(self.problem, rows)])

    def add_table(self, table: Any, extra: Extra = "refuse", again: bool = False) -> Imported:
        """Add measurements from a CSV, Excel or JSON file, a DataFrame or a list of dicts.

        There is a column for every parameter and for the functions that were measured;
        `latency_sem` is the standard error of `latency`. If one row is invalid, none is added.

        Args:
            table: A path, a DataFrame or a list of dicts.
            extra: What to do with other columns: "refuse", "ignore" or keep them as "notes".
            again: Add rows that the study has already, as measurements that were repeated.

        Returns:
            How many rows were added, and skipped because the study had them already.
        """
        rows, report = rows_to_add(self.problem, table, extra, () if again else self.history)
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
        number, _, task = self._resolve(job)
        if values is None and params is None:
            raise ResultError("nothing to amend: give values, params or both.")
        measured = {} if values is None else parse_numbers(self.problem, values, task)
        used = self._replica.moved(number, params)
        self._store.corrections.amend(number, measured, used, str(reason))

    def complete(self, job: Job | int, values: Mapping[str, Value], more: bool = False) -> None:
        """Tell values that arrive later, of functions that were left out or failed.

        Args:
            job: What `ask` returned, or its number.
            values: As for `tell`.
            more: Others will follow.
        """
        number, _, task = self._resolve(job)
        measured = parse_numbers(self.problem, values, task)
        self._store.corrections.complete(number, measured, more, task.measures)

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

    def change(self, problem: Problem) -> list[str]:
        """Extend the problem: new tasks or resources, more capacity, other costs, wider bounds.
        Returns what changed, which is also recorded."""
        with self._lock:
            return change_problem(self._store, self.replica(), self.settings.applied(problem))

    def recommend(
        self, delta: float | None = None, kind: Literal["believed", "observed"] = "believed"
    ) -> Recommendation:
        """Recommend an input, as `Optimizer.recommend`; the answer is stored."""
        recommendation = super().recommend(delta, kind)
        self._store.save_recommendation(recommendation, kind, self._replica.sequence)
        return recommendation
