"""The studies of a storage, opened once each for all who call."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar, final

from starlette.concurrency import run_in_threadpool

from calamint.errors import ProblemError, StorageError
from calamint.run import (
    Database,
    Study,
    StudyEditor,
    StudyRecord,
    StudyView,
    study_record,
    study_records,
)
from calamint.show.serve.answers import UnknownStudyError
from calamint.show.serve.drawing import Drawings

T = TypeVar("T", bound=StudyView)
R = TypeVar("R")
# Seconds that a page waits for a study to be opened.
_SOON = 0.5
# Questions to one model that wait.
_MOST_WAITING = 50


@final
class Hub:
    """The studies of a storage.

    Each is opened up to three times, so that what is quick never waits for what is not: to decide,
    to tell and change, and to ask its model.
    """

    def __init__(self, database: Database, trust: bool, drew: Callable[[int], None]) -> None:
        """trust: whether functions that a study names are imported; drew: called with a study of
        which something was drawn"""
        if database.in_memory:
            raise ProblemError(
                "storage is in memory, which nobody else can see: write sqlite:///study.db."
            )
        self.database, self.trust = database, trust
        self.drawings = Drawings(database, trust, drew)
        self._opened: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._opening: dict[str, Future[StudyEditor]] = {}
        self._opener = ThreadPoolExecutor(2, "opening")
        self._deciding: dict[int, asyncio.Lock] = {}
        self._asking: dict[int, asyncio.Lock] = {}
        self._waiting: Counter[int] = Counter()

    def records(self) -> list[StudyRecord]:
        return study_records(self.database)

    def record(self, study: int) -> StudyRecord:
        """Raises `UnknownStudyError` if there is no such study."""
        found = study_record(self.database, study)
        if found is None:
            raise UnknownStudyError(f"study {study} does not exist here.")
        return found

    def study(self, record: StudyRecord) -> Study:
        """To decide with."""
        return self._open("decide", record, Study.load)

    def editor(self, record: StudyRecord) -> StudyEditor:
        """To tell, correct and change with."""
        return self._open("edit", record, StudyEditor.of)

    def editor_soon(self, record: StudyRecord) -> StudyEditor | None:
        """The same for a page; None if opening it takes longer, which goes on in the background."""
        with self._lock:
            future = self._opening.get(record.uid)
            if future is None:
                future = self._opening[record.uid] = self._opener.submit(self.editor, record)
        try:
            return future.result(_SOON)
        except TimeoutError:
            return None
        finally:
            if future.done():  # it is known, or has failed and is tried again
                self._opening.pop(record.uid, None)

    def view(self, record: StudyRecord) -> StudyView:
        """To ask the model."""
        return self._open("look", record, StudyView.of)

    async def ask_model(self, record: StudyRecord, ask: Callable[[StudyView], R]) -> R:
        """What a study's model says: one question at a time, for which others wait without a
        thread.

        Raises:
            StorageError: If too many wait.
        """
        if self._waiting[record.id] >= _MOST_WAITING:
            raise StorageError(
                "too many requests wait for the model of this study: try again.", transient=True
            )
        self._waiting[record.id] += 1
        try:
            async with self._asking.setdefault(record.id, asyncio.Lock()):
                return await run_in_threadpool(lambda: ask(self.view(record)))
        finally:
            self._waiting[record.id] -= 1

    def deciding(self, study: int) -> asyncio.Lock:
        """Held while this server decides: others wait without a thread."""
        return self._deciding.setdefault(study, asyncio.Lock())

    def _open(self, purpose: str, record: StudyRecord, load: Callable[..., T]) -> T:
        key = purpose, record.uid
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:  # others wait for it, and not for other studies
            if key not in self._opened:
                self._opened[key] = load(self.database, record.name, trust=self.trust)
            found: T = self._opened[key]
            return found
