"""Who lives: leases keep what they lease while their owner, a process, lives and renews them.

Leases are timed by a clock that cannot be set. On Linux that is the time since the machine was
booted, suspension included, with the id of that boot: processes of one boot compare leases. Where
boots differ (another machine), or the system has no such id, each process counts by its own clock
how long a lease was not renewed. The wall clock is only for people to read.
"""

import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import final


@final
@dataclass
class LeaseClock:
    """Seconds since a boot, and which boot; or virtual time.

    seen  for leases of other boots: how often each was renewed, and since when it was not
    """

    boot: str
    now: Callable[[], float]
    seen: dict[tuple[str, int], tuple[int, float]] = field(default_factory=dict)

    @staticmethod
    def of_machine() -> "LeaseClock":
        return LeaseClock(clock_id(), boot_seconds)

    @staticmethod
    def virtual(now: Callable[[], float]) -> "LeaseClock":
        """For simulations: all processes have the same time."""
        return LeaseClock("virtual", now)

    def has_expired(
        self,
        key: tuple[str, int],
        owner: str,
        boot: str | None,
        until: float,
        renewals: int,
        lease: float,
    ) -> bool:
        """Whether a lease has run out, or its owner is known to be dead.

        Args:
            key: What is leased.
            owner: Who has it.
            boot: By which clock it lasts `until`.
            renewals: How often it was renewed.
            lease: How many seconds a renewal is good for.
        """
        if is_dead(owner):
            return True
        now = self.now()
        if boot == self.boot and boot:
            return until < now
        renewed, since = self.seen.get(key, (-1, now))
        if renewed != renewals:
            self.seen[key] = renewals, now
            return False
        return now - since > lease


def owner() -> str:
    """An identifier of this process, from which others that can see it tell whether it lives."""
    return _owner(os.getpid())


@cache
def _owner(pid: int) -> str:
    return "/".join(
        (socket.gethostname(), str(pid), _start_time(pid), boot_id(), _process_namespace())
    )


def is_dead(name: str) -> bool:
    """Whether an owner is known to be dead: process ids say that only within one boot of one
    machine, and one process namespace, as containers may share a hostname."""
    parts = name.split("/")
    if len(parts) != 5 or not parts[1].isdigit() or not parts[3] or not parts[4]:
        return False
    if (parts[3], parts[4]) != (boot_id(), _process_namespace()):
        return False
    pid = int(parts[1])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    # The process id may have been reused.
    return _start_time(pid) != parts[2]


def _start_time(pid: int) -> str:
    """When a process was started, in ticks since boot: field 22 of /proc/PID/stat, see proc(5)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            after_name = file.read().rpartition(b")")[2].split()
        return "gone" if after_name[0] == b"Z" else after_name[19].decode()
    except OSError:
        return "unknown"


@cache
def boot_id() -> str:
    """What the kernel calls this boot of this machine; empty where it does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def clock_id() -> str:
    """Of the clock that `boot_seconds` reads: a boot, in a namespace that may shift it."""
    try:
        return f"{boot_id()}/{os.readlink('/proc/self/ns/time')}" if boot_id() else ""
    except OSError:
        return boot_id()


@cache
def _process_namespace() -> str:
    """In which process ids mean what they mean here; empty where the system does not say."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def boot_seconds() -> float:
    """Seconds since the machine was booted, or some other moment that does not change."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
