"""A Dask cluster: its workers, what each can take, and messages to them."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeVar, final

from calamint.errors import ProblemError, TaskError
from calamint.run.execute import remote

T = TypeVar("T")

# Seconds: between looks, between attempts to reach a scheduler, until there must be an answer.
LOOK, AGAIN, ANSWER = 0.5, 2.0, 10.0
# How old a look may be by which a job is decided.
JUST_NOW = 0.05
# Seconds without any worker after which people are told: a queue does not say that workers fail.
_ALONE = 120.0
# Seconds after which people are told of resources that workers do not offer: others may come.
_UNOFFERED = 20.0


@final
@dataclass
class Worker:
    """A worker as its scheduler sees it.

    Attributes:
        id: Of its process.
        threads: How many jobs it takes if it offers nothing by name.
        offers: How many jobs it takes, by resource.
        used: How much of that is used by jobs that a client waits for.
        tasks: The keys of these jobs.
        is_open: Whether it takes jobs; one that is ending, or has too little memory, does not.
        about: What it says of itself.
        ends: The moment when it does, by this machine's clock, if it has a lifetime.
    """

    id: str
    threads: int
    offers: Mapping[str, float]
    used: dict[str, float]
    tasks: set[str]
    is_open: bool
    about: "remote.About | None" = None
    ends: float | None = None


def _workers(dask_scheduler: Any) -> dict[str, dict[str, Any]]:
    """What a scheduler knows of its workers, by address."""
    return {
        address: {
            "id": state.server_id,
            "threads": state.nthreads,
            "offers": dict(state.resources),
            "used": dict(state.used_resources),
            "tasks": {task.key for task in state.processing},
            "is_open": state.status.name == "running",
        }
        for address, state in dask_scheduler.workers.items()
    }


# A scheduler need not have Calamint: functions of the main module are sent to it as they are.
_workers.__module__ = "__main__"


@final
class Cluster:
    """A connection to a cluster, made again when it is lost.

    Attributes:
        workers: By address, as of the last look.
        before: As of the look before.
        looked: When that was.
        down: Since when the scheduler cannot be reached, if it cannot.
        messages: What people should read.
    """

    def __init__(self, given: Any) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise ProblemError("Dask is not installed: pip install 'calamint[dask]'.") from None
        is_cluster = hasattr(given, "scheduler_address") and not isinstance(given, type)
        if not (_is_address(given) or is_cluster or isinstance(given, Client)):
            raise ProblemError(
                f"cluster is {given!r}: write the address of a scheduler, such as"
                " 'tcp://scheduler:8786', a cluster or a client."
            )
        self._given, self._is_ours = given, not isinstance(given, Client)
        self._client: Any = None
        self.workers: dict[str, Worker] = {}
        self.before: dict[str, Worker] = {}
        self.down: float | None = None
        self.messages: list[str] = []
        self._refused: set[str] = set()
        self._alone: float | None = None
        self._unoffered: dict[str, float] = {}
        self.looked = -AGAIN

    def connect(self) -> None:
        """Reach the scheduler.

        Raises:
            TaskError: If it cannot be reached.
        """
        from distributed import Client

        if not self._is_ours:
            self._client = self._given
            return
        until = time.monotonic() + ANSWER
        while True:
            try:
                self._client = Client(self._given, timeout=ANSWER, set_as_default=False)
                return
            except (OSError, ValueError, TypeError) as error:
                # It may be just starting.
                if time.monotonic() > until or not isinstance(error, OSError):
                    raise TaskError(
                        f"the Dask scheduler {self._given!r} cannot be reached"
                        f" ({words_of(error)}): is it running, and is the address right?"
                    ) from error
            time.sleep(0.2)

    def close(self) -> None:
        if self._is_ours:
            with suppress(Exception):
                self._client.close()

    def look(self, age: float = LOOK) -> bool:
        """See which workers there are, if what is known is older; whether the scheduler answers."""
        if time.monotonic() - self.looked < (age if self.down is None else AGAIN):
            return self.down is None
        try:
            if self._client.status == "closed":
                self.connect()
            described = self.ask(self._client._run_on_scheduler, _workers)
        except (OSError, TaskError) as error:
            if self.down is None:
                self.down = time.monotonic()
                self.messages.append(
                    f"The Dask scheduler cannot be reached: waiting for it ({words_of(error)})."
                )
            self.before, self.workers = self.workers or self.before, {}
            return False
        finally:
            self.looked = time.monotonic()
        if self.down is not None:
            self.messages.append("The Dask scheduler can be reached again.")
            self.down = None
        self.before = self.workers or self.before
        self.workers = {address: Worker(**found) for address, found in described.items()}
        for address, worker in self.workers.items():
            old = self.before.get(address)
            if old is not None and old.id == worker.id:
                worker.about, worker.ends = old.about, old.ends
        with suppress(OSError):  # next time
            self._introduce()
        self._say_if_alone()
        return True

    def _say_if_alone(self) -> None:
        """Once each time that no worker comes for long."""
        if self.workers:
            self._alone = None
        elif self._alone is None:
            self._alone = time.monotonic()
        elif time.monotonic() - self._alone > _ALONE:
            self._alone = float("inf")
            self.messages.append(
                f"The Dask cluster has had no worker for {_ALONE:.0f} s: if they wait in a queue,"
                " so does the run; if they failed, their logs say why."
            )

    def say_if_unoffered(self, resources: tuple[str, ...]) -> None:
        """Once for resources of a job that no worker could ever take."""

        def takes(worker: Worker, *names: str) -> bool:
            return not worker.offers or all(worker.offers.get(name, 0.0) >= 1 for name in names)

        workers = self.workers.values()
        lacking = [name for name in resources if not any(takes(each, name) for each in workers)]
        names = " with ".join(map(repr, lacking or resources))
        if not workers or any(takes(worker, *resources) for worker in workers):
            self._unoffered.pop(names, None)
            return
        now = time.monotonic()
        if now - self._unoffered.setdefault(names, now) > _UNOFFERED:
            self._unoffered[names] = float("inf")
            offered = sorted({name for worker in workers for name in worker.offers})
            words = " ".join(f"{name}=1" for name in resources)
            self.messages.append(
                f"No worker offers {names}; they offer {', '.join(map(repr, offered))}: start one"
                f' with --resources "{words}".'
            )

    def _introduce(self) -> None:
        """Ask new workers about themselves; those that do not have Calamint get no jobs."""
        new = [address for address, worker in self.workers.items() if worker.about is None]
        answers = self.broadcast(remote.describe, workers=new)
        for address in new:
            worker, about = self.workers[address], answers.get(address)
            if isinstance(about, remote.About):
                worker.about = about
                worker.ends = None if about.left is None else time.monotonic() + about.left
                words = f"has Calamint {about.version}, here it is {version('calamint')}"
                is_other = about.version != version("calamint")
            else:
                words, is_other = f"gets no jobs, as it has no Calamint ({words_of(about)})", True
                del self.workers[address]
            if is_other and worker.id not in self._refused:
                self._refused.add(worker.id)
                self.messages.append(f"Worker {address} {words}: install the same there.")

    def does_not_answer(self, address: str, error: Exception) -> None:
        """Say once that a worker does not say which jobs it has; one that ends need not."""
        worker = self.workers.get(address)
        if worker is None or isinstance(error, OSError) or worker.id in self._refused:
            return
        self._refused.add(worker.id)
        words = f"Worker {address} does not say which jobs it has: {words_of(error)}."
        self.messages.append(words)

    def freed(self, address: str, key: str, resources: Iterable[str]) -> None:
        """A job has ended, which may have been seen at the last look."""
        worker = self.workers.get(address)
        if worker is not None and key in worker.tasks:
            worker.tasks.discard(key)
            for name in resources:
                worker.used[name] = worker.used.get(name, 0.0) - 1

    def ask(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """The answer of an asynchronous method of the client.

        Raises:
            OSError: If it does not come in time.
        """
        try:
            return self._client.sync(method, *arguments, callback_timeout=ANSWER, **named)
        except OSError:
            raise
        except Exception as error:  # closed clients, connections and loops have errors of their own
            raise OSError(words_of(error)) from error

    def broadcast(
        self, function: Callable[..., T], *arguments: Any, workers: Iterable[str]
    ) -> dict[str, T | Exception]:
        """What a function returns on workers, or raises there, by address.

        Raises:
            OSError: If there is no answer in time.
        """
        addresses = list(workers)
        if not addresses:
            return {}
        named = {"workers": addresses, "on_error": "return"}
        found: dict[str, T | Exception] = self.ask(self._client._run, function, *arguments, **named)
        return found

    def submit(self, order: "remote.Order", address: str, resources: Iterable[str]) -> Any:
        """Send a job to a worker that can take it; a future of how it ends.

        Raises:
            OSError: If that is not possible now.
        """
        if self._client.status != "running":
            raise OSError("the Dask scheduler cannot be reached")
        job, offers = order.job, self.workers[address].offers
        try:
            return self._client.submit(
                remote.run_job,
                order,
                key=f"calamint-{order.site.study}-{job.number}-{job.attempt}-{time.time_ns()}",
                workers=[address],
                allow_other_workers=False,
                resources=dict.fromkeys(resources, 1) if offers else None,
                pure=False,
                retries=0,
            )
        except Exception as error:  # as in `ask`
            raise OSError(words_of(error)) from error

    def result(self, future: Any) -> Any:
        """What a future that is finished has.

        Raises:
            OSError: If it cannot be had in time.
        """
        return self.ask(future._result)


def _is_address(given: object) -> bool:
    """Whether it can be one of a scheduler: a client that cannot read it does not end."""
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import get_backend

    if not isinstance(given, str):
        return False
    try:
        scheme, place = parse_address(given)
        get_backend(scheme)
        if scheme == "inproc":
            return place.count("/") == 2
        host, port = parse_host_port(place)
    except ValueError:
        return False
    return bool(host) and 0 < port < 65536


def words_of(error: object) -> str:
    """An error in a sentence."""
    return f"{type(error).__name__}: {error}"[:300]
