"""What a worker of a Dask cluster does: it runs jobs of studies in processes of its machine, and
keeps their results in files until they are stored, as Dask forgets what no client waits for."""

import os
import queue
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

from calamint.run.execute.base import JobResult, SpooledResult
from calamint.run.execute.command import Command
from calamint.run.execute.machine import Machine
from calamint.run.jobs import Job


@final
@dataclass(frozen=True)
class Site:
    """Where jobs of a study run, on any machine.

    Attributes:
        study: What no other study has.
        folder: Where files of jobs are kept.
        import_path: Where functions look for modules, after where the worker does.
        working_folder: Where commands run, if there is such a folder.
    """

    study: str
    folder: str
    import_path: tuple[str, ...]
    working_folder: str


@final
@dataclass(frozen=True)
class Order:
    """A job that a worker is to run; `worker` is the id of its process."""

    worker: str
    site: Site
    job: Job
    work: bytes | Command
    limit: float | None


@final
@dataclass(frozen=True)
class About:
    """A worker: its version of Calamint, how many seconds it was given, and how many are left."""

    version: str
    lifetime: float | None
    left: float | None


# The machines of a worker's process by study, and jobs that were cancelled before they began.
_MACHINES: dict[Site, Machine] = {}
_CANCELLED: set[tuple[str, int, int]] = set()
_LOCK = threading.Lock()


def run_job(order: Order) -> JobResult:
    """Run a job to its end, in a process of its own."""
    from distributed import get_worker, secede

    worker, job = get_worker(), order.job
    if worker.id != order.worker:
        # Dask runs again what a worker did not end; an attempt starts once.
        return JobResult(job, error="its worker was replaced", cause="lost")
    secede()  # what else this worker can run is for whoever sends it jobs to say
    machine = _machine(order.site, worker.address)
    ended: queue.SimpleQueue[JobResult] = queue.SimpleQueue()
    key = order.site.study, job.number, job.attempt
    try:
        with _LOCK:
            if key in _CANCELLED:
                _CANCELLED.discard(key)
                return JobResult(job, error="it was cancelled")
            machine.start(job, order.work, order.limit, ended)
    except OSError as error:
        words = f"it could not be started on {worker.address}: {error}"
        return JobResult(job, error=words, cause="infrastructure")
    result = ended.get()
    machine.forget(job)
    if result.spooled is None:
        return result
    return replace(result, spooled=replace(result.spooled, place=worker.address))


def _machine(site: Site, place: str) -> Machine:
    with _LOCK:
        if site not in _MACHINES:
            others = [each for each in site.import_path if each not in sys.path]
            working = Path(site.working_folder)
            _MACHINES[site] = Machine(
                Path(site.folder),
                site.study,
                import_path=[*sys.path, *filter(os.path.isdir, others)],
                working_folder=working if working.is_dir() else Path.cwd(),
                place=place,
            )
        return _MACHINES[site]


def _machines(study: str) -> list[Machine]:
    """Of all runs of a study, wherever they were started from."""
    return [machine for site, machine in list(_MACHINES.items()) if site.study == study]


def collect(site: Site, dask_worker: Any) -> tuple[list[SpooledResult], list[tuple[int, int]]]:
    """Results of a study that are in files here, and jobs that run, with their attempts."""
    running = [key for machine in _machines(site.study) for key in machine.running]
    # One that ends meanwhile is in both.
    return _machine(site, dask_worker.address).spooled(), running


def stop(site: Site, number: int, attempt: int) -> None:
    """End a job, or do not begin it."""
    with _LOCK:
        stopped = [machine.stop(number, attempt) for machine in _machines(site.study)]
        if not any(stopped):
            _CANCELLED.add((site.study, number, attempt))


def discard(files: Iterable[Path]) -> None:
    """Results are stored."""
    for file in files:
        with suppress(OSError):
            file.unlink()
            file.parent.rmdir()


def describe(dask_worker: Any) -> About:
    """What there is to know of a worker."""
    import psutil

    lifetime = dask_worker.lifetime
    age = time.time() - psutil.Process().create_time()
    left = None if lifetime is None else max(lifetime - age, 0.0)
    return About(version("calamint"), lifetime, left)
