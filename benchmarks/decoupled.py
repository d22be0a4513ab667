"""Measuring functions separately: does choosing the task help, and what does thinking cost?

    .venv/bin/python benchmarks/decoupled.py [--experiments toy gp_prior ...]

Everything runs through `Optimizer` on a virtual clock. Appends to `results/decoupled.csv`, goes on
where it stopped, and writes `results/decoupled.md`. Gaps are those of the recommendation; one that
is not feasible has the gap of the worst value in the box. Intervals are 95 %, by bootstrap.
"""

import argparse
import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

from calamint import Model, Task
from rows import gather, median_interval, read
from virtual import Experiment, Method, Row, apart, mean, prior_2d, repetition, toy

RESULTS = Path(__file__).parent / "results"


def toy_experiment() -> Experiment:
    names = ("f", "c1", "c2")
    second = dict.fromkeys(names, 1.0)
    separate = Method(apart("here", *names), {"here": 3}, second)
    together = {"all": Task(measures=list(names), runs_on="here")}
    return Experiment(
        toy,
        {
            "Coupled": Method(together, {"here": 1}, {"all": 1.0}),
            "CD": separate,
            "CD-F": replace(separate, rationality="batch"),
        },
        "evaluations",
        (15, 30, 45, 60, 75, 90),
        repetitions=30,
        delta=0.01,
        title="Toy problem, one resource of capacity 3 (the paper's Fig. 8). Coupled: the three"
        " functions are measured at the same input. CD: every measurement is chosen, three"
        " at a time. CD-F: full update for the first of each three, partial ones for the"
        " others. Ten hyper-parameter samples, δ = 0.01.",
    )


def gp_prior_experiment() -> Experiment:
    together = {"all": Task(measures=["f", "c"], runs_on="here")}
    each = {"f": Task(measures=["f"], runs_on="one"), "c": Task(measures=["c"], runs_on="other")}
    separate = Method(apart("here", "f", "c"), {"here": 2}, {"f": 1.0, "c": 1.0}, "batch")
    return Experiment(
        prior_2d,
        {
            "Coupled": Method(together, {"here": 1}, {"all": 1.0}),
            "NCD": Method(each, {"one": 1, "other": 1}, {"f": 1.0, "c": 1.0}, "batch"),
            "CD-F": separate,
        },
        "evaluations",
        (20, 40, 60, 80),
        repetitions=60,
        delta=0.05,
        model=Model("se", "map", lengthscale=0.1, amplitude=1.0, noise_variance=0.01),
        title="Draws from a Gaussian process prior in 2-D with one constraint, noise 0.1,"
        " capacity 2 (the paper's Fig. 9), hyper-parameters known, δ = 0.05. NCD: one"
        " resource for each function.",
    )


def durations_experiment(fast: str) -> Experiment:
    """The toy problem, one task ten times as fast as the other, each with a resource of its own."""
    measures = {"objective": ["f"], "limits": ["c1", "c2"]}
    lasts = {name: 1.0 if name == fast else 10.0 for name in measures}
    tasks = {name: Task(measures=m, runs_on=name) for name, m in measures.items()}
    together = {"all": Task(measures=["f", "c1", "c2"], runs_on=[list(measures)])}
    resources = dict.fromkeys(measures, 1)
    return Experiment(
        toy,
        {
            "Coupled": Method(together, resources, {"all": 10.0}),
            "NCD": Method(tasks, resources, lasts),
        },
        "seconds",
        (30, 60, 90, 120, 150),
        repetitions=20,
        delta=0.01,
        title=f"Toy problem on two resources: the task of the {fast} takes 1 s, the other 10 s."
        " Coupled takes both resources for 10 s. By simulated seconds; decisions take"
        " none. δ = 0.01.",
    )


def rationality_experiment() -> Experiment:
    deciding = {"full": 8.0, "partial": 1.3}
    names = ("f", "c1", "c2")
    lasts = {"f": 0.0, "c1": 2.0, "c2": 60.0}
    separate = Method(apart("here", *names), {"here": 1}, lasts, deciding=deciding)
    together = {"all": Task(measures=list(names), runs_on="here")}
    levels = {"∞": math.inf, "1": 1.0, "0.1": 0.1, "0": 0.0}
    return Experiment(
        toy,
        {
            "Coupled": Method(together, {"here": 1}, {"all": 62.0}, deciding=deciding),
            **{f"γ = {name}": replace(separate, rationality=γ) for name, γ in levels.items()},
        },
        "seconds",
        (300, 600, 900),
        repetitions=20,
        delta=0.05,
        title="Toy problem for 15 minutes on one resource: f takes no time, c1 2 s, c2 60 s"
        f" (the paper's Table 1). A full decision takes {deciding['full']} s and a partial"
        f" one {deciding['partial']} s, about what the paper's did. Every task costs 1. δ ="
        " 0.05.",
    )


