"""One evaluation in a process of its own. Run as a file: it must start fast, so it imports nothing
of Calamint.

The payload comes on standard input, which then stays open: when it ends, the parent is gone, and
this process and all that it started end, too. The result is written to a file, from which a later
run can take it, and to a pipe.
"""

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

# By this variable of its environment every process that a job started can be found again.
MARK = "CALAMINT_PROCESS"
# What the machine lacks, whatever the input.
_MACHINE = {
    getattr(errno, name, None) for name in ("ENOSPC", "EDQUOT", "EMFILE", "ENFILE", "EIO", "ESTALE")
}
# A program that is not there, or cannot be run, at any input.
_NO_PROGRAM = {errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.EPERM, errno.ENOTDIR}
_LONGEST_LINE = 1_000_000


def main() -> None:
    control = os.fdopen(os.dup(0), "rb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    size = int.from_bytes(_exactly(control, 8), "big")
    payload = pickle.loads(_exactly(control, size))
    os.set_inheritable(payload["pipe"], False)
    _adopt_orphans()
    threading.Thread(target=_die_with_parent, args=(control,), daemon=True).start()
    sys.path[:] = payload["path"]
    result = _command(payload) if "argv" in payload else _function(payload)
    text = json.dumps(result, default=_plain)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    with suppress(OSError):  # the disk may be full: the parent has it all the same
        file = Path(payload["result"])
        partial = file.with_name(f"{file.name}.partial")
        partial.write_text(text)
        partial.replace(file)
    with suppress(OSError), os.fdopen(payload["pipe"], "w") as pipe:
        pipe.write(text)
    kill(descendants(os.getpid()))
    os._exit(0)  # threads that were left behind must not keep it


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = stream.read(size - len(data))
        if not more:
            raise SystemExit("the parent is gone")
        data += more
    return data


def _die_with_parent(control: BinaryIO) -> None:
    control.read(1)
    kill(descendants(os.getpid()))
    kill_marked(os.environ.get(MARK, ""), but=os.getpid())
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


def kill_marked(mark: str, but: int | None = None) -> list[int]:
    """End all processes of a job, also those that left its process group, where /proc names them.

    Returns those that could not be ended.
    """
    entry, found = f"{MARK}={mark}".encode(), []
    try:
        names = os.listdir("/proc") if mark else []
    except OSError:
        names = []
    for pid in (int(name) for name in names if name.isdigit()):
        with suppress(OSError):  # it has ended, or belongs to somebody else
            with open(f"/proc/{pid}/environ", "rb") as file:
                ours = entry in file.read().split(b"\0")
            if ours and pid not in (but, os.getpid()):
                found.append(pid)
    return kill(found)


def _plain(value: Any) -> Any:
    """Numbers of NumPy and its like."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} is not a number")


def _function(payload: dict[str, Any]) -> dict[str, Any]:
    try:
        function = pickle.loads(payload["function"])
    except BaseException as error:
        if _of_the_machine(error):
            return {"error": f"{type(error).__name__}: {error}", "cause": "infrastructure"}
        return {"unloadable": f"{type(error).__name__}: {error}"}
    try:
        values = function(payload["params"])
    except Exception as error:
        with suppress(Exception):  # standard error may be closed
            traceback.print_exc()
        cause = "infrastructure" if _of_the_machine(error) else "crashed"
        return {"error": f"{type(error).__name__}: {error}", "cause": cause}
    try:
        json.dumps(values, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        return {"error": f"its result cannot be read: {error}", "cause": "refused"}
    return {"values": values}


def _of_the_machine(error: BaseException | None) -> bool:
    """Whether it, or what it came from, is about the machine and not about the input."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _MACHINE:
            return True
        error = error.__cause__ or error.__context__
    return False


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
            with suppress(ValueError):
                how = f"signal {signal.Signals(-code).name}"
        return {"error": f"{program} ended with {how}", "cause": "crashed"}
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
