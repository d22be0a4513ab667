"""Doing it: studies that survive a restart, where they are stored, and running their jobs."""

from calamint.run.execute import Executor, JobResult, Local, Simulated, read_works
from calamint.run.jobs import Job, JobRecord
from calamint.run.progress import Progress, RunReport, Watcher
from calamint.run.store import REVISION, Database, is_dead
from calamint.run.studies import names
from calamint.run.study import Study
from calamint.run.tables import columns_of, read_text, write_csv

__all__ = [
    "REVISION",
    "Database",
    "Executor",
    "Job",
    "JobRecord",
    "JobResult",
    "Local",
    "Progress",
    "RunReport",
    "Simulated",
    "Study",
    "Watcher",
    "columns_of",
    "is_dead",
    "names",
    "read_text",
    "read_works",
    "write_csv",
]
