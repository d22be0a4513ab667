"""Leases: an attempt keeps its resources while its owner, a process, lives and renews its lease."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Row

from calamint.run.store.rows import Rows


def renew(
    rows: Rows, connection: Connection, attempts: Sequence[tuple[int, int]], lease: float
) -> list[tuple[int, int]]:
    """Renew the leases of attempts (job, attempt); returns those that are no longer open, or whose
    job another attempt has ended."""
    open_attempts = {
        (row.job, row.number): row
        for row in rows.open_attempts(connection)
        if row.job_state == "running"
    }
    for key in attempts:
        if key in open_attempts:
            rows.renew(connection, open_attempts[key].id, lease)
    return [key for key in attempts if key not in open_attempts]


def adopt(
    rows: Rows, connection: Connection, attempt: tuple[int, int], owner: str, lease: float
) -> bool:
    """Give an attempt (job, attempt) whose owner is gone to another owner; False if it is not, or
    if another attempt has ended the job."""
    for row in expired_attempts(rows, connection, ()):
        if (row.job, row.number) == attempt and row.job_state == "running":
            rows.renew(connection, row.id, lease, owner)
            return True
    return False


def expired_attempts(
    rows: Rows, connection: Connection, but: Collection[tuple[int, int]]
) -> list[Row[Any]]:
    """Open attempts whose lease has run out, or whose owner is dead.

    but  attempts (job, attempt) that are known to be alive
    """
    return [
        row
        for row in rows.open_attempts(connection)
        if row.lease is not None
        and (row.job, row.number) not in but
        and rows.clock.has_expired(
            ("attempt", row.id), row.owner, row.boot, row.lease_until, row.renewals, row.lease
        )
    ]
