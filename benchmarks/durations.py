"""Two tasks with resources of their own, one ten times as fast: what is measuring separately worth?

    .venv/bin/python benchmarks/durations.py

Everything runs through `Optimizer` on a virtual clock. Appends to `results/durations.csv`, goes on
where it stopped, and writes `results/durations.md`. Gaps are those of the recommendation; one that
is not feasible has the gap of the worst value in the box. Intervals are 95 %, by bootstrap.
"""

import argparse
import os
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

from calamint import Task
from rows import gather, median_interval, read
from virtual import Experiment, Method, Row, mean, repetition, toy

RESULTS = Path(__file__).parent / "results"
MEASURES = {"objective": ["f"], "limits": ["c1", "c2"]}
FUNCTIONS = ("f", "c1", "c2")
# Experiments, and their fast task.
FAST = {"fast_objective": "objective", "fast_limits": "limits"}


def experiment(name: str) -> Experiment:
    lasts = {task: 1.0 if task == FAST[name] else 10.0 for task in MEASURES}
    tasks = {task: Task(measures=m, runs_on=task) for task, m in MEASURES.items()}
    together = {"all": Task(measures=list(FUNCTIONS), runs_on=[list(MEASURES)])}
    resources = dict.fromkeys(MEASURES, 1)
    return Experiment(
        toy,
        {
            "Coupled": Method(together, resources, {"all": 10.0}),
            "NCD": Method(tasks, resources, lasts),
        },
        "seconds",
        (30, 60, 90, 120, 150),
        delta=0.01,
    )


def work(name: str, method: str, seed: int) -> list[Row]:
    return repetition(name, experiment(name), method, seed)


def report(name: str, rows: list[Row]) -> str:
    lines = [
        f"## {name}",
        "",
        f"Toy problem on two resources: the task of the {FAST[name]} takes 1 s, the other 10 s."
        " Coupled takes both resources for 10 s. By simulated seconds; decisions take none."
        " δ = 0.01.",
        "",
        "| method | seconds | repetitions | median gap | interval | infeasible | f, mean | c1, mean"
        " | c2, mean | fast task idle |",
        f"|{'---|' * 10}",
    ]
    for method in experiment(name).methods:
        for at in experiment(name).at:
            own = [row for row in rows if row.method == method and row.at == at]
            if own:
                gap, low, high = median_interval(row.gap for row in own)
                means = [f"{mean(r.count(function) for r in own):.1f}" for function in FUNCTIONS]
                lines.append(
                    f"| {method} | {at} | {len(own)} | {gap:.2e} | {low:.1e} – {high:.1e}"
                    f" | {sum(not row.feasible for row in own)} | {' | '.join(means)}"
                    f" | {mean(_idle(name, row) for row in own):.1%} |"
                )
    return "\n".join([*lines, ""])


def _idle(name: str, row: Row) -> float:
    """The share of the time in which the fastest task could have run and did not."""
    durations = experiment(name).methods[row.method].durations
    fast = min(durations, key=lambda task: durations[task])
    # One job runs at the moment of looking.
    return max(0.0, row.time - row.seconds(fast) - durations[fast]) / row.time


def main() -> None:
    parser = argparse.ArgumentParser(description="Tasks of different durations.")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--processes", type=int, help="how many at once; by default every core")
    options = parser.parse_args()
    path = RESULTS / "durations.csv"
    done = {(row.experiment, row.method, row.seed) for row in read(path, Row)}
    jobs = {
        f"{name} {method} seed {seed}": (work, (name, method, seed))
        for name in FAST
        for seed in range(options.repetitions)
        for method in experiment(name).methods
        if (name, method, seed) not in done
    }
    gather(jobs, path, options.processes, tell=lambda r: f"gap {r[-1].gap:.2e}")
    rows = read(path, Row)
    parts = [report(name, [row for row in rows if row.experiment == name]) for name in FAST]
    text = "\n".join([f"# Tasks of different durations\n\n{__doc__}", *parts])
    print(text)
    (RESULTS / "durations.md").write_text(text)


if __name__ == "__main__":
    main()
