"""Transactions that a database server interrupted are made again."""

import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from calamint.errors import ConnectionLostError

P = ParamSpec("P")
R = TypeVar("R")

# Seconds: a server that is restarted is there again by then; and between attempts.
RETRY_SECONDS = 10.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


def retried(transaction: Callable[P, R]) -> Callable[P, R]:
    """A function that is one transaction; nothing is stored of one that is interrupted."""

    @wraps(transaction)
    def again(*arguments: P.args, **named: P.kwargs) -> R:
        until, pause = time.monotonic() + RETRY_SECONDS, _FIRST_PAUSE
        while True:
            try:
                return transaction(*arguments, **named)
            except ConnectionLostError:
                if time.monotonic() > until:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    return again
