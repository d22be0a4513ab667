"""Doing it: studies that survive a restart, where they are stored, and running their jobs."""

from typing import TYPE_CHECKING

from calamint.lazy import lazy_exports

if TYPE_CHECKING:
    from calamint.run.edit import StudyEditor
    from calamint.run.execute import (
        Dask,
        Executor,
        InProcess,
        JobResult,
        Local,
        Simulated,
        check_tasks,
    )
    from calamint.run.jobs import AttemptRecord, Job, JobRecord
    from calamint.run.plausible import far_outside
    from calamint.run.progress import Progress, RunEvent, RunReport, Watcher
    from calamint.run.read_table import Imported, has_decimal_comma, read_outcome, read_text
    from calamint.run.store import REVISION, Database, is_dead
    from calamint.run.studies import names
    from calamint.run.study import Study
    from calamint.run.summary import Summary, summarise
    from calamint.run.tables import columns_of, write_csv
    from calamint.run.transfer import copy_study
    from calamint.run.view import StudyView

__all__ = [
    "REVISION",
    "AttemptRecord",
    "Dask",
    "Database",
    "Executor",
    "Imported",
    "InProcess",
    "Job",
    "JobRecord",
    "JobResult",
    "Local",
    "Progress",
    "RunEvent",
    "RunReport",
    "Simulated",
    "Study",
    "StudyEditor",
    "StudyView",
    "Summary",
    "Watcher",
    "check_tasks",
    "columns_of",
    "copy_study",
    "far_outside",
    "has_decimal_comma",
    "is_dead",
    "names",
    "read_outcome",
    "read_text",
    "summarise",
    "write_csv",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "transfer": ("copy_study",),
        "edit": ("StudyEditor",),
        "execute": (
            "Dask",
            "Executor",
            "InProcess",
            "JobResult",
            "Local",
            "Simulated",
            "check_tasks",
        ),
        "jobs": ("AttemptRecord", "Job", "JobRecord"),
        "plausible": ("far_outside",),
        "progress": ("Progress", "RunEvent", "RunReport", "Watcher"),
        "read_table": ("Imported", "has_decimal_comma", "read_outcome", "read_text"),
        "store": ("REVISION", "Database", "is_dead"),
        "studies": ("names",),
        "study": ("Study",),
        "summary": ("Summary", "summarise"),
        "tables": ("columns_of", "write_csv"),
        "view": ("StudyView",),
    },
)
