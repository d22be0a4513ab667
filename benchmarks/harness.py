"""How close does an optimiser get, how fast? Repetitions in parallel processes, rows in a CSV.

An optimiser is anything that makes a `Contestant` from a solved problem and a seed.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from calamint.testbed import SolvedProblem
from rows import gather, median_interval
from rows import read as parse_rows


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

    @property
    def key(self) -> tuple[str, str, int, int]:
        return self.problem, self.method, self.seed, self.evaluation


@dataclass(frozen=True)
class GapRow:
    """The gap of one repetition after so many evaluations, and nothing else."""

    problem: str
    method: str
    seed: int
    evaluation: int
    gap: float

    @property
    def key(self) -> tuple[str, str, int, int]:
        return self.problem, self.method, self.seed, self.evaluation


@dataclass(frozen=True)
class Entry:
    """A method on a problem; `make` and `solved` (seed -> problem) are picklable functions."""

    problem: str
    method: str
    solved: Callable[[int], SolvedProblem]
    make: Make
    evaluations: int


def repetition(entry: Entry, seed: int, tolerance: float = 0.0, every: int = 1) -> list[Row]:
    """Run one optimiser once; `seconds` is what it spent on deciding and recommending.

    It recommends, and there is a row, after every so many evaluations.
    """
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
        measurements += len(values)
        if evaluation % every:
            continue
        recommended = contestant.recommend()
        seconds = asked + time.perf_counter() - start
        known = recommended is not None
        rows.append(
            Row(
                problem=entry.problem,
                method=entry.method,
                seed=seed,
                evaluation=evaluation,
                measurements=measurements,
                task=task,
                params=_written(params),
                values=_written(values),
                recommended=_written(recommended) if recommended is not None else "",
                feasible=known and solved.feasible(recommended, tolerance),  # type: ignore[arg-type]
                gap=solved.gap(recommended, tolerance)
                if recommended is not None
                else abs(solved.worst - solved.optimum),
                seconds=seconds,
            )
        )
    return rows


def gaps(entry: Entry, seed: int, every: int = 1, tolerance: float = 1e-6) -> list[GapRow]:
    """Run one optimiser once, and keep its gaps only."""
    return [
        GapRow(row.problem, row.method, row.seed, row.evaluation, row.gap)
        for row in repetition(entry, seed, tolerance, every)
    ]


def report(path: Path, looks: Mapping[str, Sequence[int]], heading: str) -> None:
    """Print a table of a CSV's rows, and write it beside the CSV as Markdown.

    looks  after which evaluations each problem is summarised
    """
    rows = read(path)
    summaries = [
        summary
        for name, at in looks.items()
        for summary in summarise([row for row in rows if row.problem == name], at)
    ]
    text = table(summaries)
    print(text)
    path.with_suffix(".md").write_text(f"{heading}\n{text}\n")


def _written(values: Mapping[str, Any]) -> str:
    """JSON, numbers to seven digits: files of whole repetitions would be twice as large."""
    return json.dumps(
        {name: float(f"{v:.7g}") if isinstance(v, float) else v for name, v in values.items()}
    )


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
    done = {row.key for row in read(path)}
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
    jobs = {
        f"{entry.problem} {entry.method} seed {seed}": (repetition, (entry, seed, tolerance))
        for entry, seed in missing
    }
    gather(jobs, path, processes, say, _told)
    most = {(entry.problem, entry.method): entry.evaluations for entry in entries}
    return [
        row
        for row in read(path)
        if row.evaluation <= most.get((row.problem, row.method), 0) and row.seed in seeds
    ]


def read(path: Path) -> list[Row]:
    return parse_rows(path, Row)


def _told(done: list[Row]) -> str:
    thinking = sum(row.seconds for row in done)
    return f"gap {done[-1].gap:.2e}, {thinking:.1f} s of thinking"


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


def summarise(rows: Iterable[Row], at: Iterable[int]) -> list[Summary]:
    """One summary for each problem, method and number of evaluations in `at`."""
    groups: dict[tuple[str, str, int], list[Row]] = {}
    chosen = set(at)
    for row in rows:
        if row.evaluation in chosen:
            groups.setdefault((row.problem, row.method, row.evaluation), []).append(row)
    summaries = []
    for (problem, method, evaluation), members in sorted(groups.items()):
        median, low, high = median_interval(row.gap for row in members)
        summaries.append(
            Summary(
                problem=problem,
                method=method,
                evaluation=evaluation,
                repetitions=len(members),
                median=median,
                low=low,
                high=high,
                infeasible=float(np.mean([not row.feasible for row in members])),
                seconds=float(np.median([row.seconds for row in members])),
            )
        )
    return summaries


def main(
    description: str,
    entries: Mapping[str, list[Entry]],
    looks: Mapping[str, Iterable[int]],
    path: Path,
    tolerance: float = 0.0,
) -> tuple[list[Row], str]:
    """A benchmark's command line: run what is missing of the problems asked for; returns all rows
    and their table, with the gaps of each problem after so many evaluations (`looks`)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--problems", nargs="+", choices=entries, default=list(entries))
    parser.add_argument("--processes", type=int, help="how many at once; by default every core")
    options = parser.parse_args()
    for name in options.problems:
        run(entries[name], range(options.repetitions), path, options.processes, tolerance)
    rows = read(path)
    summaries = [
        summary
        for problem, at in looks.items()
        for summary in summarise([row for row in rows if row.problem == problem], at)
    ]
    return rows, table(summaries)


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
