"""Putting a study right: results that were mistyped, that should not count, or that arrive late.

Every correction is an event that is kept: when, by whom and why. The rows of `measurements` that
are `used` are what is believed now; those that were replaced stay, unused.
"""

from collections.abc import Mapping
from typing import Any, Literal, final

from sqlalchemy import Connection, Row, insert, select, update

from calamint.errors import JobStateError
from calamint.run.store import schema
from calamint.run.store.database import Database
from calamint.run.store.retries import retried
from calamint.run.store.rows import Measured, Rows, words

Correction = Literal["amended", "completed", "withdrawn", "forgiven", "restored"]
CORRECTIONS: tuple[Correction, ...] = (
    "amended",
    "completed",
    "withdrawn",
    "forgiven",
    "restored",
)
_TOLD = ("done", "failed", "partial")
_MEASURED = schema.measurements.c


@final
class Corrections:
    """Transactions that correct the results of one study."""

    def __init__(self, database: Database, rows: Rows) -> None:
        self.database, self._rows = database, rows

    @retried
    def amend(
        self, number: int, measured: Measured, params: Mapping[str, Any] | None, reason: str
    ) -> None:
        """Other values than were told, of functions that were; or another input."""
        with self.database.write(self._rows.study_id) as connection:
            job = self._job(connection, number, _TOLD, "amended")
            told = self._used(connection, job)
            missing = [name for name in measured if name not in told]
            if missing:
                raise JobStateError(
                    f"job {number} has no value of {missing[0]!r} to amend: complete it."
                    " Nothing was changed."
                )
            detail = {"params": None if params is None else dict(params)}
            sequence = self._event(connection, "amended", job, reason, detail)
            self._replace(connection, job, sequence, told, measured, params)

    @retried
    def complete(
        self, number: int, measured: Measured, more: bool, measures: tuple[str, ...]
    ) -> None:
        """Values of functions that were not told yet; `more` of them will follow."""
        with self.database.write(self._rows.study_id) as connection:
            job = self._job(connection, number, _TOLD, "completed")
            told = self._used(connection, job)
            known = [name for name in measured if name in told]
            if known:
                raise JobStateError(
                    f"job {number} was told {known[0]} = {told[known[0]].value:g} already: amend"
                    " it if that is wrong. Nothing was changed."
                )
            known_now = {*told, *measured}
            waits = more and not known_now >= set(measures)
            sequence = self._event(connection, "completed", job, "", {"more": waits})
            self._replace(connection, job, sequence, told, measured, None)
            if not set(_broken(self._told(connection, number))) - known_now:
                state = "partial" if waits else "done"
                self._rows.update_job(connection, job.id, state=state, cause=None, reason=None)

    @retried
    def withdraw(self, number: int, reason: str) -> None:
        """A result, or a failure, that must not count."""
        with self.database.write(self._rows.study_id) as connection:
            job = self._job(connection, number, _TOLD, "withdrawn")
            self._event(connection, "withdrawn", job, reason, {"was": job.state})
            self._use(connection, job, None)
            self._rows.update_job(connection, job.id, state="withdrawn")

    @retried
    def forgive(self, number: int) -> None:
        """A failed job did not fail because of its input; what else it told is kept."""
        with self.database.write(self._rows.study_id) as connection:
            job = self._job(connection, number, ("failed",), "forgiven")
            self._event(connection, "forgiven", job, "", {"was": job.state})
            self._rows.update_job(connection, job.id, state="withdrawn")

    @retried
    def restore(self, number: int) -> None:
        """The result as it was first told, without any correction."""
        with self.database.write(self._rows.study_id) as connection:
            job = self._job(connection, number, (*_TOLD, "withdrawn"), "restored")
            first = self._told(connection, number)
            if first is None or not self._corrected(connection, number, first.sequence):
                raise JobStateError(f"job {number} was never corrected: nothing was changed.")
            self._event(connection, "restored", job, "", {})
            self._use(connection, job, first.sequence)
            failed = first.kind == "failed" or _broken(first)
            state = "partial" if not failed and first.detail.get("more") else "done"
            attempt = self._rows.latest_attempt(connection, job)
            said = {"cause": attempt.cause, "reason": attempt.reason}
            self._rows.update_job(connection, job.id, state="failed" if failed else state, **said)

    def _job(
        self, connection: Connection, number: int, states: tuple[str, ...], doing: str
    ) -> Row[Any]:
        job = self._rows.job(connection, number)
        if job.state not in states:
            if states == ("failed",):
                raise JobStateError(
                    f"job {number} is {job.state}, not failed: nothing was changed."
                )
            remedy = "restore it first" if job.state == "withdrawn" else "it has no result yet"
            raise JobStateError(
                f"job {number} is {job.state} and cannot be {doing}: {remedy}. Nothing was changed."
            )
        return job

    def _event(
        self,
        connection: Connection,
        kind: Correction,
        job: Row[Any],
        reason: str,
        detail: Mapping[str, Any],
    ) -> int:
        said = {**detail, "by": self._rows.by, "reason": words(reason)}
        # What was learnt with the old values is no start for what is learnt with the new ones.
        self._rows.update_study(connection, state=None)
        return self._rows.event(connection, kind, job.number, None, said)

    def _told(self, connection: Connection, number: int) -> Row[Any] | None:
        """The event with which a job ended."""
        events = schema.events.c
        return connection.execute(
            select(schema.events)
            .where(
                events.study_id == self._rows.study_id,
                events.job == number,
                events.kind.in_(("told", "failed")),
            )
            .order_by(events.sequence.desc())
            .limit(1)
        ).first()

    def _corrected(self, connection: Connection, number: int, since: int) -> bool:
        """Whether there was a correction after the last time that all were taken back."""
        events = schema.events.c
        last = connection.execute(
            select(events.kind)
            .where(
                events.study_id == self._rows.study_id,
                events.job == number,
                events.sequence > since,
                events.kind.in_(CORRECTIONS),
            )
            .order_by(events.sequence.desc())
            .limit(1)
        ).scalar()
        return last is not None and last != "restored"

    def _used(self, connection: Connection, job: Row[Any]) -> dict[str, Row[Any]]:
        """The rows that count now, by function."""
        rows = connection.execute(
            select(schema.measurements).where(_MEASURED.job_id == job.id, _MEASURED.used)
        ).all()
        return {row.function: row for row in rows}

    def _use(self, connection: Connection, job: Row[Any], sequence: int | None) -> None:
        """Use the rows of one event, and no others."""
        used = _MEASURED.sequence == (-1 if sequence is None else sequence)
        connection.execute(
            update(schema.measurements).where(_MEASURED.job_id == job.id).values(used=used)
        )

    def _replace(
        self,
        connection: Connection,
        job: Row[Any],
        sequence: int,
        told: Mapping[str, Row[Any]],
        measured: Measured,
        params: Mapping[str, Any] | None,
    ) -> None:
        """Use these values; of the others, what was told, at the input that was used."""
        first = next(iter(told.values()), None)
        at = params if params is not None else job.params if first is None else first.params
        kept = {name: (row.value, row.sem) for name, row in told.items()}
        now = {**kept, **measured}
        changed = now if params is not None else measured
        connection.execute(
            update(schema.measurements)
            .where(_MEASURED.job_id == job.id, _MEASURED.function.in_(list(changed)))
            .values(used=False)
        )
        rows = self._rows.measurements(sequence, at, changed, job.id, job.attempts, used=True)
        if rows:
            connection.execute(insert(schema.measurements), rows)


def _broken(ended: Row[Any] | None) -> list[str]:
    """Functions that were told to have failed, by the event with which a job ended."""
    return list(ended.detail["broken"]) if ended is not None and ended.kind == "told" else []
