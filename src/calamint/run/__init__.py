"""Doing it: studies that survive a restart, where they are stored, and running their jobs."""

from calamint.run.errors import StorageError
from calamint.run.executors import Executor, Local, Outcome, Simulated
from calamint.run.jobs import Job, JobRecord
from calamint.run.loop import Progress, RunReport, Watch
from calamint.run.study import Study

__all__ = [
    "Executor",
    "Job",
    "JobRecord",
    "Local",
    "Outcome",
    "Progress",
    "RunReport",
    "Simulated",
    "StorageError",
    "Study",
    "Watch",
]
