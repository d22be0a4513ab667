"""What happens beside a run: Ctrl-C, and the renewal of leases."""

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from calamint.errors import StorageError

LOG = logging.getLogger("calamint")


@contextmanager
def interrupts(pressed: Callable[[int], None]) -> Iterator[None]:
    """Call `pressed` with how often Ctrl-C was; the third time it ends everything."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    presses = 0

    def handle(number: int, frame: object) -> None:  # noqa: ARG001
        nonlocal presses
        presses += 1
        pressed(presses)
        if presses > 1:
            signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def heartbeats(seconds: float, beat: Callable[[], None]) -> Iterator[None]:
    """Call `beat` every so many seconds, also while a decision is being made."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(seconds):
            try:
                beat()
            except StorageError as error:
                LOG.warning("a heartbeat failed: %s", error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
