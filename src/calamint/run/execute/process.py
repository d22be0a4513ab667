"""The process of one job: started, listened to, ended when it times out or is cancelled."""

import errno
import json
import logging
import os
import pickle
import queue
import secrets
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from calamint.run.execute.base import JobResult
from calamint.run.execute.worker import MARK, descendants, kill, kill_marked
from calamint.run.jobs import Job

LOG = logging.getLogger("calamint")
# How long a process that is told to stop may take to do so.
TERMINATION_SECONDS = 2.0
# Bytes of a result, and of each of a job's outputs; what is beyond is cut out of the middle.
LONGEST_RESULT = 1_000_000
LONGEST_OUTPUT = 1_000_000
_TAIL = 100_000
_LOOK = 0.25
_WORKER = Path(__file__).with_name("worker.py")


@final
class JobProcess:
    """A worker with the thread that listens to it.

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
    ) -> None:
        self.job, self.folder, self.limit, self.ended = job, folder, limit, ended
        self.result = Path(payload["result"])
        self.command = "argv" in payload
        self.reason: str | None = None
        self.timed_out = False
        self.mark = secrets.token_hex(8)
        self.outputs = {name: _Output(folder / f"{name}.txt") for name in ("stdout", "stderr")}
        self.began = time.monotonic()
        answer, pipe = os.pipe()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", str(_WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, MARK: self.mark},
                pass_fds=(pipe,),
                start_new_session=True,
            )
        except BaseException:
            os.close(answer)
            raise
        finally:
            os.close(pipe)
        self._answer = os.fdopen(answer, "rb", buffering=0)
        assert self.process.stdin is not None
        data = pickle.dumps({**payload, "pipe": pipe})
        with suppress(BrokenPipeError):
            self.process.stdin.write(len(data).to_bytes(8, "big") + data)
            self.process.stdin.flush()
        self.thread = threading.Thread(target=self._listen, daemon=True)
        try:
            self.thread.start()
        except RuntimeError as error:  # the system has no more threads
            self._kill_all()
            self._close()
            raise OSError(errno.EAGAIN, str(error)) from error

    def stop(self, reason: str) -> None:
        if self.reason is None:
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
        for pid in (*kill(started), *kill_marked(self.mark)):
            LOG.warning("job %d left process %d behind", self.job.number, pid)

    def _listen(self) -> None:
        try:
            said = self._read_all()
            outcome = self._outcome(said, time.monotonic() - self.began)
        except BaseException as error:  # whatever happens, the job has ended
            self._kill_all()
            words = f"its result cannot be read: {type(error).__name__}: {error}"
            seconds = time.monotonic() - self.began
            outcome = JobResult(self.job, error=words, cause="infrastructure", seconds=seconds)
        self._close()
        self.ended.put(outcome)

    def _read_all(self) -> bytes:
        """Everything that the process writes until it ends; what it sent as its result."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        said = _Result()
        sinks: dict[Any, Any] = {
            self.process.stdout: self.outputs["stdout"],
            self.process.stderr: self.outputs["stderr"],
            self._answer: said,
        }
        with selectors.DefaultSelector() as selector:
            for stream, sink in sinks.items():
                selector.register(stream, selectors.EVENT_READ, sink)
            while selector.get_map():
                self._look_at_the_time()
                over = self.process.poll() is not None
                ready = selector.select(0 if over else _LOOK)
                for key, _ in ready:
                    data = os.read(key.fd, 65536)
                    key.data.write(data)
                    if not data:
                        selector.unregister(key.fileobj)
                if over and not ready:
                    break  # what it started keeps its output open, and ends now
        while self.process.poll() is None:
            self._look_at_the_time()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_LOOK)
        self._kill_all()
        return said.data

    def _close(self) -> None:
        """Leave no process and no open file behind."""
        process = self.process
        with suppress(subprocess.TimeoutExpired):
            process.wait(TERMINATION_SECONDS)
        for stream in (process.stdin, process.stdout, process.stderr, self._answer):
            with suppress(OSError):
                if stream is not None:
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
            result = {"error": self._how_it_died() + self._last_words(), "cause": "crashed"}
        if len(said) > LONGEST_RESULT:
            words = f"its result has more than {LONGEST_RESULT} bytes"
            result = {"error": words, "cause": "refused"}
        if self.reason is not None and "values" not in result:
            cause = "timeout" if self.timed_out else None
            result = {"error": self.reason, "cause": cause}
        elif "error" in result and self.command:
            result["error"] += self._last_words()
        self._tidy()
        return JobResult(
            self.job,
            result.get("values"),
            result.get("error"),
            result.get("unloadable"),
            seconds,
            result.get("cause"),
            self.result if self.result.exists() else None,
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
