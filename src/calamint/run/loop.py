"""Running a study: as soon as a job ends, the next one is decided and started."""

import logging
import time
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, final

from calamint.checks import check_integer, shown
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
from calamint.run.budget import Budget
from calamint.run.execute import Executor, JobResult, Local, Tasks, parse_tasks
from calamint.run.jobs import Job
from calamint.run.outcomes import COUNTED, SameCrash, broken, jobs_of_others, named
from calamint.run.patience import Patience
from calamint.run.progress import Progress, RunReport, Stop, Watcher
from calamint.run.replay import Replica
from calamint.run.signals import heartbeats, interrupts
from calamint.run.spool import folder_name, jobs_folder
from calamint.run.starting import Starting
from calamint.run.takeover import adopt_running, store_spooled

if TYPE_CHECKING:
    from calamint.run.study import Study

LOG = logging.getLogger("calamint")
LOG.addHandler(logging.NullHandler())

# Seconds that a lease lasts; it is renewed three times as often.
LEASE = 30.0
# How long to wait for a job before looking at anything else.
_LOOK = 0.25


def _why_waiting(replica: Replica) -> str:
    """Why nothing can start now."""
    paused = " and ".join(f"{kind} {name}" for kind, name in sorted(replica.paused))
    if paused:
        return f"Paused: {paused}. Waiting for `calamint resume`."
    return "All that could be used is held by others: waiting for them."


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
        keep_going: bool,
    ) -> None:
        check_lease(lease)
        self.study, self.watch = study, watch
        # Virtual time passes in leaps, and nobody beats meanwhile.
        self.virtual = isinstance(study.clock, VirtualClock)
        self.lease = 1e12 if self.virtual else lease
        reserve = check_integer(confirm, "confirm", 0) * tasks_to_measure_all(study.problem)
        self.budget = Budget(evaluations, seconds, cost, bits, reserve)
        if executor is not None and not isinstance(executor, Executor):
            raise ProblemError(f"executor is {executor!r}: write cm.Local(...).")
        self.executor = executor if executor is not None else Local()
        graph = study.problem.graph
        self.functions = parse_tasks(graph.tasks, tasks, self.executor.could_start)
        replica, folder = study.replica(), jobs_folder(study.database)
        name = folder_name(study.name, replica.study)
        self.executor.prepare(self.functions, folder, name, replica.uid)
        self.starting = Starting(self.executor, self._started, self._say)
        self.running: dict[Job, float] = {}
        self.best: Recommendation | None = None
        self.last: Job | None = None
        self.stopped: Stop | None = None
        self._presses = 0
        self.is_stopped = False  # by `Study.stop`
        self._news = False
        self._done = self._failed = 0
        self._job_seconds = 0.0
        self._failure: str | None = None
        self._waited = self._exhausted = False
        self._prepared = -1  # the version of the observations
        # Whether results of earlier runs are stored; attempts in a row that this machine failed.
        self._spool_taken, self._machine_row = False, 0
        self._lost: list[Job] = []
        self._unstored: list[JobResult] = []  # results that wait for the storage
        self.patience = Patience(self._say, self.virtual)
        self._mistake: TaskError | None = None
        worked = {record.task for record in study.history if record.task is not None}
        self._same_crash = None if keep_going else SameCrash(worked)

    def run(self) -> RunReport:
        study = self.study
        self.began = study.clock.now()
        replica = study.replica()
        self._decision_seconds = replica.decision_seconds
        self.resumed = sum(replica.ended.values())
        if self.resumed:
            self._say(f"Study {study.name!r} goes on after {self.resumed} evaluations.")
        beats = nullcontext() if self.virtual else heartbeats(self.lease / 3, self._beat)
        with interrupts(self._pressed), beats:
            try:
                while self._step():
                    pass
            finally:
                self.executor.close()
                self._unstored += self.executor.wait(0.0)
                with suppress(StorageError):  # the next run stores what this one cannot
                    self._store_results()
                for job in self.running.keys() - {result.job for result in self._unstored}:
                    self._give_up(job)
            if self._mistake is not None:
                raise self._mistake
            self._recommend()
            self._look()
        assert self.stopped is not None
        return RunReport(
            self.stopped,
            self._done,
            self._failed,
            self._elapsed(),
            study.replica().decision_seconds - self._decision_seconds,
            len(study.replica().open),
            len(study.replica().held),
        )

    def _elapsed(self) -> float:
        """By a clock that cannot be set."""
        return self.study.clock.now() - self.began

    def _beat(self) -> None:
        self._lost = self.study.renew(list(self.running), self.lease)

    def _pressed(self, presses: int) -> None:
        self._presses = presses
        first = "No more jobs are started. Press Ctrl-C again to end those that run."
        self._say(first if presses == 1 else "Ending the jobs that run.")

    def _step(self) -> bool:
        """Start what can be started, then wait for something to end; False when all is over."""
        for job in self._lost:
            if job in self.running:  # somebody else has it now
                self.executor.stop(job)
        self._lost = []
        if self.patience.is_over:
            self._store_results()
        self._unstored += self.starting.try_again()
        if self.patience.is_over:
            self.patience.attempt(self._take_over)
        if self.patience.is_over and self._spool_taken and not self.starting.postponed:
            self.patience.attempt(self._fill)
        if not self.running and not self._unstored and self.stopped is not None:
            return False
        if self._presses > 1:
            if self._unstored and not self.running.keys() - {r.job for r in self._unstored}:
                self._leave_results()
                return False
            for job in list(self.running):
                if self.starting.forget(job):
                    self._give_up(job)
                self.executor.stop(job)
        for sentence in self.executor.messages():
            self._say(sentence)
        self.patience.attempt(self._recommend)
        self.patience.attempt(self._look)
        self._unstored += self.executor.wait(_LOOK)
        return True

    # -- a storage that cannot be written for a while ---------------------------------------------

    def _store_results(self) -> None:
        """Store what has ended, oldest first, until the storage cannot be written."""
        while self._unstored:
            if not self.patience.attempt(partial(self._end, self._unstored[0])):
                return
            self._unstored.pop(0)
            self.patience.written()

    def _leave_results(self) -> None:
        for result in self._unstored:
            where = f"in {result.spooled.path}, for the next run" if result.spooled else "lost"
            self._say(f"The result of job {result.job.number} could not be stored; it is {where}.")
        self.stopped = "interrupted"

    def _take_over(self) -> None:
        """What runs that are gone have left."""
        if not self._spool_taken or self.executor.has_spooled:
            for job in store_spooled(self.study, self.executor):
                self._say(f"Job {job.number} had ended before its result was stored: it is now.")
                self._news = True
        self._spool_taken = True
        for job in adopt_running(self.study, self.executor, set(self.running), self.lease):
            self.running[job] = time.monotonic()
            self._say(f"Job {job.number} of an earlier run goes on.")

    # -- jobs --------------------------------------------------------------------------------------

    def _recommend(self) -> None:
        if self._news and self.watch is not None and self.study.history:
            self.best = self.study.recommend()
            self._news = False

    def _fill(self) -> None:
        """Start jobs while there is room, and say whether that is all."""
        while self._presses == 0 and self._mistake is None and not self.is_stopped:
            replica = self.study.replica()
            if len(replica.open) > len(self.running) and self.study.reap(self.running):
                replica = self.study.replica()
            pending = replica.running
            under_way = pending & {number for number, _ in list(replica.open)}
            elapsed = self._elapsed()
            exhausted: Stop | None = "bits" if self.stopped == "bits" else None
            self.stopped = self.budget.spent(replica, under_way, elapsed) or exhausted
            if self.stopped is not None:
                return
            # Jobs that wait come first, and are counted like those that run.
            reason = self.budget.spent(replica, pending, elapsed)
            each = self._job_seconds / self._done if self._done else None
            confirm = self._exhausted or self.budget.is_reserved(replica, pending, elapsed, each)
            if self._exhausted and self.budget.reserve <= 0 and reason is None:
                reason = "bits"
            alive = {(job.number, job.attempt) for job in self.running}
            request = Request(
                *(None, None, self.lease, self.budget.bits, reason is None, confirm, alive),
                can_start=self.executor.can_start,
            )
            try:
                job = self.study.request(request)
            except ExhaustedError:
                if self.budget.reserve and not self._exhausted:
                    self._exhausted = True
                    continue
                job, reason = None, "bits"
            if job is None:
                now = replica.lease_clock.now()
                paused = any(moment > now for moment in list(replica.waiting.values()))
                later = self.executor.is_elastic and bool(replica.waiting) and not self.running
                if reason is not None and not paused and not later:
                    self.stopped = reason
                elif not self.running and not self._waited and (replica.open or replica.paused):
                    self._waited = True
                    self._say(_why_waiting(replica))
                self._prepare(replica)
                return
            if self._exhausted:
                self.budget.reserve -= 1
            self._start(job)
        self.stopped = "stopped" if self.is_stopped and self._presses == 0 else "interrupted"

    def _prepare(self, replica: Replica) -> None:
        """While jobs run, once after each result."""
        version = replica.optimizer.observations.version
        if self.running and self.stopped is None and version != self._prepared:
            self._prepared = version
            self.study.prepare()

    def _start(self, job: Job) -> None:
        if job.task not in self.functions:
            sentence = f"task {job.task!r} was added meanwhile: say in tasks what it does."
            self.study.fail(job, sentence, "refused")  # another run may know
            self._stop(sentence)
            return
        self.last = job
        LOG.info("%s", job)
        self.running[job] = time.monotonic()
        self.starting.start(job)

    def _started(self, job: Job) -> None:
        if self.watch is not None:
            self.watch.started(self._progress(), job)

    def _end(self, outcome: JobResult) -> None:
        """Store how a job ended."""
        job = outcome.job
        if job not in self.running:
            return  # given up before
        if outcome.unloadable is not None:
            self.study.fail(job, outcome.unloadable, "refused")
            self._stop(f"task {job.task!r} cannot be run: {outcome.unloadable}.")
        elif outcome.error is not None and outcome.cause is None:
            self._give_up(job)  # it was cancelled here
        else:
            self._ended(job, outcome)
        self.running.pop(job, None)
        if outcome.spooled is not None:
            self.executor.discard(outcome.spooled)

    def _ended(self, job: Job, outcome: JobResult) -> None:
        error, cause, failure = outcome.error, outcome.cause, outcome.error
        if error is None:
            values = named(outcome.values, self.study.problem.tasks[job.task].measures)
            try:
                self.study.tell(job, values, outcome.seconds)
                failure = broken(values)
            except ResultError as refused:
                error, cause = str(refused), "refused"
        if error is not None:
            failure = error
            try:
                self.study.fail(job, error, cause or "crashed")
            except ResultError:
                LOG.info("job %d had ended before", job.number)
                return
        if cause == "refused":
            what = "" if outcome.values is None else f" returned {shown(outcome.values)}"
            said = f"{error}" if str(error).endswith((".", "?")) else f"{error}."
            self._stop(f"task {job.task!r}{what}: {said} Job {job.number} waits to be run again.")
        LOG.info("job %d ended: %s", job.number, failure or outcome.values)
        nothing = failure if outcome.values is None and outcome.error is None else None
        if self._same_crash is not None and (alike := self._same_crash.seen(outcome, nothing)):
            self._stop(alike)
        if failure is not None:
            self._failure = failure
        self._machine_row = self._machine_row + 1 if cause == "infrastructure" else 0
        if cause in COUNTED and job.number not in self.study.replica().waiting:
            self._failed += failure is not None
            self._done += 1
            self._job_seconds += outcome.seconds
            self._news = True
        elif job.number in self.study.replica().held:
            if self._machine_row > self.study.settings.retries:
                self._stop(f"job {job.number} is held, as this machine cannot run it: {error}.")
            else:
                self._say(f"Job {job.number} is held until it is released: {error}.")
        if self.watch is not None:
            told = JobResult(job, outcome.values, failure, None, outcome.seconds, cause)
            self.patience.attempt(lambda: self.watch.ended(self._progress(), told))  # type: ignore[union-attr]

    def _stop(self, sentence: str) -> None:
        """Start no more jobs: what runs may end, then this is raised."""
        if self._mistake is None:
            self._mistake = TaskError(sentence)
            if self.running:
                self._say(f"{sentence} No more jobs are started.")

    def _give_up(self, job: Job) -> None:
        """A job will not end here: another run may decide otherwise."""
        self.running.pop(job, None)
        try:
            self.study.cancel(job)
        except CalamintError as error:
            LOG.info("job %d was not cancelled: %s", job.number, error)

    # -- what watchers see -------------------------------------------------------------------------

    def _progress(self) -> Progress:
        replica = self.study.replica()
        return Progress(
            self.study.name,
            dict(self.running),
            self.study.problem.resources,
            dict(replica.ended),
            self._failed,
            self._failure,
            jobs_of_others(replica, self.running),
            self.budget.evaluations,
            self.best,
            self.last,
            self._elapsed(),
            replica.decision_seconds - self._decision_seconds,
            self.resumed,
        )

    def _look(self) -> None:
        if self.watch is not None:
            self.watch.refresh(self._progress())

    def _say(self, sentence: str) -> None:
        LOG.info("%s", sentence)
        if self.watch is not None:
            self.watch.message(sentence)