EXPERIMENTS: dict[str, Callable[[], Experiment]] = {
    "toy": toy_experiment,
    "gp_prior": gp_prior_experiment,
    "fast_objective": lambda: durations_experiment("objective"),
    "fast_limits": lambda: durations_experiment("limits"),
    "rationality": rationality_experiment,
}


def work(name: str, way: str, seed: int) -> list[Row]:
    return repetition(name, EXPERIMENTS[name](), way, seed)


def report(name: str, rows: list[Row]) -> str:
    experiment = EXPERIMENTS[name]()
    functions = list(experiment.solved(0).problem.functions)
    columns: dict[str, Callable[[list[Row]], str]] = {
        "repetitions": lambda own: f"{len(own)}",
        "median gap": lambda own: f"{median_interval(row.gap for row in own)[0]:.2e}",
        "interval": lambda own: "{1:.1e} – {2:.1e}".format(*median_interval(r.gap for r in own)),
        "infeasible": lambda own: f"{sum(not row.feasible for row in own)}",
    }
    for function in functions:
        columns[f"mean of {function}"] = _mean_count(function)
    if any(method.deciding != {} for method in experiment.methods.values()):
        columns["full updates"] = lambda own: _updates(own, "full")
        columns["partial updates"] = lambda own: _updates(own, "partial")
        columns["measuring"] = lambda own: f"{mean(_busy(row) for row in own):.0f} s"
    elif experiment.by == "seconds":
        columns["fast task idle"] = lambda own: f"{_idle(experiment, own):.1%}"
    lines = [
        f"## {name}",
        "",
        experiment.title,
        "",
        f"| method | {experiment.by} | {' | '.join(columns)} |",
        f"|---|---|{'---|' * len(columns)}",
    ]
    for method in experiment.methods:
        for at in experiment.at:
            own = [row for row in rows if row.method == method and row.at == at]
            if own:
                cells = " | ".join(column(own) for column in columns.values())
                lines.append(f"| {method} | {at} | {cells} |")
    if any(row.active for row in rows) and not all(row.active for row in rows):
        lines += ["", *_split(experiment, rows, functions)]
    return "\n".join([*lines, ""])


def _mean_count(function: str) -> Callable[[list[Row]], str]:
    return lambda own: f"{mean(json.loads(row.counts)[function] for row in own):.1f}"


def _updates(own: list[Row], kind: str) -> str:
    seconds = mean(getattr(row, kind) for row in own)
    return f"{mean(getattr(row, f'{kind}s') for row in own):.1f} in {seconds:.0f} s"


def _busy(row: Row) -> float:
    return float(sum(json.loads(row.busy).values()))


def _idle(experiment: Experiment, own: list[Row]) -> float:
    """The share of the time in which the fastest task could have run and did not."""
    durations = experiment.methods[own[0].method].durations
    fast = min(durations, key=lambda task: durations[task])
    # One job runs at the moment of looking.
    left = [row.time - json.loads(row.busy)[fast] - durations[fast] for row in own]
    return mean(max(0.0, seconds) / row.time for seconds, row in zip(left, own, strict=True))


def _split(experiment: Experiment, rows: list[Row], functions: list[str]) -> list[str]:
    """Mean measurements of each function where a limit is active, and where none is."""
    lines = [
        f"| method | {experiment.by} | at the solution | problems | {' | '.join(functions)} |",
        f"|---|---|---|---|{'---|' * len(functions)}",
    ]
    for method in experiment.methods:
        for at in experiment.at:
            for active in (True, False):
                own = [r for r in rows if (r.method, r.at, r.active) == (method, at, active)]
                if own:
                    means = [_mean_count(function)(own) for function in functions]
                    lines.append(
                        f"| {method} | {at} | {'active' if active else 'not active'} | {len(own)}"
                        f" | {' | '.join(means)} |"
                    )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description="Measuring functions separately.")
    parser.add_argument("--experiments", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    parser.add_argument("--repetitions", type=int, help="by default what each experiment says")
    parser.add_argument("--processes", type=int, help="how many at once; by default every core")
    options = parser.parse_args()
    path = RESULTS / "decoupled.csv"
    for name in options.experiments:
        experiment = EXPERIMENTS[name]()
        done = {(row.experiment, row.method, row.seed) for row in read(path, Row)}
        jobs = {
            f"{name} {way} seed {seed}": (work, (name, way, seed))
            for seed in range(options.repetitions or experiment.repetitions)
            for way in experiment.methods
            if (name, way, seed) not in done
        }
        # Real decision times are taken one at a time.
        alone = any(method.deciding is None for method in experiment.methods.values())
        gather(jobs, path, 1 if alone else options.processes, tell=lambda r: f"gap {r[-1].gap:.2e}")
    rows = read(path, Row)
    parts = [
        report(name, own)
        for name in EXPERIMENTS
        if (own := [row for row in rows if row.experiment == name])
    ]
    text = "\n".join(parts)
    print(text)
    (RESULTS / "decoupled.md").write_text(f"# Measuring separately\n\n{__doc__}\n{text}")


if __name__ == "__main__":
    main()
