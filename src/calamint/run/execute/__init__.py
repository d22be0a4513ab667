"""Running jobs: each in a process of its own, or on a virtual clock."""

from calamint.run.execute.base import (
    Executor,
    JobResult,
    SpooledResult,
    Tasks,
    check_tasks,
    parse_tasks,
)
from calamint.run.execute.local import Local
from calamint.run.execute.simulated import Simulated

__all__ = [
    "Executor",
    "JobResult",
    "Local",
    "Simulated",
    "SpooledResult",
    "Tasks",
    "check_tasks",
    "parse_tasks",
]
