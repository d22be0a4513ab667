"""Turns: one process decides at a time for a study; others wait, and use what it decided."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from sqlalchemy import Connection

from calamint.run.signals import heartbeats
from calamint.run.store import schema
from calamint.run.store.database import Database
from calamint.run.store.liveness import LeaseClock, owner
from calamint.run.store.retries import retried
from calamint.run.store.rows import Rows

# Seconds that whoever decides is believed to live; it is renewed three times as often.
DECIDING_LEASE = 30.0
_SHORTEST_WAIT, _LONGEST_WAIT = 0.002, 0.05


@final
class Turn:
    """Whose turn it is to decide, by a lease that is renewed; ours ends when a job is booked."""

    def __init__(self, database: Database, study: int, clock: LeaseClock) -> None:
        self.database, self.study, self.clock = database, study, clock
        self._rows = Rows(study, time.time, clock)
        # Of this object, as others in this process may decide, too.
        self._name = f"{owner()}#{secrets.token_hex(4)}"
        self._wait = _SHORTEST_WAIT

    @retried
    def take(self) -> bool:
        """Whether it is our turn; if not, after waiting a little, longer each time."""
        with self.database.read() as connection:
            free = self._is_free(connection)
        if free:
            with self.database.write(self.study) as connection:
                if self._is_free(connection):
                    self._renew(connection)
                    self._wait = _SHORTEST_WAIT
                    return True
        time.sleep(self._wait)
        self._wait = min(1.5 * self._wait, _LONGEST_WAIT)
        return False

    @retried
    def give_up(self) -> None:
        """If it is still ours: nothing was booked."""
        with self.database.write(self.study) as connection:
            if self._rows.study(connection).decider == self._name:
                self._rows.update_study(connection, decider=None)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Renew the lease while a decision is being made."""

        @retried
        def renew() -> None:
            with self.database.write(self.study) as connection:
                if self._rows.study(connection).decider == self._name:
                    self._renew(connection)

        with heartbeats(DECIDING_LEASE / 3, renew):
            yield

    def _is_free(self, connection: Connection) -> bool:
        study = self._rows.study(connection)
        return study.decider in (None, self._name) or self.clock.has_expired(
            ("decider", self.study),
            study.decider.partition("#")[0],
            study.decider_boot,
            study.decider_until,
            study.decider_renewals,
            DECIDING_LEASE,
        )

    def _renew(self, connection: Connection) -> None:
        self._rows.update_study(
            connection,
            decider=self._name,
            decider_boot=self.clock.boot,
            decider_until=self.clock.now() + DECIDING_LEASE,
            decider_renewals=schema.studies.c.decider_renewals + 1,
        )
