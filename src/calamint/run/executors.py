"""Running jobs: each in a process of its own, or on a virtual clock."""

import heapq
import json
import os
import pickle
import queue
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from calamint.decide import VirtualClock
from calamint.decide.simulate import Duration, duration_of
from calamint.problem import Params, ProblemError
from calamint.problem.errors import nearest
from calamint.problem.parameters import finite
from calamint.run.jobs import Job

Work = Callable[[Params], Any]
# How long a process that is told to stop may take to do so.
_GRACE = 2.0
# Words of a command that end so name a file.
_SCRIPTS = (".py", ".sh", ".R", ".jl", ".m", ".pl", ".rb", ".js", ".lua")
_WORKER = Path(__file__).with_name("worker.py")


class TaskError(ProblemError):
    """A task that cannot be started at all, at any input."""


@final
@dataclass(frozen=True)
class Command:
    """A program: parameters come as JSON on its standard input, results are JSON on the last line
    of its output, or in the file that the variable CALAMINT_RESULT names."""

    argv: tuple[str, ...]


@final
@dataclass(frozen=True)
class Outcome:
    """How a job ended: with values, or an error; `unloadable` if its task could not be started."""

    job: Job
    values: Any = None
    error: str | None = None
    unloadable: str | None = None
    seconds: float = 0.0


class Executor(ABC):
    """Starts jobs, and says when they end."""

    def prepare(self, works: Mapping[str, Work | Command], folder: Path | None, name: str) -> None:  # noqa: ARG002
        """What each task does; files of jobs are kept in `folder`/`name`, or where they are lost
        with the process."""
        self.works = works

    @abstractmethod
    def start(self, job: Job) -> None: ...

    @abstractmethod
    def wait(self, seconds: float) -> list[Outcome]:
        """Jobs that have ended, after waiting for one for at most so long."""

    @abstractmethod
    def stop(self, job: Job) -> None:
        """End a job; it may still be among the outcomes, as an error."""

    def close(self) -> None:  # noqa: B027 - not all have something to close
        """End all jobs."""


@final
class Local(Executor):
    """Every job in a process of its own on this machine.

    timeout  seconds that a job may take: a number, or by task
    folder   where output is kept, in a folder for each job; by default beside a SQLite file
    """

    def __init__(
        self, timeout: float | Mapping[str, float] | None = None, folder: str | Path | None = None
    ) -> None:
        for value in timeout.values() if isinstance(timeout, Mapping) else [timeout]:
            number = finite(value)
            if value is not None and (number is None or number <= 0):
                raise ProblemError(f"timeout is {timeout!r}: write a positive number of seconds.")
        if folder is not None and not isinstance(folder, str | Path):
            raise ProblemError(f"folder is {folder!r}: write a path.")
        self.timeout, self._folder = timeout, folder

    def prepare(self, works: Mapping[str, Work | Command], folder: Path | None, name: str) -> None:
        import cloudpickle

        super().prepare(works, folder, name)
        # Nothing of an earlier run may reach this one.
        self._ended: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._running: dict[tuple[int, int], _Process] = {}
        for task in self.timeout if isinstance(self.timeout, Mapping) else ():
            if task not in works:
                raise ProblemError(f"timeout has {task!r}: {nearest(str(task), works)}")
        self._pickled: dict[str, bytes] = {}
        for task, work in works.items():
            if isinstance(work, Command):
                _check_command(task, work)
                continue
            try:
                self._pickled[task] = cloudpickle.dumps(work)
            except Exception as error:
                raise TaskError(
                    f"task {task!r} cannot be sent to a process of its own"
                    f" ({type(error).__name__}: {error}): write a function that holds no open"
                    " files, locks or connections."
                ) from error
        root = self._folder or folder or tempfile.mkdtemp(prefix="calamint-")
        self.root = Path(root).absolute() / name

    def start(self, job: Job) -> None:
        limit = self.timeout.get(job.task) if isinstance(self.timeout, Mapping) else self.timeout
        folder = self.root / f"job-{job.number}-{job.attempt}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TaskError(f"the folder {folder} cannot be made: {error.strerror}.") from error
        payload: dict[str, Any] = {
            "path": sys.path,
            "params": job.params,
            "result": str(folder / f".result-{secrets.token_hex(4)}"),
        }
        work = self.works[job.task]
        if isinstance(work, Command):
            payload |= _command_payload(work, job, folder)
        else:
            payload["function"] = self._pickled[job.task]
        process = _Process(job, payload, folder, limit, self._ended)
        self._running[job.number, job.attempt] = process

    def wait(self, seconds: float) -> list[Outcome]:
        ended = []
        with suppress(queue.Empty):
            ended.append(self._ended.get(timeout=max(seconds, 0.0)))
            while True:
                ended.append(self._ended.get_nowait())
        for outcome in ended:
            self._running.pop((outcome.job.number, outcome.job.attempt), None)
        return ended

    def stop(self, job: Job) -> None:
        process = self._running.get((job.number, job.attempt))
        if process is not None:
            process.stop("it was cancelled")

    def close(self) -> None:
        for process in self._running.values():
            process.stop("it was cancelled")
        for process in self._running.values():
            process.thread.join(timeout=2 * _GRACE)


