"""Where time is read from: the machine's clock, or a virtual one for simulations."""

import time
from collections.abc import Mapping
from typing import final


class Clock:
    """The machine's clock, in seconds from some moment."""

    def now(self) -> float:
        return time.perf_counter()

    def start(self) -> None:
        """A decision begins."""

    def thought(self, kind: str) -> None:
        """A decision of this kind was just computed; a virtual clock may let time pass for it."""


@final
class VirtualClock(Clock):
    """A clock that stands still until it is moved.

    thinking  seconds that a decision takes, by kind ("full", "partial", …), none where it does not
              say; without it decisions take the time that they really take
    """

    def __init__(self, thinking: Mapping[str, float] | None = None) -> None:
        self.time = 0.0
        self.thinking = thinking
        self._since: float | None = None

    def now(self) -> float:
        """Virtual time; while a decision is being computed, and counted, it passes as it does."""
        if self._since is None:
            return self.time
        return self.time + time.perf_counter() - self._since

    def start(self) -> None:
        if self.thinking is None:
            self._since = time.perf_counter()

    def thought(self, kind: str) -> None:
        if self.thinking is None:
            self.time = self.now()
            self._since = None
        else:
            self.time += self.thinking.get(kind, 0.0)

    def move(self, to: float) -> None:
        self.time = max(self.time, to)
