"""One job in a worker process: listened to, ended when it times out or is cancelled."""

import errno
import json
import logging
import os
import queue
import secrets
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from calamint.run.execute.base import JobResult, SpooledFile
from calamint.run.execute.pool import TERMINATION_SECONDS, WorkerPool, WorkerProcess
from calamint.run.execute.worker import cause_of_exit, descendants, kill, kill_marked
from calamint.run.jobs import Job

LOG = logging.getLogger("calamint")
# Bytes of a result, and of each of a job's outputs; what is beyond is cut out of the middle.
LONGEST_RESULT = 1_000_000
LONGEST_OUTPUT = 1_000_000
_TAIL = 100_000
_LOOK = 0.25


@final
class JobProcess:
    """A job in a worker, with the thread that listens to it.

    Raises:
        OSError: If it cannot be started.
    """

    def __init__(
        self,
        job: Job,
        payload: Mapping[str, Any],
        folder: Path,
        limit: float | None,
        ended: "queue.SimpleQueue[JobResult]",
        pool: WorkerPool | None,
    ) -> None:
        """pool: where to take a worker from and to leave it; without one, it has its own."""
        self.job, self.folder, self.limit, self.ended = job, folder, limit, ended
        self.result = Path(payload["result"])
        self.command = "argv" in payload
        self.reason: str | None = None
        self.timed_out = False
        self.mark = secrets.token_hex(8)
        self.outputs = {name: _Output(folder / f"{name}.txt") for name in ("stdout", "stderr")}
        self.began = time.monotonic()
        self._pool, self._over, self._lock = pool, False, threading.Lock()
        reads, theirs = _pipes(3)
        self._streams = [os.fdopen(read, "rb", buffering=0) for read in reads]
        worker = None if pool is None else pool.take()
        try:
            worker = WorkerProcess(theirs) if worker is None else worker
            told = {"mark": self.mark, "reuse": pool is not None}
            worker.send({**payload, **told}, theirs)
        except BaseException:
            for stream in self._streams:
                stream.close()
            if worker is not None:
                worker.close()
            raise
        finally:
            for write in theirs:
                os.close(write)
        self.worker, self.process = worker, worker.process
        self.thread = threading.Thread(target=self._listen, daemon=True)
        try:
            self.thread.start()
        except RuntimeError as error:  # the system has no more threads
            self._kill_all()
            self._close()
            raise OSError(errno.EAGAIN, str(error)) from error

    def stop(self, reason: str) -> None:
        with self._lock:
            if self._over or self.reason is not None:
                return
            self.reason = reason
        threading.Thread(target=self._kill, daemon=True).start()

    def _kill(self) -> None:
        """Ask the process and all that it started to end, then end them."""
        started = descendants(self.process.pid)
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(TERMINATION_SECONDS)
        self._kill_all(started)

    def _kill_all(self, started: Iterable[int] = ()) -> None:
        """End the process and all that it started, or report it."""
        if self.process.returncode is None:  # else its id may be somebody else's by now
            started = {*started, *descendants(self.process.pid)}
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self._report((*kill(started), *kill_marked(self.mark, self.worker.mark)))

    def _report(self, left: Iterable[int]) -> None:
        for pid in left:
            LOG.warning("job %d left process %d behind", self.job.number, pid)

    def _listen(self) -> None:
        said, stays = b"", False
        try:
            said = self._read_all()
            stays = self._stays(said)
            outcome = self._outcome(said, time.monotonic() - self.began)
        except BaseException as error:  # whatever happens, the job has ended
            words = f"its result cannot be read: {type(error).__name__}: {error}"
            seconds = time.monotonic() - self.began
            outcome = JobResult(self.job, error=words, cause="infrastructure", seconds=seconds)
        if stays:
            self._report(kill_marked(self.mark))
        else:
            self._kill_all()
        self._close(stays)
        self.ended.put(outcome)

    def _stays(self, said: bytes) -> bool:
        """Whether the worker waits for another job; from now on, this one cannot be stopped."""
        with self._lock:
            self._over = True
            waits = said.startswith(b"\n ") and len(said) <= LONGEST_RESULT
            return waits and self.reason is None and self._pool is not None

    def _read_all(self) -> bytes:
        """Everything that is written until the job ends; what it sent as its result."""
        said = _Result()
        sinks = [self.outputs["stdout"], self.outputs["stderr"], said]
        with selectors.DefaultSelector() as selector:
            for stream, sink in zip(self._streams, sinks, strict=True):
                selector.register(stream, selectors.EVENT_READ, sink)
            answered = False
            while selector.get_map():
                self._look_at_the_time()
                over = answered or self.process.poll() is not None
                ready = selector.select(0 if over else _LOOK)
                for key, _ in ready:
                    data = os.read(key.fd, 65536)
                    key.data.write(data)
                    if not data:
                        selector.unregister(key.fileobj)
                        answered = answered or key.data is said
                if over and not ready:
                    break  # what it started keeps its output open, and ends now
        while not said.data.startswith(b"\n ") and self.process.poll() is None:
            self._look_at_the_time()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_LOOK)
        return said.data

    def _close(self, stays: bool = False) -> None:
        """Leave no process that nobody needs, and no open file."""
        with self._lock:
            self._over = True
        if stays and self._pool is not None:
            self._pool.give(self.worker)
        else:
            self.worker.close()
        for stream in self._streams:
            with suppress(OSError):
                stream.close()
        for output in self.outputs.values():
            output.close()

    def _look_at_the_time(self) -> None:
        if self.limit is None or self.timed_out or self.reason is not None:
            return
        if time.monotonic() - self.began > self.limit:
            self.timed_out = True
            self.stop(f"it took longer than {self.limit:g} s")

    def _outcome(self, said: bytes, seconds: float) -> JobResult:
        result = _read(said) or self._read_file()
        if result is None:
            # Without a word it had not begun.
            cause = cause_of_exit(self.process.returncode) if said else "infrastructure"
            result = {"error": self._how_it_died() + self._last_words(), "cause": cause}
        if len(said) > LONGEST_RESULT:
            words = f"its result has more than {LONGEST_RESULT} bytes"
            result = {"error": words, "cause": "refused"}
        if self.reason is not None and "values" not in result:
            result = {"error": self.reason, "cause": "timeout" if self.timed_out else None}
        elif "error" in result and self.command:
            result["error"] += self._last_words()
        self._tidy()
        return JobResult(
            self.job,
            result.get("values"),
            result.get("error"),
            result.get("unloadable"),
            result.get("seconds", seconds),
            result.get("cause"),
            SpooledFile(self.result) if self.result.exists() else None,
        )

    def _read_file(self) -> dict[str, Any] | None:
        """Its result from the file, if it closed the pipe."""
        try:
            return _read(self.result.read_bytes())
        except OSError:
            return None

    def _how_it_died(self) -> str:
        code = self.process.returncode
        if code is not None and code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:  # a real-time signal
                name = f"signal {-code}"
            perhaps = ", perhaps for want of memory" if name == "SIGKILL" else ""
            return f"its process was ended by {name}{perhaps}"
        return f"its process ended with exit code {code} before it returned"

    def _last_words(self) -> str:
        lines = self.outputs["stderr"].end.decode(errors="replace").strip().splitlines()
        return f" ({lines[-1][:300]})" if lines else ""

    def _tidy(self) -> None:
        """Leave no empty files, and no empty folder."""
        with suppress(OSError):
            for name in ("stdout.txt", "stderr.txt"):
                file = self.folder / name
                if file.exists() and file.stat().st_size == 0:
                    file.unlink()
            self.folder.rmdir()


