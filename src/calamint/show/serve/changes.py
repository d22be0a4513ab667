"""Telling those who wait that a study has changed, whoever changed it."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from typing import final

from starlette.concurrency import run_in_threadpool

from calamint.run import Database, study_sequence

# Seconds between looks at what other processes did.
_LOOK = 0.25
_NEVER = -1


@final
@dataclass(frozen=True)
class Seen:
    """What is known of a study.

    sequence  the number of its events       drawn  how many plots were made of it
    """

    sequence: int = _NEVER
    drawn: int = 0


@final
class Changes:
    """Waits on behalf of many: a study is looked at once, however many wait for it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._seen: dict[int, Seen] = {}
        self._waiting: Counter[int] = Counter()
        self._news: dict[int, asyncio.Event] = {}
        self._poked: dict[int, asyncio.Event] = {}
        self._looking: dict[int, asyncio.Task[None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self.over = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()

    def stop(self) -> None:
        """Everybody who waits goes on."""
        self.over = True
        for study in list(self._news):
            self._tell(study)
        for task in self._looking.values():
            task.cancel()

    def stop_soon(self) -> None:
        """The same, from a signal's handler."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.stop)

    def seen(self, study: int) -> Seen:
        return self._seen.get(study, Seen())

    async def after(self, study: int, seen: Seen, seconds: float) -> Seen:
        """What is known once it is more than `seen`, or when the time is over."""
        until = time.monotonic() + seconds
        self._waiting[study] += 1
        try:
            if study not in self._looking or self._looking[study].done():
                self._poked[study] = asyncio.Event()
                self._looking[study] = asyncio.create_task(self._look(study))
            while self.seen(study) == seen or self.seen(study).sequence == _NEVER:
                left = until - time.monotonic()
                if left <= 0 or self.over:
                    break
                event = self._news.setdefault(study, asyncio.Event())
                try:
                    await asyncio.wait_for(event.wait(), left)
                except TimeoutError:
                    break
            return self.seen(study)
        finally:
            self._waiting[study] -= 1

    def poke(self, study: int) -> None:
        """It was changed here: look at once. From any thread."""
        self._call(self._poke, study)

    def drew(self, study: int) -> None:
        """A plot of it was made. From any thread."""
        self._call(self._drew, study)

    def _call(self, what: object, study: int) -> None:
        if self._loop is not None and not self._loop.is_closed() and not self.over:
            self._loop.call_soon_threadsafe(what, study)  # type: ignore[arg-type]

    def _poke(self, study: int) -> None:
        if study in self._poked:
            self._poked[study].set()

    def _drew(self, study: int) -> None:
        seen = self.seen(study)
        self._seen[study] = Seen(seen.sequence, seen.drawn + 1)
        self._tell(study)

    def _tell(self, study: int) -> None:
        event = self._news.pop(study, None)
        if event is not None:
            event.set()

    async def _look(self, study: int) -> None:
        """While anybody waits."""
        while self._waiting[study] and not self.over:
            poked = self._poked[study]
            poked.clear()
            try:
                sequence = await run_in_threadpool(study_sequence, self.database, study)
            except Exception:
                sequence = None  # a storage that is away for a moment
            seen = self.seen(study)
            if sequence is not None and sequence != seen.sequence:
                self._seen[study] = Seen(sequence, seen.drawn)
                self._tell(study)
            try:
                await asyncio.wait_for(poked.wait(), _LOOK)
            except TimeoutError:
                continue
