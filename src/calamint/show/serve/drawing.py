"""Asking for what takes long: it is drawn once in the background, and shown until it is renewed."""

import json
import logging
import multiprocessing
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any, final

from calamint.run import Database
from calamint.show.serve.draw import Drawing, draw_what_is_asked

LOG = logging.getLogger("calamint.serve")
# Characters of drawings that are kept, and how many drawings.
_LARGEST_KEPT, _MOST_KEPT = 150_000_000, 500
# Requests that wait; nobody looks any more at those that came first.
_MOST_WAITING = 40
# Seconds between drawings of the same thing, and for as long as it takes.
_PAUSE = 1.0


@final
@dataclass(frozen=True)
class Wanted:
    """Something to draw of a study.

    what     "recommendation", "belief", or the name of a plot
    options  of what draws it, as JSON
    """

    study: int
    what: str
    options: str = "{}"

    @staticmethod
    def of(study: int, what: str, **options: Any) -> "Wanted":
        return Wanted(study, what, json.dumps(options))


@final
class Drawings:
    """Drawings of a storage's studies, made one after the other.

    The process that makes them is started when something is asked for, and again if it is killed.
    """

    def __init__(self, database: Database, trust: bool, drew: Callable[[int], None]) -> None:
        """drew: called with a study of which something was drawn"""
        self._database, self._trust, self._drew = database, trust, drew
        self._made: OrderedDict[Wanted, Drawing] = OrderedDict()
        self._waiting: dict[Wanted, float] = {}  # and the time before which it is not made
        self._pauses: dict[Wanted, float] = {}
        self._news = threading.Condition()
        self._over = False
        self._thread: threading.Thread | None = None
        self._process: Any = None
        self._connection: Connection | None = None

    def ask(self, wanted: Wanted, sequence: int) -> Drawing | None:
        """What was drawn last, if anything; it is made again if the study has gone on since."""
        with self._news:
            made = self._made.get(wanted)
            if made is not None:
                self._made.move_to_end(wanted)
            if made is None or made.sequence < sequence:
                if self._thread is None or not self._thread.is_alive():
                    self._thread = threading.Thread(target=self._work, daemon=True, name="drawing")
                    self._thread.start()
                self._waiting.pop(wanted, None)  # the newest is last
                self._waiting[wanted] = self._pauses.get(wanted, 0.0)
                if len(self._waiting) > _MOST_WAITING:
                    del self._waiting[next(iter(self._waiting))]
                self._news.notify()
            return made

    def known(self, wanted: Wanted) -> Drawing | None:
        """What was drawn last, if anything."""
        with self._news:
            return self._made.get(wanted)

    def stop(self) -> None:
        with self._news:
            self._over = True
            self._news.notify()
        if self._process is not None:
            self._process.kill()
            self._process.join(5)

    def _work(self) -> None:
        while (wanted := self._next()) is not None:
            start = time.monotonic()
            try:
                made = self._draw(wanted)
            except Exception:
                LOG.exception("%s could not be drawn", wanted)
                made = Drawing('<p role="alert">This could not be drawn.</p>', -1)
            took = time.monotonic() - start
            with self._news:
                if self._over:
                    return
                self._made[wanted] = replace(made, seconds=took)
                self._made.move_to_end(wanted)
                self._pauses[wanted] = time.monotonic() + max(took, _PAUSE)
                while (
                    sum(len(each.html) for each in self._made.values()) > _LARGEST_KEPT
                    or len(self._made) > _MOST_KEPT
                ):
                    forgotten, _ = self._made.popitem(last=False)
                    self._pauses.pop(forgotten, None)
            self._drew(wanted.study)

    def _next(self) -> Wanted | None:
        """What was asked for last, of what may be made now; what was never made comes first. None
        when all is over."""
        with self._news:
            while not self._over:
                now = time.monotonic()
                ready = [each for each, start in self._waiting.items() if start <= now]
                if ready:
                    new = [each for each in ready if each not in self._made]
                    chosen = (new or ready)[-1]
                    del self._waiting[chosen]
                    return chosen
                first = min(self._waiting.values(), default=None)
                self._news.wait(None if first is None else first - now)
            return None

    def _draw(self, wanted: Wanted) -> Drawing:
        for _ in range(2):
            try:
                if self._process is None or not self._process.is_alive():
                    self._start()
                assert self._connection is not None
                self._connection.send((wanted.study, wanted.what, json.loads(wanted.options)))
                made: Drawing = self._connection.recv()
                return made
            except (EOFError, OSError):
                if self._over:
                    break
                self._process.join(1)
        ended = "The process that draws was ended twice: has the machine enough memory?"
        return Drawing(f'<p role="alert">{ended}</p>', -1)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # threads are not forked well
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=draw_what_is_asked,
            args=(
                theirs,
                self._database.url.render_as_string(hide_password=False),
                self._trust,
            ),
            daemon=True,
            name="calamint-draw",
        )
        self._process.start()
        theirs.close()
