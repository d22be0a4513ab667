"""Toy problem, functions measured separately: does choosing the task help? (The paper's Fig. 8.)

    .venv/bin/python benchmarks/decoupled.py [--repetitions 30]

One resource of capacity 3. Coupled: the three functions are measured at the same input. CD: every
measurement is chosen, three at a time, Kriging believer. CD-F: full update for the first of each
three, partial ones for the others. From the same three starting inputs, ten hyper-parameter
samples, δ = 0.01; gaps of the recommendation by function evaluations (measurements). Appends to
`results/decoupled.csv`, goes on where it stopped, and writes `results/decoupled.md`.
"""

import argparse
import csv
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from calamint import Optimizer, Problem, Task
from calamint.testbed import CLASSIC
from starts import starting_points

RESULTS = Path(__file__).parent / "results"
SOLVED = CLASSIC["toy"]()
FUNCTIONS = tuple(SOLVED.problem.functions)
METHODS = ("Coupled", "CD", "CD-F")
MOST, EVERY, STARTS, DELTA = 90, 15, 3, 0.01
FIELDS = ("method", "seed", "evaluations", "gap", "feasible", *FUNCTIONS, "seconds")


def make(method: str, seed: int) -> Optimizer:
    together = method == "Coupled"
    tasks = (
        {"all": Task(measures=list(FUNCTIONS))}
        if together
        else {name: Task(measures=[name]) for name in FUNCTIONS}
    )
    problem = Problem(
        dict(SOLVED.problem.space.parameters),
        minimize=FUNCTIONS[0],
        constraints=list(SOLVED.problem.constraints),
        tasks=tasks,
        resources={"here": 1 if together else 3},
    )
    rationality = "batch" if method == "CD-F" else float("inf")
    return Optimizer(problem, seed=seed, initial=0, delta=DELTA, rationality=rationality)  # type: ignore[arg-type]


def repetition(method: str, seed: int) -> list[dict[str, object]]:
    optimizer = make(method, seed)
    for params in starting_points(SOLVED, seed, STARTS):
        optimizer.add(params, SOLVED.evaluate(params))
    counts = Counter(dict.fromkeys(FUNCTIONS, STARTS))
    rows: list[dict[str, object]] = []
    while counts.total() < MOST:
        for job in optimizer.ask_all():
            values = SOLVED.evaluate(job.params)
            measures = optimizer.problem.tasks[job.task].measures
            optimizer.tell(job, {name: values[name] for name in measures})
            counts.update(measures)
        if counts.total() % EVERY == 0:
            params = optimizer.recommend().params
            seconds = sum(decision.seconds["total"] for decision in optimizer.decisions)
            rows.append(
                {
                    "method": method,
                    "seed": seed,
                    "evaluations": counts.total(),
                    "gap": SOLVED.gap(params, tolerance=1e-6),
                    "feasible": int(SOLVED.feasible(params, tolerance=1e-6)),
                    **counts,
                    "seconds": round(seconds, 3),
                }
            )
    return rows


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def interval(values: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """A bootstrap interval of the median, 95 %."""
    again = rng.choice(values, (2000, len(values)))
    low, high = np.quantile(np.median(again, axis=1), [0.025, 0.975])
    return float(low), float(high)


def table(rows: list[dict[str, str]]) -> str:
    rng = np.random.default_rng(0)
    lines = [
        "| method | evaluations | repetitions | median gap | 95 % interval | infeasible"
        f" | {' | '.join(f'mean of {name}' for name in FUNCTIONS)} | seconds thinking |",
        f"|---|---|---|---|---|---|{'---|' * len(FUNCTIONS)}---|",
    ]
    for method in METHODS:
        for count in range(EVERY, MOST + 1, EVERY):
            own = [r for r in rows if r["method"] == method and int(r["evaluations"]) == count]
            if not own:
                continue
            gaps = np.array([float(r["gap"]) for r in own])
            low, high = interval(gaps, rng)
            infeasible = np.mean([r["feasible"] == "0" for r in own])
            means = " | ".join(f"{np.mean([int(r[name]) for r in own]):.1f}" for name in FUNCTIONS)
            seconds = np.median([float(r["seconds"]) for r in own])
            lines.append(
                f"| {method} | {count} | {len(own)} | {np.median(gaps):.2e}"
                f" | {low:.1e} – {high:.1e} | {infeasible:.0%} | {means} | {seconds:.1f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Separate measurements on the toy problem.")
    parser.add_argument("--repetitions", type=int, default=30)
    parser.add_argument("--processes", type=int, help="how many at once; by default every core")
    options = parser.parse_args()
    path = RESULTS / "decoupled.csv"
    done = {(row["method"], int(row["seed"])) for row in read(path)}
    wanted = [(m, s) for s in range(options.repetitions) for m in METHODS if (m, s) not in done]
    with ProcessPoolExecutor(options.processes or os.cpu_count(), get_context("spawn")) as pool:
        futures = {pool.submit(repetition, *job): job for job in wanted}
        for future in as_completed(futures):
            rows = future.result()
            new = not path.exists()
            with path.open("a", newline="") as file:
                writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                if new:
                    writer.writeheader()
                writer.writerows(rows)
            print(*futures[future], f"gap {rows[-1]['gap']:.2e}", flush=True)
    text = table(read(path))
    print(text)
    (RESULTS / "decoupled.md").write_text(f"# Measuring separately\n\n{__doc__}\n{text}\n")


if __name__ == "__main__":
    main()
