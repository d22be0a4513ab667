"""Where studies are stored: a database, its tables, and transactions on one study."""

from calamint.run.store import log, schema
from calamint.run.store.booking import Booking
from calamint.run.store.caller import Answered, Caller, answered
from calamint.run.store.corrections import CORRECTIONS
from calamint.run.store.database import MEMORY, Database
from calamint.run.store.listing import (
    JOB_ORDERS,
    EventRecord,
    JobsQuery,
    StudyRecord,
    count_events,
    event_page,
    job_counts,
    job_details,
    job_page,
    running_attempts,
    study_record,
    study_records,
    study_sequence,
    told_values,
)
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
from calamint.run.store.tokens import (
    LOCAL_USER,
    RIGHTS,
    Right,
    Token,
    create_token,
    find_token,
    list_tokens,
    revoke_token,
)
from calamint.run.store.turns import DECIDING_LEASE, Turn

__all__ = [
    "CORRECTIONS",
    "DECIDING_LEASE",
    "JOB_ORDERS",
    "LOCAL_USER",
    "MEMORY",
    "REVISION",
    "RIGHTS",
    "Answered",
    "Booking",
    "Caller",
    "Database",
    "EventRecord",
    "JobsQuery",
    "LeaseClock",
    "Measured",
    "Pausable",
    "ProblemChange",
    "Right",
    "Store",
    "StudyRecord",
    "Token",
    "Turn",
    "answered",
    "attempt_records",
    "boot_seconds",
    "count_events",
    "create_token",
    "event_page",
    "find_token",
    "is_dead",
    "job_counts",
    "job_details",
    "job_page",
    "job_records",
    "last_recommendation",
    "list_tokens",
    "log",
    "owner",
    "paused",
    "problem_changes",
    "retried",
    "revoke_token",
    "running_attempts",
    "schema",
    "standard_errors",
    "study_record",
    "study_records",
    "study_sequence",
    "told_values",
    "write_problem",
]
