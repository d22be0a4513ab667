"""Where studies are stored: a database, its tables, and transactions on one study."""

from calamint.run.store import schema
from calamint.run.store.database import MEMORY, Database
from calamint.run.store.leases import is_dead, owner
from calamint.run.store.records import job_records, last_recommendation, open_attempts
from calamint.run.store.rows import Measured
from calamint.run.store.schema import REVISION
from calamint.run.store.store import Store, write_problem

__all__ = [
    "MEMORY",
    "REVISION",
    "Database",
    "Measured",
    "Store",
    "is_dead",
    "job_records",
    "last_recommendation",
    "open_attempts",
    "owner",
    "schema",
    "write_problem",
]
