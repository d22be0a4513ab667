"""Running jobs: in worker processes, in this one, or on a virtual clock."""

from calamint.run.execute.base import (
    Executor,
    JobResult,
    SpooledResult,
    Tasks,
    check_tasks,
    parse_tasks,
)
from calamint.run.execute.dask import Dask
from calamint.run.execute.in_process import InProcess
from calamint.run.execute.local import Local
from calamint.run.execute.simulated import Simulated

__all__ = [
    "Dask",
    "Executor",
    "InProcess",
    "JobResult",
    "Local",
    "Simulated",
    "SpooledResult",
    "Tasks",
    "check_tasks",
    "parse_tasks",
]
