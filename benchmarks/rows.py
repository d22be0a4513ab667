"""Rows of a benchmark: computed in parallel processes, kept in a CSV, summarised with intervals.

A row is a frozen dataclass of strings, numbers and truth values with a `key`. What a job returns is
appended in one write when it ends; running again does only what is missing.
"""

import csv
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, fields
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

R = TypeVar("R")
# What to call a job while it runs, and the function (picklable) with its arguments.
Job = tuple[Callable[..., list[Any]], tuple[Any, ...]]
_READERS: dict[type, Callable[[str], Any]] = {
    str: str,
    int: int,
    float: float,
    bool: lambda text: text == "True",
}


def gather(
    jobs: Mapping[str, Job],
    path: Path,
    processes: int | None = None,
    say: Callable[[str], None] = print,
    tell: Callable[[list[Any]], str] = lambda rows: f"{len(rows)} rows",
) -> None:
    """Run all jobs, append what they return, and say in a few words what it was."""
    # Two jobs at once must not fight over the cores with BLAS threads of their own.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    pool = ProcessPoolExecutor(processes or os.cpu_count(), get_context("spawn"))
    try:
        futures = {pool.submit(work, *given): title for title, (work, given) in jobs.items()}
        for count, future in enumerate(as_completed(futures), start=1):
            title = f"  {count}/{len(jobs)} {futures[future]}"
            error = future.exception()
            if error is not None:
                say(f"{title}: FAILED, {error!r}")
                continue
            append(path, future.result())
            say(f"{title}: {tell(future.result())}")
    finally:
        # After Ctrl-C what waits must not be run only to be thrown away.
        pool.shutdown(cancel_futures=True)


def append(path: Path, rows: Sequence[Any]) -> None:
    """Add rows in one write, so that a killed run leaves all of a job's rows or none."""
    if not rows:
        return
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text() if path.exists() else ""
    if before and not before.endswith("\n"):
        # The last line was torn by a crash, perhaps inside quotes: it must not swallow the next.
        before = before[: before.rfind("\n") + 1]
        os.truncate(path, len(before.encode()))
    if not before:
        writer.writerow(_columns(type(rows[0])))
    writer.writerows(astuple(row) for row in rows)
    with path.open("a") as file:
        file.write(text.getvalue())


def read(path: Path, kind: type[R]) -> list[R]:
    """The rows of a CSV; a line torn by a crash is passed over, a row done again replaces it."""
    if not path.exists():
        return []
    columns = _columns(kind)
    readers = [_READERS[field.type] for field in fields(kind)]  # type: ignore[arg-type,index]
    rows: dict[Hashable, R] = {}
    whole = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    for line in csv.reader(whole):
        if line == columns or len(line) != len(columns):
            continue
        try:
            row = kind(*(reader(text) for reader, text in zip(readers, line, strict=True)))
        except ValueError:
            continue
        rows[row.key] = row  # type: ignore[attr-defined]
    return list(rows.values())


def _columns(kind: type) -> list[str]:
    return [field.name for field in fields(kind)]


def median_interval(
    values: Iterable[float], level: float = 0.95, resamples: int = 2000
) -> tuple[float, float, float]:
    """The median, and a bootstrap interval of it."""
    numbers = np.array(list(values))
    rng = np.random.default_rng(0)
    medians = np.median(numbers[rng.integers(len(numbers), size=(resamples, len(numbers)))], axis=1)
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    return float(np.median(numbers)), float(low), float(high)
