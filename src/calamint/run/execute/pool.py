"""Worker processes, which run one job after the other, and are kept for the next one."""

import os
import pickle
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from calamint.run.execute.worker import MARK

# How long a process that is told to stop may take to do so.
TERMINATION_SECONDS = 2.0
_WORKER = Path(__file__).with_name("worker.py")


@final
class WorkerProcess:
    """A process that runs the jobs that it is sent; it ends with this one.

    mark  of its environment, by which it and its forks can be found

    Raises:
        OSError: If it cannot be started.
    """

    def __init__(self, outputs: Sequence[int]) -> None:
        """outputs: standard output and standard error until it has a job."""
        self.mark = secrets.token_hex(8)
        self._control, theirs = socket.socketpair()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", str(_WORKER)],
                stdin=theirs.fileno(),
                stdout=outputs[0],
                stderr=outputs[1],
                env={**os.environ, MARK: self.mark},
                start_new_session=True,
            )
        except BaseException:
            self._control.close()
            raise
        finally:
            theirs.close()

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def send(self, payload: Mapping[str, Any], pipes: Sequence[int]) -> None:
        """Have it run a job, with its pipes for output, errors and the result."""
        data = pickle.dumps(payload)
        with suppress(BrokenPipeError, ConnectionResetError):  # it ended: its pipes say so
            socket.send_fds(self._control, [len(data).to_bytes(8, "big")], pipes)
            self._control.sendall(data)

    def close(self) -> None:
        """Have it end, and wait for that."""
        with suppress(OSError):
            self._control.close()
        try:
            self.process.wait(TERMINATION_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(TERMINATION_SECONDS)


@final
class WorkerPool:
    """Workers that have nothing to do."""

    def __init__(self) -> None:
        self._idle: list[WorkerProcess] = []
        self._closed = False
        self._lock = threading.Lock()

    def take(self) -> WorkerProcess | None:
        """A worker that lives, the last that was used first; None if there is none."""
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive:
                    return worker
                worker.close()
        return None

    def give(self, worker: WorkerProcess) -> None:
        """Keep a worker for another job."""
        with self._lock:
            if not self._closed:
                self._idle.append(worker)
                return
        worker.close()

    def close(self) -> None:
        """End all workers; those that still have a job end when they are given back."""
        with self._lock:
            self._closed, idle = True, self._idle
            self._idle = []
        for worker in idle:
            worker.close()
