"""How close does an optimiser get, how fast? Repetitions in parallel processes, rows in a CSV.

An optimiser is anything that makes a `Contestant` from a solved problem and a seed. A repetition's
rows are appended in one write when it ends; running again does only what is missing.
"""

import csv
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, dataclass, fields
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from calamint.testbed import SolvedProblem


class Contestant(Protocol):
    """What the harness drives: it asks, measures, tells, and asks for a recommendation."""

    def ask(self) -> tuple[str, Mapping[str, Any]]:
        """The next task and its input."""

    def tell(self, task: str, params: Mapping[str, Any], values: Mapping[str, float]) -> None:
        """The values that the task measured there."""

    def recommend(self) -> Mapping[str, Any] | None:
        """Where the constrained optimum is believed to be; None if there is no telling yet."""


Make = Callable[[SolvedProblem, int], Contestant]


@dataclass(frozen=True)
class Row:
    """One evaluation of one repetition, and the recommendation after it."""

    problem: str
    method: str
    seed: int
    evaluation: int
    measurements: int
    task: str
    params: str
    values: str
    recommended: str
    feasible: bool
    gap: float
    seconds: float


COLUMNS = [field.name for field in fields(Row)]


@dataclass(frozen=True)
class Entry:
    """A method on a problem; `make` and `solved` (seed -> problem) are picklable functions."""

    problem: str
    method: str
    solved: Callable[[int], SolvedProblem]
    make: Make
    evaluations: int


def repetition(entry: Entry, seed: int, tolerance: float = 0.0) -> list[Row]:
    """Run one optimiser once; `seconds` is what it spent on deciding and recommending."""
    solved = entry.solved(seed)
    contestant = entry.make(solved, seed)
    noise = np.random.default_rng([seed, 1])
    rows: list[Row] = []
    measurements = 0
    for evaluation in range(1, entry.evaluations + 1):
        start = time.perf_counter()
        task, params = contestant.ask()
        asked = time.perf_counter() - start
        values = solved.measure(params, noise, task)
        start = time.perf_counter()
        contestant.tell(task, params, values)
        recommended = contestant.recommend()
        seconds = asked + time.perf_counter() - start
        measurements += len(values)
        known = recommended is not None
        rows.append(
            Row(
                problem=entry.problem,
                method=entry.method,
                seed=seed,
                evaluation=evaluation,
                measurements=measurements,
                task=task,
                params=json.dumps(dict(params)),
                values=json.dumps(values),
                recommended=json.dumps(dict(recommended)) if recommended is not None else "",
                feasible=known and solved.feasible(recommended, tolerance),  # type: ignore[arg-type]
                gap=solved.gap(recommended, tolerance)
                if recommended is not None
                else abs(solved.worst - solved.optimum),
                seconds=seconds,
            )
        )
    return rows


def run(
    entries: Iterable[Entry],
    seeds: Iterable[int],
    path: Path,
    processes: int | None = None,
    tolerance: float = 0.0,
    say: Callable[[str], None] = print,
) -> list[Row]:
    """Run what `path` does not have yet, appending to it, and return all rows asked for."""
    entries, seeds = list(entries), list(seeds)
    done = {(row.problem, row.method, row.seed, row.evaluation) for row in read(path)}
    wanted = [(entry, seed) for seed in seeds for entry in entries]
    missing = [
        (entry, seed)
        for entry, seed in wanted
        if not all(
            (entry.problem, entry.method, seed, evaluation) in done
            for evaluation in range(1, entry.evaluations + 1)
        )
    ]
    say(f"{path.name}: {len(wanted) - len(missing)} repetitions are there, {len(missing)} to run")
    # Two repetitions at once must not fight over the cores with BLAS threads of their own.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    pool = ProcessPoolExecutor(processes or os.cpu_count(), get_context("spawn"))
    try:
        futures = {
            pool.submit(repetition, entry, seed, tolerance): (entry, seed)
            for entry, seed in missing
        }
        for count, future in enumerate(as_completed(futures), start=1):
            entry, seed = futures[future]
            title = f"  {count}/{len(missing)} {entry.problem} {entry.method} seed {seed}"
            error = future.exception()
            if error is not None:
                say(f"{title}: FAILED, {error!r}")
                continue
            rows = future.result()
            append(path, rows)
            thinking = sum(row.seconds for row in rows)
            say(f"{title}: gap {rows[-1].gap:.2e}, {thinking:.1f} s of thinking")
    finally:
        # After Ctrl-C what waits must not be run only to be thrown away.
        pool.shutdown(cancel_futures=True)
    most = {(entry.problem, entry.method): entry.evaluations for entry in entries}
    return [
        row
        for row in read(path)
        if row.evaluation <= most.get((row.problem, row.method), 0) and row.seed in seeds
    ]