class _Process:
    """A worker with the thread that waits for it."""

    def __init__(
        self,
        job: Job,
        payload: Mapping[str, Any],
        folder: Path,
        limit: float | None,
        ended: "queue.SimpleQueue[Outcome]",
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
                self.process.wait(_GRACE)
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
            outcome = Outcome(self.job, error=words, seconds=seconds)
        self.ended.put(outcome)

    def _outcome(self, seconds: float) -> Outcome:
        try:
            result = json.loads(self.result.read_text())
            self.result.unlink()
        except (OSError, ValueError):
            result = {"error": self._how_it_died() + self._last_words()}
        if self.reason is not None and "values" not in result:
            result = {"error": self.reason}
        elif "error" in result and self.command:
            result["error"] += self._last_words()
        outcome = Outcome(
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


def _check_command(task: str, command: Command) -> None:
    """Refuse a program that is not there, before any input is blamed for it."""
    program = command.argv[0]
    if shutil.which(program) is None:
        raise TaskError(f"task {task!r}: the program {program!r} is not found here.")
    for word in command.argv[1:]:
        if Path(word).suffix in _SCRIPTS and " " not in word and not os.path.isfile(word):
            raise TaskError(
                f"task {task!r}: the file {word!r} is not in {Path.cwd()}: run it from where it is,"
                " or write an absolute path."
            )


def _command_payload(command: Command, job: Job, folder: Path) -> dict[str, Any]:
    answer = folder / "result.json"
    # A program runs in a folder of its own; files named beside us are found all the same.
    argv = [os.path.abspath(word) if os.path.isfile(word) else word for word in command.argv]
    environment = {
        "CALAMINT_PARAMS": json.dumps(job.params),
        "CALAMINT_TASK": job.task,
        "CALAMINT_JOB": str(job.number),
        "CALAMINT_ATTEMPT": str(job.attempt),
        "CALAMINT_RESOURCES": ",".join(job.resources),
        "CALAMINT_RESULT": str(answer),
        "CALAMINT_FOLDER": str(Path.cwd()),
    }
    return {
        "argv": argv,
        "folder": str(folder),
        "answer": str(answer),
        "output": str(folder / "stdout.txt"),
        "environment": environment,
    }


@final
class Simulated(Executor):
    """Functions are called here, and take the time that `durations` says, on a virtual clock.

    durations  seconds by task, or functions of the parameters
    """

    def __init__(self, durations: Mapping[str, Duration], clock: VirtualClock) -> None:
        if not isinstance(clock, VirtualClock):
            raise ProblemError(f"clock is {clock!r}: write the study's own VirtualClock().")
        self.durations, self.clock = durations, clock

    def prepare(self, works: Mapping[str, Work | Command], folder: Path | None, name: str) -> None:
        super().prepare(works, folder, name)
        self._running: list[tuple[float, int, float, Job]] = []
        self._stopped: list[Outcome] = []
        for task, work in works.items():
            if isinstance(work, Command):
                raise ProblemError(f"tasks[{task!r}] is a command: simulations call functions.")

    def start(self, job: Job) -> None:
        now = self.clock.now()
        lasts = duration_of(self.durations, job.suggestion)
        heapq.heappush(self._running, (now + lasts, job.number, now, job))

    def wait(self, seconds: float) -> list[Outcome]:
        """The job that ends first; the clock moves there, or by so many seconds."""
        if self._stopped:
            return [self._stopped.pop()]
        if not self._running:
            self.clock.move(self.clock.now() + seconds)
            return []
        ended, _, started, job = heapq.heappop(self._running)
        self.clock.move(ended)
        work = self.works[job.task]
        assert not isinstance(work, Command)  # `prepare` refused them
        try:
            return [Outcome(job, work(dict(job.params)), seconds=ended - started)]
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            return [Outcome(job, error=words, seconds=ended - started)]

    def stop(self, job: Job) -> None:
        self._running = [entry for entry in self._running if entry[3] != job]
        heapq.heapify(self._running)
        self._stopped.append(Outcome(job, error="it was cancelled"))


def read_works(problem_tasks: Mapping[str, Any], given: object) -> dict[str, Work | Command]:
    """What each task does: a function, a list of words, or the command of its spec."""
    if given is None:
        given = {}
    if callable(given) or isinstance(given, list | tuple):
        if len(problem_tasks) != 1:
            names = ", ".join(map(repr, problem_tasks))
            raise ProblemError(f"tasks is one function, and there are {names}: write a dict.")
        given = {next(iter(problem_tasks)): given}
    if not isinstance(given, Mapping):
        raise ProblemError(f"tasks is {given!r}: write a dict of functions by task.")
    for name in given:
        if name not in problem_tasks:
            raise ProblemError(f"tasks has {name!r}: {nearest(str(name), problem_tasks)}")
    works: dict[str, Work | Command] = {}
    for name, task in problem_tasks.items():
        work = given.get(name, task.command)
        if callable(work):
            works[name] = work
        elif isinstance(work, Sequence) and not isinstance(work, str) and work:
            works[name] = Command(tuple(str(word) for word in work))
        else:
            raise ProblemError(
                f"tasks[{name!r}] is {work!r}: write a function of the parameters, or a command"
                " such as ['python', 'train.py']."
            )
    return works