def _pipes(count: int) -> tuple[list[int], list[int]]:
    """The ends to read from, and those to write to; all, or none."""
    ends: list[tuple[int, int]] = []
    try:
        ends.extend(os.pipe() for _ in range(count))
    except OSError:
        for end in (end for pair in ends for end in pair):
            os.close(end)
        raise
    return [read for read, _ in ends], [write for _, write in ends]


def _read(said: bytes) -> dict[str, Any] | None:
    try:
        result = json.loads(said)
    except ValueError:
        return None
    return result if isinstance(result, dict) else None


@final
class _Result:
    """What comes through the pipe for results, and a little more than is accepted."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        if len(self.data) <= LONGEST_RESULT:
            self.data += data


@final
class _Output:
    """A file that never grows beyond what is allowed, and never fails: its beginning and its end.

    end  its last bytes so far
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        self._file = os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0)
        self._written = self._cut = 0
        self.end = b""

    def write(self, data: bytes) -> None:
        self.end = (self.end + data)[-_TAIL:]
        room = max(LONGEST_OUTPUT - self._written, 0)
        self._put(data[:room])
        self._written += len(data[:room])
        self._cut += len(data) - len(data[:room])

    def close(self) -> None:
        if self._cut:
            tail = self.end[-min(self._cut, _TAIL) :]
            if self._cut > len(tail):
                self._put(f"\n[{self._cut - len(tail)} bytes were cut here]\n".encode())
            self._put(tail)
        with suppress(OSError):
            self._file.close()

    def _put(self, data: bytes) -> None:
        with suppress(OSError):  # output is not worth a job
            self._file.write(data)
