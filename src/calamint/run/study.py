"""A study: an optimiser whose every step is stored before it is answered."""

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, final

from calamint.acquire import Acquisition
from calamint.decide import (
    Clock,
    Optimizer,
    ResultError,
    Suggestion,
    VirtualClock,
)
from calamint.decide.booking import placement
from calamint.decide.results import Value, read_seconds, read_values
from calamint.decide.settings import Rationality
from calamint.model import Model
from calamint.problem import Problem, ProblemError, Task
from calamint.problem.errors import nearest
from calamint.problem.parameters import finite
from calamint.problem.spec import from_content
from calamint.run.books import Measured
from calamint.run.database import MEMORY, Database
from calamint.run.errors import ExhaustedError, StorageError
from calamint.run.executors import Executor
from calamint.run.jobs import Job, owner
from calamint.run.ledger import Ledger
from calamint.run.loop import LEASE, Loop, RunReport, Watch
from calamint.run.mirror import Mirror
from calamint.run.opening import check_study_name, find, names, only, open_study
from calamint.run.settings import Settings, allowed_changes
from calamint.run.tables import read_table
from calamint.run.views import Views


@final
class Study(Views):
    """Decides what to measure next, and stores every step.

    problem      what is asked; it must be the one that the study was created with
    storage      a URL, such as "sqlite:///nn.db"; without it, the study lives in memory
    name         several studies can share a storage
    attempts     how often a job is tried whose owner died, or whose task says failures="retry"
    pause        seconds before the second try; doubled before every further one
    clock        where time is read from

    acquisition, model, seed, initial, delta, rationality and fantasies are those of `Optimizer`.
    A study that exists goes on as it was created: settings that are given must be the same.
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
        attempts: int | None = None,
        pause: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        if not isinstance(problem, Problem):
            raise ProblemError(f"problem is {problem!r}: write cm.Problem(...).")
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
            "attempts": attempts,
            "pause": pause,
        }
        given = {key: value for key, value in options.items() if value is not None}
        self.name = name
        self.clock = clock if clock is not None else Clock()
        self.database = storage if isinstance(storage, Database) else Database(storage)
        wanted = Settings(**given)  # type: ignore[arg-type]
        wanted.optimizer(problem, self.clock)  # refuses what is wrong before anything is stored
        wanted.policy()
        found, self.settings = open_study(self.database, name, problem, wanted, given, self.now())
        self._lock = threading.RLock()  # threads may share a study
        self._ledger = Ledger(self.database, found.id, self.settings.policy(), self.now)
        self._mirror = Mirror(self.database, found.id, problem, self._optimizer, self.now)
        self._mirror.revision = found.revision
        self._sync()
        if isinstance(self.clock, VirtualClock):
            self.clock.move(self._mirror.last)

    @staticmethod
    def load(
        storage: str | Database,
        name: str | None = None,
        problem: Problem | None = None,
        clock: Clock | None = None,
    ) -> "Study":
        """A study that exists, by its name, or the only one of the storage.

        problem  needed only if it has functions that cannot be imported
        """
        database = storage if isinstance(storage, Database) else Database(storage, create=False)
        name = only(database) if name is None else check_study_name(name)
        found = find(database, name)
        if found is None:
            others = names(database)
            close = nearest(name, others) if others else "it has none."
            raise StorageError(f"storage {database.where} has no study {name!r}: {close}")
        if problem is None:
            try:
                problem = from_content(found.problem)
            except ProblemError as error:
                raise ProblemError(
                    f"study {name!r} has functions that cannot be imported ({error}):"
                    " write cm.Study.load(..., problem=problem)."
                ) from error
        return Study(problem, database, name, clock=clock)

    def now(self) -> float:
        """Seconds since 1970, or on the virtual clock."""
        return self.clock.now() if isinstance(self.clock, VirtualClock) else time.time()

    @property
    def folder(self) -> str:
        """The name of the folder for the files of its jobs; no two studies share it."""
        safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in self.name)
        return safe if safe == self.name else f"{safe}~{self._ledger.study}"

    @property
    def problem(self) -> Problem:
        return self._mirror.problem

    # -- asking -------------------------------------------------------------------------------

    def ask(
        self, resource: str | None = None, task: str | None = None, lease: float | None = None
    ) -> Job | None:
        """The next job, with its resources booked; None while nothing can start.

        lease  seconds after which the job is tried again unless `beat` was called; without it,
               the job stays booked until it is told, failed or cancelled
        """
        return self._ask(resource, task, lease)

    def ask_within(self, lease: float, bits: float | None, decide: bool) -> Job | None:
        """The next job of a run.

        bits    nothing that tells less is booked: `ExhaustedError` is raised
        decide  without it, only jobs that wait are started
        """
        return self._ask(None, None, lease, bits, decide)

    def _ask(
        self,
        resource: str | None,
        task: str | None,
        lease: float | None,
        bits: float | None = None,
        decide: bool = True,
    ) -> Job | None:
        if lease is not None:
            _check_lease(lease)
        with self._lock:
            return self._decide(resource, task, lease, bits, decide)

    def _decide(
        self,
        resource: str | None,
        task: str | None,
        lease: float | None,
        bits: float | None,
        decide: bool,
    ) -> Job | None:
        while True:
            self._sync()
            mirror = self._mirror
            if mirror.open and self._ledger.reap():
                self._sync()
            free = mirror.free
            places = mirror.optimizer.places(free, resource, task)
            job = self._start_waiting(free, resource, task, lease)
            if job is not None or not places or not decide:
                return job
            number, before = len(mirror.jobs), mirror.optimizer.memory
            suggestion, decision = mirror.optimizer.propose(places, number)
            expected = sum(suggestion.bits.values())
            if bits is not None and suggestion.bits and expected < bits:
                mirror.optimizer.memory = before
                raise ExhaustedError(f"the best job is expected to tell {expected:.3g} bits")
            memory = mirror.memory(number).to_json() if decision.kind == "full" else None
            contested = free if task is None else None
            booked = False
            try:
                booked = self._ledger.book(
                    suggestion, decision, mirror.revision, contested, owner(), lease, memory
                )
            finally:
                if not booked:  # as if it had never been decided
                    mirror.optimizer.memory = before
            if booked:
                mirror.decided(number)
                return _job(suggestion, 1, suggestion.resources)
            # Others booked, or changed the problem, meanwhile: decide again, knowing that.

    def ask_all(self, lease: float | None = None) -> list[Job]:
        """Jobs for all free capacity."""
        jobs = []
        while (job := self.ask(lease=lease)) is not None:
            jobs.append(job)
        return jobs

    def _start_waiting(
        self,
        free: Mapping[str, int],
        resource: str | None,
        task: str | None,
        lease: float | None,
    ) -> Job | None:
        """A job that was enqueued, or is to be tried again, if its time has come."""
        mirror = self._mirror
        for number, not_before in sorted(mirror.waiting.items()):
            name = mirror.jobs[number].task
            if not_before > self.now() or (task is not None and name != task):
                continue
            place = placement(self.problem.graph, name, free, resource)
            if place is None:
                continue
            attempt = self._ledger.start(number, place, mirror.revision, owner(), lease)
            if attempt is not None:
                return _job(mirror.jobs[number], attempt, place)
        return None

    def enqueue(self, task: str, params: Mapping[str, Any]) -> int:
        """A job that you want tried: it comes before all others. Returns its number."""
        if not isinstance(task, str) or task not in self.problem.tasks:
            raise ProblemError(f"task is {task!r}: {nearest(str(task), self.problem.tasks)}")
        return self._ledger.enqueue(task, self.problem.space.accept(params))

    def run(
        self,
        tasks: object = None,
        evaluations: int | None = None,
        seconds: float | None = None,
        cost: float | None = None,
        bits: float | None = None,
        executor: Executor | None = None,
        watch: Watch | None = None,
        lease: float = LEASE,
    ) -> RunReport:
        """Decide, run and tell jobs until a budget is used up.

        tasks        what each task does: a dict of functions of the parameters, or of commands; a
                     task that is left out runs the command of its spec
        evaluations  until the study has so many finished jobs in all, those of earlier runs
                     included: the same call goes on where a killed one stopped
        seconds      no more jobs are started after so long
        cost         until the jobs of the study are expected to have cost so much in all
        bits         until no measurement is expected to tell so many
        executor     `Local(timeout=..., folder=...)`, each job in a process of its own; or
                     `Simulated(durations, clock)`
        watch        something that shows what happens, such as `cm.Live()`

        Ctrl-C stops asking and lets running jobs finish; pressed again, it cancels them. The study
        can be resumed after either, and after a crash.
        """
        return Loop(self, tasks, evaluations, seconds, cost, bits, executor, watch, lease).run()

    # -- telling ------------------------------------------------------------------------------

    def tell(
        self, job: Job | int, values: Mapping[str, Value], seconds: float | None = None
    ) -> bool:
        """What a job measured: a number for each function, or (value, standard error).

        Functions that are left out were not measured. One that is NaN, infinite or None failed:
        the others are kept, and the job counts as failed. `seconds` is how long it took, by
        default the time since it was asked for.

        False if the job had ended before, by another attempt or because it was cancelled: then the
        result is kept, and not used.
        """
        number, attempt, task = self._asked(job)
        measured, broken = self._read(values, task.measures)
        took = read_seconds(seconds)
        return self._ledger.tell(number, attempt, measured, broken, took, task.failures == "retry")

    def fail(self, job: Job | int, reason: str) -> None:
        """A job ended without a result. What that means is up to its task: `Task(failures=...)`."""
        number, attempt, task = self._asked(job)
        self._ledger.fail(number, attempt, str(reason), task.failures == "retry")

    def _asked(self, job: Job | int) -> tuple[int, int | None, Task]:
        """The number, the attempt (or None for the latest) and the task of a job of this study."""
        if isinstance(job, Job):
            number, attempt = job.number, job.attempt
        elif isinstance(job, int) and not isinstance(job, bool):
            number, attempt = job, None
        else:
            raise ResultError(f"job is {job!r}: write what ask() returned, or its number.")
        if number not in self._mirror.jobs:
            self._sync()
        made = self._mirror.jobs.get(number)
        if made is None or (
            isinstance(job, Job) and (job.task, job.params) != (made.task, made.params)
        ):
            raise ResultError(f"job {number!r} was not asked for here: nothing was changed.")
        return number, attempt, self.problem.tasks[made.task]

    def cancel(self, job: Job | int) -> None:
        """A job will not be run; its resources are free again."""
        self._ledger.cancel(self._asked(job)[0])

    def beat(self, jobs: Iterable[Job], lease: float) -> list[Job]:
        """Renew leases; returns jobs that were given to others, or have ended, meanwhile."""
        _check_lease(lease)
        if not isinstance(jobs, Iterable) or not all(isinstance(job, Job) for job in (*jobs,)):
            raise ResultError(f"jobs is {jobs!r}: write a list of what ask() returned.")
        held = {(job.number, job.attempt): job for job in jobs}
        return [held[key] for key in self._ledger.beat(list(held), lease)] if held else []

    def add(self, params: Mapping[str, Any], values: Mapping[str, Value]) -> None:
        """Measurements from elsewhere: any of the functions, at any input."""
        self.add_all([(params, values)])

    def add_all(self, rows: Iterable[tuple[Mapping[str, Any], Mapping[str, Value]]]) -> None:
        """Many measurements from elsewhere: all of them, or, if one is refused, none."""
        try:
            given = [(params, values) for params, values in rows]
        except (TypeError, ValueError):
            raise ResultError("rows: write a list of pairs, parameters and values.") from None
        read = []
        for index, (params, values) in enumerate(given, start=1):
            where = f"row {index}: " if len(given) > 1 else ""
            try:
                accepted = self.problem.space.accept(params)
                measured, broken = self._read(values, self.problem.measured)
            except ProblemError as error:
                raise type(error)(f"{where}{error}") from None
            if broken:
                name = next(iter(broken))
                raise ResultError(
                    f"{where}values[{name!r}] is {broken[name]}: write a number, or leave it out."
                )
            read.append((accepted, measured))
        self._ledger.add(read)

    def add_table(self, table: Any) -> int:
        """Measurements from a CSV file, a DataFrame or a list of dicts, all of them or none.

        A column for every parameter and for the functions that were measured; `latency_error` is
        the standard error of `latency`. Returns how many rows there were.
        """
        rows = read_table(self.problem, table)
        self.add_all(rows)
        return len(rows)

    def _read(
        self, values: Mapping[str, Value], expected: Iterable[str]
    ) -> tuple[Measured, dict[str, str]]:
        """Values and standard errors as they are stored, and what is not a number."""
        read, broken = read_values(values, expected, self.problem.judged)
        measured = {}
        for name, (value, _) in read.items():
            given = values[name]
            error = given[1] if isinstance(given, tuple | list) else None
            measured[name] = (value, None if error is None else float(error))
        return measured, {name: repr(values[name]) for name in broken}

    # -- changing -----------------------------------------------------------------------------

    def change(self, problem: Problem) -> list[str]:
        """Go on with a problem that has more: tasks, resources, capacity, other costs, wider
        bounds. Returns what changed, which is also recorded."""
        if not isinstance(problem, Problem):
            raise ProblemError(f"problem is {problem!r}: write cm.Problem(...).")
        self._sync()
        changed = allowed_changes(self.problem, problem)
        if not changed:
            return []
        # All that has happened must make sense under the new problem, before anything is changed.
        trial = Mirror(self.database, self._ledger.study, problem, self._optimizer, self.now)
        trial.revision = self._mirror.revision
        trial.sync()
        revision = self._ledger.change(problem, self._mirror.revision, changed)
        if revision is None:
            raise StorageError(
                f"study {self.name!r} was changed meanwhile: open it again, and compare."
            )
        self._mirror.restart(problem, revision)
        return changed

    # -- inside -------------------------------------------------------------------------------

    def _optimizer(self, problem: Problem) -> Optimizer:
        return self.settings.optimizer(problem, self.clock)

    def _sync(self) -> None:
        """See what has happened, and the problem as it is now."""
        with self._lock:
            while (revision := self._mirror.sync()) != self._mirror.revision:
                content = self._ledger.head().problem
                self._mirror.restart(self._changed(content), revision)

    def _changed(self, content: Mapping[str, Any]) -> Problem:
        """The problem as another process changed it."""
        try:
            return from_content(content)
        except ProblemError as error:
            raise StorageError(
                f"study {self.name!r} was changed by another process, and has functions that cannot"
                f" be imported ({error}): open it again with the problem that it has now."
            ) from error


def _check_lease(lease: object) -> None:
    if finite(lease) is None:
        raise ProblemError(f"lease is {lease!r}: write a number of seconds.")


def _job(made: Suggestion, attempt: int, resources: tuple[str, ...]) -> Job:
    booked = replace(made, resources=resources)
    return Job(made.number, made.task, dict(made.params), resources, attempt, suggestion=booked)
