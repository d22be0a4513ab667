"""Independent pieces of work on several threads.

What is computed does not depend on their number: pieces are the same and are put together in order.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
S = TypeVar("S", bound="_Lockable")

_pool: ContextVar[ThreadPoolExecutor | None] = ContextVar("pool", default=None)


def usable_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Lockable(Protocol):
    _lock: "threading.RLock"


def synchronized(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], R]:
    """A method that holds the `_lock` of its object: threads may share it."""

    @wraps(method)
    def locked(self: S, /, *arguments: P.args, **named: P.kwargs) -> R:
        with self._lock:
            return method(self, *arguments, **named)

    return locked


@contextmanager
def worker_threads(count: int) -> Iterator[None]:
    """Let `parallel_map` use so many threads."""
    if count < 2:
        yield
        return
    # Made anew each time: threads do not survive a fork, and starting them takes microseconds.
    with ThreadPoolExecutor(count) as pool:
        token = _pool.set(pool)
        try:
            yield
        finally:
            _pool.reset(token)


def parallel_map(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """The function of every item, in order."""
    pool = _pool.get()
    if pool is None:
        return [function(item) for item in items]
    # In a copy of the context, so that NumPy's error state is the caller's.
    futures = [pool.submit(copy_context().run, _alone, function, item) for item in items]
    return [future.result() for future in futures]


def _alone(function: Callable[[T], R], item: T) -> R:
    _pool.set(None)  # a piece that waited for pieces of its own could wait for ever
    return function(item)
