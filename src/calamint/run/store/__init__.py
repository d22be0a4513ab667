"""Where studies are stored: a database, its tables, and transactions on one study."""

from calamint.run.store import log, schema
from calamint.run.store.booking import Booking
from calamint.run.store.corrections import CORRECTIONS
from calamint.run.store.database import MEMORY, Database
from calamint.run.store.liveness import LeaseClock, boot_seconds, is_dead, owner
from calamint.run.store.problem_changes import (
    Pausable,
    ProblemChange,
    paused,
    problem_changes,
    write_problem,
)
from calamint.run.store.records import (
    attempt_records,
    job_records,
    last_recommendation,
    standard_errors,
)
from calamint.run.store.retries import retried
from calamint.run.store.rows import Measured
from calamint.run.store.schema import REVISION
from calamint.run.store.store import Store
from calamint.run.store.turns import DECIDING_LEASE, Turn

__all__ = [
    "CORRECTIONS",
    "DECIDING_LEASE",
    "MEMORY",
    "REVISION",
    "Booking",
    "Database",
    "LeaseClock",
    "Measured",
    "Pausable",
    "ProblemChange",
    "Store",
    "Turn",
    "attempt_records",
    "boot_seconds",
    "is_dead",
    "job_records",
    "last_recommendation",
    "log",
    "owner",
    "paused",
    "problem_changes",
    "retried",
    "schema",
    "standard_errors",
    "write_problem",
]
