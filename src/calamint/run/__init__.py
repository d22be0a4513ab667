"""Doing it: studies that survive a restart, where they are stored, and running their jobs."""

from calamint.run.errors import StorageError
from calamint.run.jobs import Job
from calamint.run.study import Study

__all__ = ["Job", "StorageError", "Study"]
