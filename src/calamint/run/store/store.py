"""The store of one study: every change is one short transaction, and one event in its log.

| event | what happened |
|---|---|
| asked | a decision made a job, and its first attempt started |
| enqueued | the user wants a job |
| started | an attempt at a waiting job started |
| told | a result finished a job |
| failed | a job failed for good |
| returned | an attempt failed or was lost, and its job waits to be tried again |
| held | attempts at a job were lost too often: it waits for the user |
| released | the user wants a job that was held to be tried again |
| cancelled | a job will not be run |
| amended, completed, withdrawn, forgiven, restored | a result was corrected: see `corrections` |
| closed | an attempt ended whose job had ended before |
| added | measurements from elsewhere |
| changed | the problem was changed |
| paused, resumed | a task or a resource was |

Capacity belongs to attempts, not to jobs: while an attempt is open, it has its resources.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

from sqlalchemy import Connection, Row, insert, select

from calamint.decide import Suggestion
from calamint.errors import JobStateError
from calamint.run.jobs import OPEN, Cause
from calamint.run.store import schema
from calamint.run.store.booking import Booking
from calamint.run.store.caller import Caller
from calamint.run.store.corrections import Corrections
from calamint.run.store.database import Database
from calamint.run.store.failures import RetryPolicy, fail_attempt
from calamint.run.store.leases import adopt, expired_attempts, renew
from calamint.run.store.liveness import LeaseClock, owner
from calamint.run.store.problem_changes import ProblemChanges
from calamint.run.store.retries import retried
from calamint.run.store.rows import Measured, Rows, words

if TYPE_CHECKING:  # reading a study's tables must not load the models
    from calamint.decide import FullUpdate, Recommendation, Settings


# Owners that are no processes, of which nobody can see whether they live.
_REMOTE = "remote:"


@final
class Store:
    """Transactions on one study.

    settings  of which `retries` and `pause` count here
    now       the time, in seconds since 1970, or a virtual one
    clock     what leases and pauses are timed by
    caller    who wants changes, if that is not the user of this process
    """

    def __init__(
        self,
        database: Database,
        study: int,
        settings: "Settings",
        now: Callable[[], float],
        clock: LeaseClock,
        caller: Caller | None = None,
    ) -> None:
        self.database, self.study, self.clock = database, study, clock
        self.policy = RetryPolicy(settings.retries, settings.pause)
        self._settings = settings
        self._rows = Rows(study, now, clock, caller)
        self.corrections = Corrections(database, self._rows)
        self.changes = ProblemChanges(database, self._rows)

    def on_behalf_of(self, caller: Caller | None) -> "Store":
        """The same for somebody else."""
        given = self.database, self.study, self._settings, self._rows.now, self.clock
        return Store(*given, caller)

    @property
    def owner(self) -> str:
        """Who has the jobs that are asked for: this process, or the caller."""
        caller = self._rows.caller
        return owner() if caller is None else f"{_REMOTE}{caller.name}"

    # -- jobs ---------------------------------------------------------------------------------

    @retried
    def book(self, booking: Booking, revision: int, full: "FullUpdate | None") -> bool:
        """Make a job of a decision by the one whose turn it was, and start its first attempt; False
        if others came first.

        full  the full update that the decision made, if it did: what the next one starts from
        """
        with self.database.write(self.study) as connection:
            if self._rows.revision(connection) != revision:
                return False
            if self._rows.next_number(connection) != booking.suggestion.number:
                return False
            if not self._rows.fits(connection, booking.suggestion.resources):
                return False
            self.insert(connection, booking)
            state = {} if full is None else {"state": full.to_json()}
            self._rows.update_study(connection, decider=None, **state)
            return True

    def insert(self, connection: Connection, booking: Booking) -> None:
        """A decision is a job, and its first attempt started, inside a transaction that the caller
        holds."""
        suggestion, decision = booking.suggestion, booking.decision
        free, resources = booking.free, booking.suggestion.resources
        connection.execute(
            insert(schema.decisions).values(
                study_id=self.study,
                number=decision.number,
                made=self._rows.now(),
                update_kind=decision.update,
                stage_seconds=decision.stage_seconds,
                warnings=list(decision.warnings),
                free=None if free is None else dict(free),
            )
        )
        job = self._rows.insert_job(connection, suggestion, "running", 1, decision.number)
        self._rows.open(connection, job, 1, resources, booking.owner, booking.lease)
        self._rows.event(connection, "asked", suggestion.number, 1, list(resources))

    @retried
    def enqueue(self, task: str, params: Mapping[str, Any]) -> int:
        """A job that the user wants; its number."""
        with self.database.write(self.study) as connection:
            number = self._rows.next_number(connection)
            job = Suggestion(number, task, dict(params), ())
            self._rows.insert_job(connection, job, "waiting", 0, None)
            self._rows.event(connection, "enqueued", number)
            return number

    @retried
    def start(
        self,
        number: int,
        resources: tuple[str, ...],
        revision: int,
        owner: str,
        lease: float | None,
    ) -> int | None:
        """Start an attempt at a waiting job: its number, or None if others came first."""
        with self.database.write(self.study) as connection:
            job = self._rows.job(connection, number)
            if job.state != "waiting" or self._rows.revision(connection) != revision:
                return None
            if not self._rows.fits(connection, resources):
                return None
            attempt = job.attempts + 1
            self._rows.open(connection, job.id, attempt, resources, owner, lease)
            self._rows.update_job(
                connection, job.id, state="running", attempts=attempt, resources=list(resources)
            )
            self._rows.event(connection, "started", number, attempt, list(resources))
            return attempt

    @retried
    def tell(
        self,
        number: int,
        attempt: int | None,
        measured: Measured,
        broken: Mapping[str, str],
        seconds: float | None,
        retry: bool = False,
        params: Mapping[str, Any] | None = None,
        more: bool = False,
    ) -> bool:
        """What an attempt measured; False if it came too late, and was kept without being used.

        params  the input, if it was not that of the job
        more    whether other functions will follow
        """
        with self.database.write(self.study) as connection:
            job, row = self._rows.attempt(connection, number, attempt, "told")
            said = "; ".join(f"{name} is {value}" for name, value in broken.items())
            reason = words(said) if said else None
            if reason is not None and retry and not measured:
                return fail_attempt(
                    self._rows, connection, self.policy, job, row, reason, "crashed", retry
                )
            late = job.state not in OPEN
            now = self._rows.now()
            took = seconds if seconds is not None else max(now - row.started, 0.0)
            said_too = {"params": dict(params)} if params is not None else {}
            detail = {"seconds": took, "broken": list(broken), "more": more, **said_too}
            kind = "closed" if late else "told"
            sequence = self._rows.event(
                connection, kind, number, row.number, None if late else detail
            )
            at = job.params if params is None else params
            rows = self._rows.measurements(
                sequence, at, measured, job.id, row.number, used=not late
            )
            if rows:
                connection.execute(insert(schema.measurements), rows)
            cause: Cause | None = "crashed" if broken else None
            self._rows.close(connection, row.id, "late" if late else "done", reason, cause)
            if not late:
                self._rows.update_job(
                    connection,
                    job.id,
                    state="failed" if broken else "partial" if more else "done",
                    ended=now,
                    seconds=took,
                    cause=cause,
                    reason=reason,
                )
            return not late

    @retried
    def fail(
        self, number: int, attempt: int | None, reason: str, cause: Cause, retry: bool
    ) -> bool:
        """An attempt ended without a result; False if its job had ended, or was given to others."""
        with self.database.write(self.study) as connection:
            job, row = self._rows.attempt(connection, number, attempt, "failed")
            return fail_attempt(
                self._rows, connection, self.policy, job, row, words(reason), cause, retry
            )

    @retried
    def release(self, number: int) -> None:
        """A job that was held is to be tried again."""
        with self.database.write(self.study) as connection:
            job = self._rows.job(connection, number)
            if job.state != "held":
                raise JobStateError(f"job {number} is {job.state}, not held: nothing was changed.")
            self._rows.update_job(connection, job.id, state="waiting", not_before=None)
            self._rows.event(connection, "released", number, job.attempts)

    @retried
    def cancel(self, number: int, attempt: int | None) -> None:
        """A job will not be run, nor tried again; its attempts give their resources back."""
        with self.database.write(self.study) as connection:
            job = self._rows.job(connection, number)
            if job.state == "partial":  # what is left will not be told
                self._rows.update_job(connection, job.id, state="done")
                self._rows.event(connection, "completed", number, None, {"more": False})
                return
            if job.state not in OPEN:
                raise JobStateError(f"job {number} is already {job.state}: nothing was changed.")
            latest = self._rows.latest_attempt(connection, job) if attempt is not None else None
            if latest is not None and (attempt != job.attempts or latest.outcome is not None):
                words = f"attempt {attempt} at job {number} is over, and others may try it"
                raise JobStateError(f"{words}: nothing was changed.")
            for row in self._rows.open_attempts(connection):
                if row.job_id == job.id:
                    self._rows.close(connection, row.id, "cancelled", None)
            self._rows.update_job(connection, job.id, state="cancelled", ended=self._rows.now())
            self._rows.event(connection, "cancelled", number)

    @retried
    def add(self, rows: Iterable[tuple[Mapping[str, Any], Measured, Mapping[str, Any]]]) -> None:
        """Measurements from elsewhere, with their notes, all of them or none."""
        given = list(rows)
        with self.database.write(self.study) as connection:
            first = self._rows.sequence(connection, len(given)) - len(given) + 1
            cause = self._rows.cause(connection)
            events = [
                {
                    "study_id": self.study,
                    "sequence": first + i,
                    "time": self._rows.now(),
                    "kind": "added",
                    "detail": {"notes": dict(notes)} if notes else None,
                    **(cause if i == 0 else {**cause, "request": None, "digest": None}),
                }
                for i, (_, _, notes) in enumerate(given)
            ]
            if events:
                connection.execute(insert(schema.events), events)
            measured = [
                row
                for i, (params, values, _) in enumerate(given)
                for row in self._rows.measurements(first + i, params, values, None, None, True)
            ]
            if measured:
                connection.execute(insert(schema.measurements), measured)

    # -- the study ----------------------------------------------------------------------------

    @retried
    def study_row(self) -> Row[Any]:
        """How far the study is: sequence, revision and problem."""
        with self.database.read() as connection:
            return self._rows.study(connection)

    @retried
    def save_recommendation(self, found: "Recommendation", kind: str, sequence: int) -> None:
        """Store an answer, unless it is the one that was stored last."""
        said = {
            "sequence": sequence,
            "kind": kind,
            "params": found.params,
            "objective": found.objective,
            "probability": found.probability,
            "confident": found.confident,
            "confirmed": found.confirmed,
        }
        stored = schema.recommendations
        with self.database.write(self.study) as connection:
            last = connection.execute(
                select(*(stored.c[name] for name in said))
                .where(stored.c.study_id == self.study)
                .order_by(stored.c.id.desc())
                .limit(1)
            ).first()
            if last is None or last._asdict() != said:
                row = {**said, "interval": found.interval, "made": self._rows.now()}
                connection.execute(insert(stored).values(study_id=self.study, **row))

    # -- leases -------------------------------------------------------------------------------

    @retried
    def renew(self, held: Sequence[tuple[int, int]], lease: float) -> list[tuple[int, int]]:
        """Renew the leases of attempts (job, attempt); returns those that are not open any more."""
        with self.database.write(self.study) as connection:
            return renew(self._rows, connection, held, lease)

    @retried
    def adopt(self, number: int, attempt: int, owner: str, lease: float) -> bool:
        """An attempt goes on though its owner is gone, and another one has it now; False if its
        owner is not gone, or it is over."""
        with self.database.read() as connection:
            gone = expired_attempts(self._rows, connection, ())
        if (number, attempt) not in {(row.job, row.number) for row in gone}:
            return False
        with self.database.write(self.study) as connection:
            return adopt(self._rows, connection, (number, attempt), owner, lease)

    @retried
    def reap(self, but: Collection[tuple[int, int]] = ()) -> int:
        """Give back the jobs of attempts whose lease has run out, or whose owner is dead.

        but  attempts (job, attempt) that are known to be alive
        """
        with self.database.read() as connection:
            if not expired_attempts(self._rows, connection, but):
                return 0
        itself = self.on_behalf_of(None)._rows  # it happens by itself, whoever looks
        with self.database.write(self.study) as connection:
            gone = expired_attempts(self._rows, connection, but)
            for row in gone:
                job = self._rows.job(connection, row.job)
                fail_attempt(
                    itself, connection, self.policy, job, row, "its owner is gone", "lost", True
                )
            return len(gone)
