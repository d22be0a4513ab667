"""A study: an optimiser whose every step is committed to storage before the call returns."""

from collections.abc import Callable
from typing import Literal, final, overload

from calamint.acquire import Acquisition
from calamint.checks import check_integer
from calamint.decide import Clock, Rationality, Recommendation, Settings
from calamint.errors import ProblemError
from calamint.model import Model
from calamint.problem import Problem
from calamint.run.ask import Request, check_lease, next_job
from calamint.run.create import open_study, settings_among
from calamint.run.edit import StudyEditor
from calamint.run.execute import Executor, Tasks
from calamint.run.jobs import Job
from calamint.run.loop import LEASE, Loop
from calamint.run.progress import Observed, RunEvent, RunReport, Watcher
from calamint.run.store import MEMORY, Database, Turn
from calamint.run.studies import check_study_name, find_study, stored_problem
from calamint.run.view import time_of


@final
class Study(StudyEditor):
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

    def prepare(self) -> None:
        """Do now, while jobs run, what the next `ask` need not do then; runs do it by themselves.
        It has an effect if the study was created with `rationality="overlap"`."""
        with self._lock:
            self.replica().optimizer.prepare()

    def ask_all(self, lease: float | None = None) -> list[Job]:
        """Jobs for all free capacity."""
        return list(iter(lambda: self.ask(lease=lease), None))

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

    def recommend(
        self, delta: float | None = None, kind: Literal["believed", "observed"] = "believed"
    ) -> Recommendation:
        """Recommend an input, as `Optimizer.recommend`; the answer is stored."""
        recommendation = super().recommend(delta, kind)
        self._store.save_recommendation(recommendation, kind, self._replica.sequence)
        return recommendation
