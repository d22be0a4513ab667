"""Run jobs on the workers of a Dask cluster.

A job is decided when a worker can take it, and is sent to that worker: nothing queues inside Dask.
What Dask does not do is done here and in `remote`: an attempt starts once; results outlive the
client that waits for them; and a job whose worker is gone is lost, not started elsewhere.
"""

import queue
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from calamint.run.execute import remote
from calamint.run.execute.base import (
    Executor,
    JobResult,
    SpooledFile,
    SpooledResult,
    TaskFunction,
    check_folder,
    check_timeout,
    pickled,
    timeout_of,
)
from calamint.run.execute.cluster import AGAIN, ANSWER, JUST_NOW, LOOK, Cluster, Worker, words_of
from calamint.run.execute.command import Command
from calamint.run.execute.machine import Machine
from calamint.run.jobs import Job

_Key = tuple[int, int]  # a job and its attempt

# Seconds after which jobs on a cluster that cannot be reached are given up.
_PATIENCE = 600.0


@final
@dataclass
class _Sent:
    """A job that a worker has, by its address and the id of its process; if it has no future, the
    worker is asked about it."""

    job: Job
    address: str
    worker: str
    future: Any = None
    began: float = field(default_factory=time.monotonic)


@final
class Dask(Executor):
    """Runs jobs on the workers of a Dask cluster.

    A worker offers what it declares (`dask worker --resources "gpu=1"`), by the names of the
    problem's resources; one that declares nothing takes as many jobs as it has threads. Jobs run in
    processes of their own, as with `Local`. Workers need what the tasks import, and Calamint.

    Args:
        cluster: The address of a scheduler, such as "tcp://scheduler:8786"; a cluster, such as
            `distributed.LocalCluster()` or `dask_jobqueue.SLURMCluster(...)`; or a client.
        timeout: The time limit of a job in seconds, or a dict of limits by task; None for no limit.
        folder: Where the output of jobs is kept, on the workers' machines; by default as with
            `Local`. It need not be a shared file system.
    """

    is_elastic = True

    def __init__(
        self,
        cluster: Any,
        timeout: float | Mapping[str, float] | None = None,
        folder: str | Path | None = None,
    ) -> None:
        self.cluster = Cluster(cluster)
        self.timeout, self._folder = check_timeout(timeout), check_folder(folder)

    def prepare(
        self,
        functions: Mapping[str, TaskFunction | Command],
        folder: Path | None,
        name: str,
        study: str,
    ) -> None:
        super().prepare(functions, folder, name, study)
        check_timeout(self.timeout, functions)
        self._work = pickled(functions)
        where = self._folder or folder or Path(tempfile.gettempdir(), f"calamint-{study}")
        here = str(Path.cwd())
        import_path = tuple(each or here for each in sys.path)
        self._site = remote.Site(study, str(where.absolute() / name), import_path, here)
        self._sent: dict[_Key, _Sent] = {}
        self._over: queue.SimpleQueue[tuple[_Key, Any]] = queue.SimpleQueue()
        self._results: list[JobResult] = []
        self._strangers: dict[_Key, str] = {}
        self._asked, self._is_closed = -AGAIN, False
        self.cluster.connect()

    # -- sending -----------------------------------------------------------------------------------

    def can_start(self, resources: tuple[str, ...]) -> bool:
        self._look(JUST_NOW)
        self.cluster.say_if_unoffered(resources)
        # What earlier runs have left may be what would be started.
        return not self.has_spooled and self._place(resources) is not None

    def _place(self, resources: tuple[str, ...]) -> str | None:
        """The worker with most room for a job; of those alike, the one that ends last."""
        here: dict[str, list[_Sent]] = {}
        for sent in self._sent.values():
            here.setdefault(sent.address, []).append(sent)
        strangers = Counter(self._strangers.values())
        best = max(
            (
                (
                    _room(worker, here.get(address, []), resources) - strangers[address],
                    worker.ends or float("inf"),
                    address,
                )
                for address, worker in self.cluster.workers.items()
            ),
            default=(0.0, 0.0, ""),
        )
        return best[-1] if best[0] >= 1 else None

    def start(self, job: Job) -> None:
        self._look(0.0)  # others may have sent jobs while this one was decided
        address = self._place(job.resources)
        if address is None:
            raise OSError("no worker of the Dask cluster can take it")
        key, worker = (job.number, job.attempt), self.cluster.workers[address].id
        limit = timeout_of(self.timeout, job.task)
        order = remote.Order(worker, self._site, job, self._work[job.task], limit)
        future = self.cluster.submit(order, address, job.resources)
        self._sent[key] = _Sent(job, address, worker, future)
        future.add_done_callback(lambda over: self._over.put((key, over)))

    def stop(self, job: Job) -> None:
        key = job.number, job.attempt
        if key not in self._sent:
            return
        try:
            address = self._sent[key].address
            self.cluster.broadcast(remote.stop, self._site, *key, workers=[address])
        except OSError:  # its worker is gone, or it will be told when it asks
            self._end(key, JobResult(job, error="it was cancelled"))

    # -- how jobs end ------------------------------------------------------------------------------

    def wait(self, seconds: float) -> list[JobResult]:
        with suppress(queue.Empty):
            self._take(*self._over.get(timeout=0.0 if self._results else max(seconds, 0.0)))
            while True:
                self._take(*self._over.get_nowait())
        if not self._is_closed:
            self._look()
        results, self._results = self._results, []
        return results

    def _take(self, key: _Key, future: Any) -> None:
        """A future is over: its job has ended, or Dask has lost sight of it."""
        sent = self._sent.get(key)
        if sent is None or sent.future is not future:
            return
        if future.status == "finished":
            with suppress(OSError):
                self._end(key, self.cluster.result(future))
                return
        if future.status == "error":
            error = future.exception()
            if isinstance(error, ImportError | AttributeError):
                words = f"{words_of(error)} on {sent.address}"
                self._end(key, JobResult(sent.job, unloadable=words))
                return
        sent.future = None

    def _look(self, age: float = LOOK) -> None:
        """See what has become of jobs of which nothing is heard."""
        if not self.cluster.look(age):
            down = self.cluster.down
            if down is not None and time.monotonic() - down > _PATIENCE:
                for key in list(self._sent):
                    self._lose(key, "its cluster cannot be reached")
            return
        workers = self.cluster.workers
        gone = {
            key
            for key, sent in self._sent.items()
            if sent.address not in workers or workers[sent.address].id != sent.worker
        }
        silent = {key for key, sent in self._sent.items() if sent.future is None} - gone
        due = time.monotonic() - self._asked > AGAIN and (silent or self._strangers)
        if not gone and not due:
            return
        self._asked = time.monotonic()
        # What one that is gone has finished may be in a file that another sees.
        asked = {*workers} if gone else {self._sent[key].address for key in silent}
        asked |= workers.keys() & set(self._strangers.values())
        try:
            spooled, running = self._collect(asked)
        except OSError:
            return
        known = len(self._strangers)
        self._strangers = {k: place for k, place in self._strangers.items() if k in running}
        self.has_spooled |= len(self._strangers) < known
        for key in [*gone, *silent]:
            sent = self._sent[key]
            if key in spooled:
                found = spooled[key]
                values, error, cause = found.values, found.error, found.cause
                self._end(key, JobResult(sent.job, values, error, cause=cause, spooled=found.file))
            elif key in gone:
                self._lose(key, self._what_became_of(sent))
            elif key not in running:
                with suppress(OSError):  # should Dask still send it there, it does not begin
                    self.cluster.broadcast(remote.stop, self._site, *key, workers=[sent.address])
                self._lose(key, f"Dask did not start it on {sent.address}")

    def _collect(self, workers: Iterable[str]) -> tuple[dict[_Key, SpooledResult], dict[_Key, str]]:
        """Results in files, and the addresses of workers of jobs that run.

        Raises:
            OSError: If the workers cannot be reached.
        """
        own = Machine(Path(self._site.folder), self._site.study).spooled()
        answers = self.cluster.broadcast(remote.collect, self._site, workers=workers)
        running: dict[_Key, str] = {}
        spooled = {(each.job, each.attempt): each for each in own}
        for address, answer in answers.items():
            if isinstance(answer, Exception):
                self.cluster.does_not_answer(address, answer)
                running |= dict.fromkeys(self._known_at(address), address)
                continue
            spooled |= {(each.job, each.attempt): each for each in answer[0]}
            running |= dict.fromkeys(answer[1], address)
        return {key: each for key, each in spooled.items() if key not in running}, running

    def _known_at(self, address: str) -> list[_Key]:
        """Jobs that a worker has, as far as is known."""
        worker = self.cluster.workers.get(address)
        here = [key for key, place in self._strangers.items() if place == address]
        if worker is not None:
            sent = self._sent.items()
            here += [k for k, s in sent if (s.address, s.worker) == (address, worker.id)]
        return here

    def _what_became_of(self, sent: _Sent) -> str:
        """Why a job is lost."""
        ran = time.monotonic() - sent.began
        worker = self.cluster.before.get(sent.address)
        ends = None if worker is None else worker.ends
        if worker is None or ends is None or time.monotonic() < ends - ANSWER:
            return f"its worker {sent.address} is gone after {ran:.0f} s"
        lifetime = (worker.about and worker.about.lifetime) or 0.0
        return (
            f"its worker ended after its lifetime of {lifetime:.0f} s, when the job had run for"
            f" {ran:.0f} s: ask for a longer wall-time, or make the job shorter"
        )

    def _lose(self, key: _Key, words: str) -> None:
        self._end(key, JobResult(self._sent[key].job, error=words, cause="lost"))

    def _end(self, key: _Key, result: JobResult) -> None:
        self._results.append(result)
        sent = self._sent.pop(key)
        if sent.future is None:
            return
        with suppress(Exception):
            sent.future.release()
        self.cluster.freed(sent.address, sent.future.key, sent.job.resources)

    # -- earlier runs ------------------------------------------------------------------------------

    def spooled(self) -> list[SpooledResult]:
        self.has_spooled = not self.cluster.look()
        try:
            spooled, running = self._collect(self.cluster.workers)
        except OSError:
            self.has_spooled = True
            return []
        self._strangers = {key: running[key] for key in running.keys() - self._sent.keys()}
        return [each for key, each in spooled.items() if key not in self._sent]

    def still_running(self, jobs: Iterable[Job]) -> list[Job]:
        return [job for job in jobs if (job.number, job.attempt) in self._strangers]

    def listen(self, job: Job) -> None:
        key = job.number, job.attempt
        address = self._strangers.pop(key)
        # If its worker is gone by now, so it is at the next look.
        worker = self.cluster.workers.get(address)
        self._sent[key] = _Sent(job, address, "" if worker is None else worker.id)

    def discard(self, spooled: SpooledFile) -> None:
        super().discard(spooled)
        if spooled.place in self.cluster.workers:
            with suppress(OSError):
                self.cluster.broadcast(remote.discard, [spooled.path], workers=[spooled.place])

    def messages(self) -> list[str]:
        said, self.cluster.messages = self.cluster.messages, []
        return said

    def close(self) -> None:
        for sent in list(self._sent.values()):
            self.stop(sent.job)
        until, results = time.monotonic() + ANSWER, list[JobResult]()
        while self._sent and self.cluster.down is None and time.monotonic() < until:
            results += self.wait(0.1)
        self._results, self._is_closed = [*results, *self._results], True
        self.cluster.close()


def _room(worker: Worker, here: list[_Sent], resources: tuple[str, ...]) -> float:
    """How many more jobs a worker can take on these resources, beside those that it has.

    The scheduler counts the jobs of all clients, but not those of clients that are gone; and it may
    not have heard of the last ones yet.
    """
    if worker.about is None or not worker.is_open:
        return 0.0
    more = [s.job for s in here if s.future is None or s.future.key not in worker.tasks]
    if not worker.offers:
        return worker.threads - len(worker.tasks) - len(more)
    own = Counter(name for job in more for name in job.resources)
    return min(
        worker.offers.get(name, 0.0) - worker.used.get(name, 0.0) - own[name] for name in resources
    )