def append(path: Path, rows: list[Row]) -> None:
    """Add a repetition's rows in one write, so that a killed run leaves whole repetitions."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text() if path.exists() else ""
    if before and not before.endswith("\n"):
        # The last line was torn by a crash, perhaps inside quotes: it must not swallow the next.
        before = before[: before.rfind("\n") + 1]
        os.truncate(path, len(before.encode()))
    if not before:
        writer.writerow(COLUMNS)
    writer.writerows(astuple(row) for row in rows)
    with path.open("a") as file:
        file.write(text.getvalue())


def read(path: Path) -> list[Row]:
    """The rows of a CSV; a line torn by a crash is passed over, a row done again replaces it."""
    if not path.exists():
        return []
    rows: dict[tuple[str, str, int, int], Row] = {}
    whole = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    if whole:
        for line in csv.reader(whole):
            if line == COLUMNS or len(line) != len(COLUMNS):
                continue
            try:
                row = _row(dict(zip(COLUMNS, line, strict=True)))
            except ValueError:
                continue
            rows[row.problem, row.method, row.seed, row.evaluation] = row
    return list(rows.values())


def _row(line: Mapping[str, str]) -> Row:
    return Row(
        problem=line["problem"],
        method=line["method"],
        seed=int(line["seed"]),
        evaluation=int(line["evaluation"]),
        measurements=int(line["measurements"]),
        task=line["task"],
        params=line["params"],
        values=line["values"],
        recommended=line["recommended"],
        feasible=line["feasible"] == "True",
        gap=float(line["gap"]),
        seconds=float(line["seconds"]),
    )


@dataclass(frozen=True)
class Summary:
    """Median gap of a method after so many evaluations, with a bootstrap interval."""

    problem: str
    method: str
    evaluation: int
    repetitions: int
    median: float
    low: float
    high: float
    infeasible: float
    seconds: float


def summarise(
    rows: Iterable[Row], at: Iterable[int], level: float = 0.95, resamples: int = 2000
) -> list[Summary]:
    """One summary for each problem, method and number of evaluations in `at`."""
    groups: dict[tuple[str, str, int], list[Row]] = {}
    chosen = set(at)
    for row in rows:
        if row.evaluation in chosen:
            groups.setdefault((row.problem, row.method, row.evaluation), []).append(row)
    summaries = []
    for (problem, method, evaluation), members in sorted(groups.items()):
        gaps = np.array([row.gap for row in members])
        rng = np.random.default_rng(0)
        medians = np.median(gaps[rng.integers(len(gaps), size=(resamples, len(gaps)))], axis=1)
        low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
        summaries.append(
            Summary(
                problem=problem,
                method=method,
                evaluation=evaluation,
                repetitions=len(gaps),
                median=float(np.median(gaps)),
                low=float(low),
                high=float(high),
                infeasible=float(np.mean([not row.feasible for row in members])),
                seconds=float(np.median([row.seconds for row in members])),
            )
        )
    return summaries


def table(summaries: Iterable[Summary]) -> str:
    """Summaries as a Markdown table."""
    lines = [
        "| problem | method | evaluations | repetitions | median gap | 95 % interval"
        " | infeasible | seconds per evaluation |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {s.problem} | {s.method} | {s.evaluation} | {s.repetitions} | {s.median:.2e}"
        f" | {s.low:.1e} – {s.high:.1e} | {s.infeasible:.0%} | {s.seconds:.3f} |"
        for s in summaries
    ]
    return "\n".join(lines)
