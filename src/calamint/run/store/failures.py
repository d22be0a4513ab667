"""What follows an attempt that ended without a result: another attempt, a job that failed, or one
that is held for the user."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, final

from sqlalchemy import Connection, Row

from calamint.run.jobs import Cause
from calamint.run.store.rows import Rows

# Seconds between attempts, however often a job failed.
LONGEST_PAUSE = 600.0
_NOT_THE_INPUT = ("lost", "infrastructure")


@final
@dataclass(frozen=True)
class RetryPolicy:
    """How often a job is tried again, and the seconds before the first retry."""

    retries: int
    pause: float

    def pause_after(self, failures: int, factor: float = 1.0) -> float:
        """Seconds: doubled after every failure, within bounds."""
        pause = factor * self.pause * 2.0 ** min(failures - 1, 50)
        return min(pause, max(LONGEST_PAUSE, self.pause))


def fail_attempt(
    rows: Rows,
    connection: Connection,
    policy: RetryPolicy,
    job: Row[Any],
    attempt: Row[Any],
    reason: str,
    cause: Cause,
    retry: bool,
) -> bool:
    """Whether it mattered: the job was running, by this attempt."""
    latest = job.state == "running" and attempt.number == job.attempts
    outcome = "lost" if cause == "lost" else "failed"
    rows.close(connection, attempt.id, outcome, reason, cause)
    if not latest:
        rows.event(connection, "closed", job.number, attempt.number)
        return False
    said = {"cause": cause, "reason": reason}
    causes = rows.causes(connection, job)
    if cause == "refused":
        _return(rows, connection, job, attempt, 0.0, said)
    elif cause in _NOT_THE_INPUT:
        row = len(list(takewhile(_NOT_THE_INPUT.__contains__, reversed(causes))))
        if row <= policy.retries:
            # A machine needs longer than a moment; somebody else may go on at once.
            factor = 10.0 if cause == "infrastructure" else 1.0
            _return(rows, connection, job, attempt, policy.pause_after(row, factor), said)
        else:
            rows.update_job(connection, job.id, state="held", **said)
            rows.event(connection, "held", job.number, attempt.number, reason)
    else:
        crashes = len([each for each in causes if each in ("crashed", "timeout")])
        if retry and crashes <= policy.retries:
            _return(rows, connection, job, attempt, policy.pause_after(crashes), said)
        else:
            now = rows.now()
            rows.update_job(connection, job.id, state="failed", ended=now, **said)
            rows.event(connection, "failed", job.number, attempt.number, reason)
    return True


def _return(
    rows: Rows,
    connection: Connection,
    job: Row[Any],
    attempt: Row[Any],
    pause: float,
    said: Mapping[str, str],
) -> None:
    """A job waits, for so many seconds at least, to be tried again."""
    not_before = rows.now() + pause  # for people to read
    rows.update_job(connection, job.id, state="waiting", not_before=not_before, **said)
    when = {"boot": rows.clock.boot, "at": rows.clock.now() + pause}
    rows.event(connection, "returned", job.number, attempt.number, when)
