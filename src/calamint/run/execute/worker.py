"""A process that runs jobs, one after the other. Run as a file: it must start fast, so it imports
nothing of Calamint.

Payloads come through a socket on standard input, each with three pipes: standard output, standard
error, and one for the result. When the socket is closed, the parent is gone, and this process and
all that it started end, too. The result is also written to a file, from which a later run can take
it.
"""

import errno
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

# By this variable of its environment every process that a job started can be found again.
MARK = "CALAMINT_PROCESS"
# What the machine lacks, whatever the input.
_MACHINE = {
    getattr(errno, name, None) for name in ("ENOSPC", "EDQUOT", "EMFILE", "ENFILE", "EIO", "ESTALE")
}
# A program that is not there, or cannot be run, at any input.
_NO_PROGRAM = {errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.EPERM, errno.ENOTDIR}
_LONGEST_LINE = 1_000_000
# Seconds in which what has killed a command kills this process, too, if it is the same.
_MOMENT = 0.1


# Functions by what they were sent as: what their modules loaded is there for the next job.
_LOADED: dict[bytes, Callable[[Any], Any]] = {}
# Held while a result is written, and from the moment that the parent is gone.
_WRITING = threading.Lock()


def main() -> None:
    control = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    _adopt_orphans()
    own = os.environ.get(MARK, "")
    threading.Thread(target=_die_with_parent, args=(control, own), daemon=True).start()
    while (received := _receive(control)) is not None:
        if not _run(*received, nothing):
            break
    os._exit(0)  # threads that were left behind must not keep it


