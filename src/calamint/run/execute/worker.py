"""One evaluation in a process of its own. Run as a file: it must start fast, so it imports nothing
of Calamint.

The payload comes on standard input, which then stays open: when it ends, the parent is gone, and
this process and all that it started end, too. The result is written to a file.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO


def main() -> None:
    control = os.fdopen(os.dup(0), "rb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    size = int.from_bytes(_exactly(control, 8), "big")
    payload = pickle.loads(_exactly(control, size))
    threading.Thread(target=_die_with_parent, args=(control,), daemon=True).start()
    sys.path[:] = payload["path"]
    result = _command(payload) if "argv" in payload else _function(payload)
    text = json.dumps(result, default=_plain)
    file = Path(payload["result"])
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f"{file.name}.partial")
    partial.write_text(text)
    partial.replace(file)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
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
    os.killpg(os.getpgid(0), signal.SIGKILL)


def _plain(value: Any) -> Any:
    """Numbers of NumPy and its like."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} is not a number")


def _function(payload: dict[str, Any]) -> dict[str, Any]:
    try:
        function = pickle.loads(payload["function"])
    except BaseException as error:
        return {"unloadable": f"{type(error).__name__}: {error}"}
    try:
        values = function(payload["params"])
        json.dumps(values, default=_plain)
    except Exception as error:
        with suppress(Exception):  # standard error may be closed
            traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}
    return {"values": values}


def _command(payload: dict[str, Any]) -> dict[str, Any]:
    answer, output = Path(payload["answer"]), Path(payload["output"])
    try:
        done = subprocess.run(
            payload["argv"],
            input=json.dumps(payload["params"]).encode() + b"\n",
            env={**os.environ, **payload["environment"]},
            cwd=payload["folder"],
            check=False,
        )
    except OSError as error:
        return {"unloadable": f"{payload['argv'][0]!r} cannot be started: {error}"}
    if done.returncode:
        how = f"exit code {done.returncode}"
        if done.returncode < 0:
            with suppress(ValueError):
                how = f"signal {signal.Signals(-done.returncode).name}"
        return {"error": f"{payload['argv'][0]} ended with {how}"}
    where = f"the file {answer.name}" if answer.exists() else "the last line of its output"
    text = answer.read_text(errors="replace") if answer.exists() else _last_line(output)
    if not text:
        return {"error": "it printed nothing, and wrote no file CALAMINT_RESULT"}
    try:
        return {"values": json.loads(text)}
    except ValueError:
        return {"error": f"{where} is not JSON: {text[:200]!r}"}


def _last_line(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - 1_000_000, 0))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


if __name__ == "__main__":
    main()
