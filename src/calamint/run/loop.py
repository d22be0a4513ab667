"""Running a study: as soon as a job ends, the next one is decided and started."""

import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from calamint.checks import check_integer, finite
from calamint.decide import Recommendation, VirtualClock, tasks_to_measure_all
from calamint.errors import (
    CalamintError,
    ExhaustedError,
    ProblemError,
    ResultError,
    StorageError,
    TaskError,
)
from calamint.run.ask import Request, check_lease
from calamint.run.execute import Executor, JobResult, Local, Tasks, parse_tasks
from calamint.run.jobs import Job
from calamint.run.progress import Progress, RunReport, Stop, Watcher
from calamint.run.replay import Replica

if TYPE_CHECKING:
    from calamint.run.study import Study

LOG = logging.getLogger("calamint")
LOG.addHandler(logging.NullHandler())

# Seconds that a lease lasts; it is renewed three times as often.
LEASE = 30.0
# How long to wait for a job before looking at anything else.
_LOOK = 0.25


@final
class Loop:
    """One run of a study; see `Study.run`."""

    def __init__(
        self,
        study: "Study",
        tasks: Tasks,
        evaluations: int | None,
        seconds: float | None,
        cost: float | None,
        bits: float | None,
        confirm: int,
        executor: Executor | None,
        watch: Watcher | None,
        lease: float,
    ) -> None:
        check_lease(lease)
        self.study, self.watch = study, watch
        # Virtual time passes in leaps, and nobody beats meanwhile.
        self.lease = 1e12 if isinstance(study.clock, VirtualClock) else lease
        self.evaluations = (
            None if evaluations is None else check_integer(evaluations, "evaluations", 1)
        )
        self.limits = {
            name: _positive(value, name)
            for name, value in (("seconds", seconds), ("cost", cost), ("bits", bits))
        }
        if self.evaluations is None and all(value is None for value in self.limits.values()):
            raise ProblemError(
                "no budget is given: write evaluations=, seconds=, cost= or bits=, or several."
            )
        # Jobs that are kept for confirming the recommendation.
        self.reserve = check_integer(confirm, "confirm", 0) * tasks_to_measure_all(study.problem)
        if executor is not None and not isinstance(executor, Executor):
            raise ProblemError(f"executor is {executor!r}: write cm.Local(...).")
        self.executor = executor if executor is not None else Local()
        self.functions = parse_tasks(study.problem.tasks, tasks)
        path = study.database.path
        folder = None if path is None else Path(f"{path}.jobs")
        self.executor.prepare(self.functions, folder, folder_name(study))
        self.running: dict[Job, float] = {}
        self.best: Recommendation | None = None
        self.last: Job | None = None
        self.stopped: Stop | None = None
        self._presses = 0
        self._news = False
        self._done = self._failed = 0
        self._job_seconds = 0.0
        self._failure: str | None = None
        self._waited = False
        self._exhausted = False
        self._lost: list[Job] = []

    def run(self) -> RunReport:
        study = self.study
        self.began = study.now()
        replica = study.replica()
        self._decision_seconds = replica.decision_seconds
        self.resumed = sum(replica.ended.values())
        if self.resumed:
            self._say(f"Study {study.name!r} goes on after {self.resumed} evaluations.")
        with self._interrupts(), self._heartbeats():
            try:
                while self._step():
                    pass
                self._recommend()
                self._look()
            finally:
                self.executor.close()
                for job in list(self.running):
                    self._give_up(job)
        assert self.stopped is not None
        return RunReport(
            self.stopped,
            self._done,
            self._failed,
            study.now() - self.began,
            study.replica().decision_seconds - self._decision_seconds,
            len(study.replica().open),
        )

    def _step(self) -> bool:
        """Start what can be started, then wait for something to end; False when all is over."""
        for job in self._lost:
            if job in self.running:  # somebody else has it now
                self.executor.stop(job)
        self._lost = []
        self._fill()
        if not self.running and self.stopped is not None:
            return False
        if self._presses > 1:
            for job in list(self.running):
                self.executor.stop(job)
        self._recommend()
        self._look()
        for outcome in self.executor.wait(_LOOK):
            self._end(outcome)
        return True

    def _recommend(self) -> None:
        if self._news and self.watch is not None and self.study.history:
            self._news = False
            self.best = self.study.recommend()

    def _fill(self) -> None:
        """Start jobs while there is room, and say whether that is all."""
        while self._presses == 0:
            replica = self.study.replica()
            if len(replica.open) > len(self.running) and self.study.reap():
                replica = self.study.replica()
            pending = {job.number for job in replica.optimizer.pending}
            self.stopped = self._spent(
                replica, pending & {number for number, _ in list(replica.open)}
            )
            if self.stopped is not None:
                return
            # Jobs that wait come first, and are counted like those that run.
            reason = self._spent(replica, pending)
            bits = self.limits["bits"]
            confirm = self._exhausted or self._is_reserved(replica, pending)
            if self._exhausted and self.reserve <= 0 and reason is None:
                reason = "bits"
            request = Request(None, None, self.lease, bits, reason is None, confirm)
            try:
                job = self.study.request(request)
            except ExhaustedError:
                if self.reserve and not self._exhausted:
                    self._exhausted = True
                    continue
                job, reason = None, "bits"
            if job is None:
                paused = any(moment > self.study.now() for moment in list(replica.waiting.values()))
                if reason is not None and not paused:
                    self.stopped = reason
                elif not self.running and replica.open and not self._waited:
                    self._waited = True
                    self._say("All that could be used is held by others: waiting for them.")
                return
            if self._exhausted:
                self.reserve -= 1
            self._start(job)
        self.stopped = "interrupted"

    def _is_reserved(self, replica: Replica, pending: Collection[int]) -> bool:
        """Whether what is left of any budget is kept for confirming the recommendation."""
        ended, reserve = sum(replica.ended.values()), self.reserve
        if not reserve or not ended:
            return False
        if self.evaluations is not None and self.evaluations - ended - len(pending) <= reserve:
            return True
        cost, seconds = self.limits["cost"], self.limits["seconds"]
        if cost is not None:
            under_way = sum(replica.jobs[number].cost for number in pending)
            if cost - replica.spent - under_way <= reserve * replica.spent / ended:
                return True
        if seconds is None or not self._done:
            return False
        # They run one after another, however many run at once before.
        left = seconds - (self.study.now() - self.began)
        return left <= reserve * self._job_seconds / self._done

    def _start(self, job: Job) -> None:
        if job.task not in self.functions:
            self.study.cancel(job)
            raise TaskError(f"task {job.task!r} was added meanwhile: say in tasks what it does.")
        self.last = job
        LOG.info("%s", job)
        self.running[job] = time.monotonic()
        self.executor.start(job)
        if self.watch is not None:
            self.watch.started(self._progress(), job)

    def _spent(self, replica: Replica, under_way: Collection[int]) -> Stop | None:
        """Which budget is used up by what has ended and by the jobs under way."""
        made = sum(replica.ended.values()) + len(under_way)
        if self.evaluations is not None and made >= self.evaluations:
            return "evaluations"
        most = self.limits["seconds"]
        if most is not None and self.study.now() - self.began >= most:
            return "seconds"
        most = self.limits["cost"]
        cost = sum(replica.jobs[number].cost for number in under_way)
        if most is not None and replica.spent + cost >= most:
            return "cost"
        return "bits" if self.stopped == "bits" else None

    def _end(self, outcome: JobResult) -> None:
        job = outcome.job
        if self.running.pop(job, None) is None:
            return  # given up before
        if outcome.unloadable is not None:
            self._patiently(lambda: self.study.cancel(job))
            raise TaskError(f"task {job.task!r} cannot be run: {outcome.unloadable}.")
        if self._presses > 1 and outcome.error is not None:
            self._give_up(job)
            return
        error = outcome.error
        failure = error
        if error is None:
            try:
                values = _named(outcome.values, self.study.problem.tasks[job.task].measures)
                self._patiently(lambda: self.study.tell(job, values, outcome.seconds))
                failure = _broken(values)
            except ResultError as refused:
                failure = error = f"its result was refused: {refused}"
        if error is not None:
            try:
                self._patiently(lambda: self.study.fail(job, error))
            except ResultError:
                LOG.info("job %d had ended before", job.number)
        if failure is not None:
            self._failed += 1
            self._failure = failure
        LOG.info("job %d ended: %s", job.number, failure or outcome.values)
        self._done += 1
        self._job_seconds += outcome.seconds
        self._news = True
        if self.watch is not None:
            self.watch.ended(
                self._progress(), JobResult(job, outcome.values, failure, None, outcome.seconds)
            )

    def _give_up(self, job: Job) -> None:
        """A job will not end here: another run may decide otherwise."""
        self.running.pop(job, None)
        try:
            self.study.cancel(job)
        except CalamintError as error:
            LOG.info("job %d was not cancelled: %s", job.number, error)

    def _patiently(self, write: Callable[[], object]) -> None:
        """A result that cost hours is not given up because the disk is full for a moment."""
        for pause in (0.5, 1.0, 2.0, 4.0):
            try:
                write()
                return
            except StorageError as error:
                self._say(f"{error} Trying again in {pause:g} s.")
                time.sleep(pause)
        write()

    def _progress(self) -> Progress:
        replica = self.study.replica()
        seconds = self.study.now() - self.began
        return Progress(
            self.study.name,
            dict(self.running),
            self.study.problem.resources,
            dict(replica.ended),
            self._failed,
            self._failure,
            self._others(replica),
            self.evaluations,
            self.best,
            self.last,
            seconds,
            replica.decision_seconds - self._decision_seconds,
            self.resumed,
        )

    def _others(self, replica: Replica) -> dict[str, list[str]]:
        """What other processes run on each resource."""
        own = {(job.number, job.attempt) for job in self.running}
        found: dict[str, list[str]] = {}
        for (number, attempt), resources in list(replica.open.items()):
            if (number, attempt) not in own:
                for resource in resources:
                    found.setdefault(resource, []).append(f"{replica.jobs[number].task} {number}")
        return found

    def _look(self) -> None:
        if self.watch is not None:
            self.watch.refresh(self._progress())

    def _say(self, sentence: str) -> None:
        LOG.info("%s", sentence)
        if self.watch is not None:
            self.watch.message(sentence)

    @contextmanager
    def _interrupts(self) -> Iterator[None]:
        """The first Ctrl-C lets running jobs end, the second ends them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def pressed(number: int, frame: object) -> None:  # noqa: ARG001
            self._presses += 1
            if self._presses == 1:
                self._say("No more jobs are started. Press Ctrl-C again to end those that run.")
            else:
                self._say("Ending the jobs that run.")
                signal.signal(signal.SIGINT, before)  # a third one ends everything

        before = signal.signal(signal.SIGINT, pressed)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def _heartbeats(self) -> Iterator[None]:
        """Renew the leases of running jobs, also while a decision is being made."""
        if isinstance(self.study.clock, VirtualClock):
            yield
            return
        over = threading.Event()

        def beat() -> None:
            while not over.wait(self.lease / 3):
                try:
                    self._lost = self.study.renew(list(self.running), self.lease)
                except StorageError as error:
                    LOG.warning("a heartbeat failed: %s", error)

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def folder_name(study: "Study") -> str:
    """Of the folder for the files of a study's jobs; no two studies share it."""
    safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in study.name)
    return safe if safe == study.name else f"{safe}~{study.replica().study}"


def _positive(value: object, name: str) -> float | None:
    number = finite(value)
    if value is not None and (number is None or number <= 0):
        raise ProblemError(f"{name} is {value!r}: write a positive number.")
    return number if value is not None else None


def _named(values: Any, measures: tuple[str, ...]) -> Any:
    """A plain number is the value of the only function."""
    if not isinstance(values, Mapping) and len(measures) == 1:
        return {measures[0]: values}
    return values


def _broken(values: Mapping[str, Any]) -> str | None:
    """Why a result counts as a failure, though it was told."""
    for name, value in values.items():
        number = value[0] if isinstance(value, list | tuple) and value else value
        if number is None or (isinstance(number, float) and not math.isfinite(number)):
            return f"{name} is {number}"
    return None
