"""The process of one job: started, waited for, ended when it times out or is cancelled."""

import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from calamint.run.execute.base import JobResult
from calamint.run.jobs import Job

# How long a process that is told to stop may take to do so.
TERMINATION_SECONDS = 2.0
_WORKER = Path(__file__).with_name("worker.py")


@final
class JobProcess:
    """A worker with the thread that waits for it."""

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
        # A folder may be there from a database that was deleted.
        for file in ("answer", "result"):
            if file in payload:
                Path(payload[file]).unlink(missing_ok=True)
        self.command = "argv" in payload
        self.reason: str | None = None
        self.began = time.monotonic()
        with (folder / "stdout.txt").open("wb") as out, (folder / "stderr.txt").open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-P", str(_WORKER)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        assert self.process.stdin is not None
        data = pickle.dumps(dict(payload))
        with suppress(BrokenPipeError):
            self.process.stdin.write(len(data).to_bytes(8, "big") + data)
            self.process.stdin.flush()
        self.thread = threading.Thread(target=self._wait, daemon=True)
        self.thread.start()

    def stop(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason
            threading.Thread(target=self._kill, daemon=True).start()

    def _kill(self) -> None:
        """Ask the process and all that it started to end, then end them."""
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(TERMINATION_SECONDS)
            os.killpg(self.process.pid, signal.SIGKILL)

    def _wait(self) -> None:
        try:
            self.process.wait(self.limit)
        except subprocess.TimeoutExpired:
            self.reason = f"it took longer than {self.limit:g} s"
            self._kill()
            self.process.wait()
        # Whatever it started ends with it.
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with suppress(OSError):
            assert self.process.stdin is not None
            self.process.stdin.close()
        seconds = time.monotonic() - self.began
        try:
            outcome = self._outcome(seconds)
        except BaseException as error:  # whatever happens, the job has ended
            words = f"its result cannot be read: {type(error).__name__}: {error}"
            outcome = JobResult(self.job, error=words, seconds=seconds)
        self.ended.put(outcome)

    def _outcome(self, seconds: float) -> JobResult:
        try:
            result = json.loads(self.result.read_text())
            self.result.unlink()
        except (OSError, ValueError):
            result = {"error": self._how_it_died() + self._last_words()}
        if self.reason is not None and "values" not in result:
            result = {"error": self.reason}
        elif "error" in result and self.command:
            result["error"] += self._last_words()
        outcome = JobResult(
            self.job,
            result.get("values"),
            result.get("error"),
            result.get("unloadable"),
            seconds,
        )
        self._tidy()
        return outcome

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
        with suppress(OSError):
            with (self.folder / "stderr.txt").open("rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(file.tell() - 4000, 0))
                lines = file.read().decode(errors="replace").strip().splitlines()
            if lines:
                return f" ({lines[-1][:300]})"
        return ""

    def _tidy(self) -> None:
        """Leave no empty files."""
        with suppress(OSError):
            for name in ("stdout.txt", "stderr.txt"):
                file = self.folder / name
                if file.exists() and file.stat().st_size == 0:
                    file.unlink()
            self.folder.rmdir()