def _receive(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next payload with its pipes; None if there is no parent any more."""
    head, pipes, _, _ = socket.recv_fds(control, 8, 3)
    if not head:
        return None
    size = int.from_bytes(head + _exactly(control, 8 - len(head)), "big")
    return pickle.loads(_exactly(control, size)), pipes


def _exactly(control: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = control.recv(min(size - len(data), 1 << 20))
        if not more:
            raise SystemExit("the parent is gone")
        data += more
    return bytes(data)


def _run(payload: dict[str, Any], pipes: list[int], nothing: int) -> bool:
    """Run one job, and tell its result; whether this process can be used for another."""
    *outputs, answer = pipes
    os.set_inheritable(answer, False)
    for number, pipe in zip((1, 2), outputs, strict=True):
        os.dup2(pipe, number)
        os.close(pipe)
    with suppress(OSError):
        os.write(answer, b"\n")  # it has begun: what happens from now on, the job has done
    # Those of the job before may be closed.
    sys.stdout, sys.stderr = (
        os.fdopen(number, "w", 1, errors="backslashreplace", closefd=False) for number in (1, 2)
    )
    sys.path[:] = payload["path"]
    os.environ[MARK] = payload["mark"]
    variables, threads = dict(os.environ), threading.active_count()
    folder = None
    with suppress(OSError):  # it may have been removed
        folder = os.getcwd()
    result = _command(payload) if "argv" in payload else _function(payload)
    text = json.dumps(result, default=_plain)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    with suppress(OSError), _WRITING:  # the disk may be full: the parent has it all the same
        file = Path(payload["result"])
        partial = file.with_name(f"{file.name}.partial")
        partial.write_text(text)
        partial.replace(file)
    started = descendants(os.getpid())
    kill(started)
    again = payload["reuse"] and not started and threading.active_count() <= threads
    again = again and _restore(folder, variables)
    for number in (1, 2):
        os.dup2(nothing, number)
    with suppress(OSError), os.fdopen(answer, "w") as result_pipe:
        # A blank before the result says that this process stays.
        result_pipe.write(f"{' ' * again}{text}")
    return bool(again)


def _restore(folder: str | None, variables: dict[str, str]) -> bool:
    """Leave the next job the folder and the environment that this one had, and no alarm."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        os.chdir(folder or "")
    except OSError:
        return False
    if dict(os.environ) != variables:
        os.environ.clear()
        os.environ.update(variables)
    return True


def _die_with_parent(control: socket.socket, mark: str) -> None:
    ended = select.poll()
    ended.register(control, select.POLLHUP | getattr(select, "POLLRDHUP", 0))
    ended.poll()
    _WRITING.acquire()  # what is killed here has not crashed
    kill(descendants(os.getpid()))
    kill_marked(mark, os.environ.get(MARK, mark), but=os.getpid())
    os.killpg(os.getpgid(0), signal.SIGKILL)


def _adopt_orphans() -> None:
    """Have processes whose parents end become children of this one, where the system can do that:
    then all that a job started is found, even in another session and with another environment."""
    if sys.platform == "linux":
        with suppress(Exception):
            import ctypes

            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def descendants(pid: int) -> list[int]:
    """All that a process started, where /proc names them."""
    parents: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        names = []
    for each in (int(name) for name in names if name.isdigit()):
        with suppress(OSError), open(f"/proc/{each}/stat", "rb") as file:
            parent = int(file.read().rpartition(b")")[2].split()[1])
            parents.setdefault(parent, []).append(each)
    found, waiting = [], [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def kill(pids: Iterable[int]) -> list[int]:
    """End processes; those that could not be."""
    left = []
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except PermissionError:
            left.append(pid)
        except OSError:  # it has ended
            continue
    return left


def kill_marked(*marks: str, but: int | None = None) -> list[int]:
    """End all processes of a job, also those that left its process group, where /proc names them.

    Returns those that could not be ended.
    """
    entries, found = {f"{MARK}={mark}".encode() for mark in marks}, []
    try:
        names = os.listdir("/proc")
    except OSError:
        names = []
    for pid in (int(name) for name in names if name.isdigit()):
        with suppress(OSError):  # it has ended, or belongs to somebody else
            with open(f"/proc/{pid}/environ", "rb") as file:
                ours = not entries.isdisjoint(file.read().split(b"\0"))
            if ours and pid not in (but, os.getpid()):
                found.append(pid)
    return kill(found)


def _plain(value: Any) -> Any:
    """Numbers of NumPy and its like."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} is not a number")


def _function(payload: dict[str, Any]) -> dict[str, Any]:
    pickled = payload["function"]
    try:
        function = _LOADED.get(pickled) or pickle.loads(pickled)
        _LOADED[pickled] = function
    except BaseException as error:
        words = f"{type(error).__name__}: {error}"
        if cause_of(error) == "infrastructure":
            return {"error": words, "cause": "infrastructure"}
        return {"unloadable": words}
    begin = time.perf_counter()  # what it takes to load a function is not what it costs
    try:
        values = function(payload["params"])
    except Exception as error:
        with suppress(Exception):  # standard error may be closed
            traceback.print_exc()
        words, seconds = f"{type(error).__name__}: {error}", time.perf_counter() - begin
        return {"error": words, "cause": cause_of(error), "seconds": seconds}
    seconds = time.perf_counter() - begin
    try:
        json.dumps(values, default=_plain)
    except Exception as error:
        return {"error": f"its result cannot be read: {error}", "cause": "refused"}
    return {"values": values, "seconds": seconds}


def cause_of(error: BaseException | None) -> Literal["crashed", "infrastructure"]:
    """Whether it, or what it came from, is about the machine and not about the input."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _MACHINE:
            return "infrastructure"
        error = error.__cause__ or error.__context__
    return "crashed"


def cause_of_exit(code: int | None) -> Literal["crashed", "lost"]:
    """Queues and service managers end what they stop by SIGTERM: that is no input's fault."""
    return "lost" if code == -signal.SIGTERM else "crashed"


def _command(payload: dict[str, Any]) -> dict[str, Any]:
    program = payload["argv"][0]
    try:
        process = subprocess.Popen(
            payload["argv"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **payload["environment"]},
            cwd=payload["folder"],
        )
    except OSError as error:
        words = f"{program!r} cannot be started: {error}"
        if error.errno in _NO_PROGRAM:
            return {"unloadable": words}
        return {"error": words, "cause": "infrastructure"}
    last = _LastLine()
    assert process.stdin is not None
    assert process.stdout is not None
    reading = threading.Thread(target=last.copy, args=(process.stdout,), daemon=True)
    reading.start()
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(payload["params"]).encode() + b"\n")
    with suppress(BrokenPipeError):
        process.stdin.close()
    code = process.wait()
    reading.join(1.0)  # what it started may keep its output open
    if code:
        how = f"exit code {code}"
        if code < 0:
            time.sleep(_MOMENT)
            with suppress(ValueError):
                how = f"signal {signal.Signals(-code).name}"
        return {"error": f"{program} ended with {how}", "cause": cause_of_exit(code)}
    return _answer(Path(payload["answer"]), last.text, last.cut)


def _answer(file: Path, line: str, cut: bool) -> dict[str, Any]:
    """The result of a program: JSON in a file, or in the last line of its output."""
    where, text = "the last line of its output", line
    if file.exists():
        where = f"the file {file.name}"
        if file.stat().st_size > _LONGEST_LINE:
            words = f"{where} has {file.stat().st_size} bytes: write at most {_LONGEST_LINE}"
            return {"error": words, "cause": "refused"}
        text = file.read_text(errors="replace")
    elif cut:
        words = f"{where} has more than {_LONGEST_LINE} bytes: write fewer"
        return {"error": words, "cause": "refused"}
    if not text:
        words = "it printed nothing, and wrote no file CALAMINT_RESULT"
        return {"error": words, "cause": "refused"}
    try:
        return {"values": json.loads(text)}
    except (ValueError, RecursionError):
        return {"error": f"{where} is not JSON: {text[:200]!r}", "cause": "refused"}


class _LastLine:
    """Passes output on, and remembers its last line that is not empty."""

    def __init__(self) -> None:
        self._line, self._open = b"", b""
        self.cut = False  # the last line

    @property
    def text(self) -> str:
        return (self._open.strip() or self._line).decode(errors="replace").strip()

    def copy(self, stream: Any) -> None:
        while data := os.read(stream.fileno(), 65536):
            with suppress(OSError):
                os.write(1, data)
            *whole, rest = (self._open + data).split(b"\n")
            for line in whole:
                if line.strip():
                    self._line, self.cut = line.strip(), len(line) > _LONGEST_LINE
            self.cut = len(rest) > _LONGEST_LINE or (self.cut and not rest.strip())
            self._open = rest[: _LONGEST_LINE + 1]


if __name__ == "__main__":
    main()
