"""Real tuning tasks: a network, its measured latency, boosted trees, a noisy regression.

    make peers-setup
    .venv-peers/bin/python benchmarks/real.py                       # everything, 20 repetitions
    .venv-peers/bin/python benchmarks/real.py --tasks network --repetitions 5
    .venv-peers/bin/python benchmarks/real.py --summarise           # only the table
    .venv-peers/bin/python benchmarks/real.py --retrain --tasks latency   # score answers again

Rows are appended to `results/real.csv`; running again goes on where it stopped. All methods have
the same starts and the same cost: one training and one check of the latency count as one joint
evaluation. A method's answer is the best input that it measured to meet every limit (Calamint: the
best confirmed one, with the last three evaluations for confirming). It is retrained, and scored by
its true objective; an answer that is infeasible then, or none, scores the 90th percentile of random
search's feasible answers. Differences are paired by seed; intervals are bootstrapped, and p is that
of Wilcoxon's test.
"""

import argparse
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.stats import wilcoxon

import rows
from calamint import Model, Optimizer
from real_tasks import TASKS, RealTask
from starts import starting_points

RESULTS = Path(__file__).parent / "results"
METHODS = ("auto", "none", "eic", "botorch", "optuna", "tpe", "random")
TITLES = {
    "auto": "Calamint",
    "none": 'Calamint, transform="none"',
    "eic": "EIC",
    "botorch": "BoTorch LogCEI",
    "optuna": "Optuna GPSampler",
    "tpe": "Optuna TPE",
    "random": "random search",
}
CONFIRM, STARTS = 3, 5


@dataclass(frozen=True)
class Row:
    """The answer of one repetition: what was measured there, and what retraining gave."""

    task: str
    method: str
    seed: int
    params: str
    claimed: float
    true: float
    feasible: bool

    @property
    def key(self) -> tuple[str, str, int]:
        return self.task, self.method, self.seed


def answer(task: RealTask, method: str, seed: int) -> tuple[Mapping[str, Any], float] | None:
    """The parameters that a method ends with, and the objective that it claims."""
    if method in ("auto", "none", "eic"):
        observed = search(task, method, seed).recommend(kind="observed")
        return (observed.params, observed.objective) if observed.confirmed else None
    import peers

    kinds = {
        "botorch": peers.BoTorchLogCEI,
        "optuna": peers.OptunaNoisyGP if task.noisy else peers.OptunaGP,
        "tpe": peers.OptunaTPE,
        "random": peers.RandomSearch,
    }
    coupled = _Coupled(task)
    contestant = kinds[method](coupled, seed, STARTS)  # type: ignore[arg-type]
    for evaluation in range(task.evaluations):
        name, params = contestant.ask()
        contestant.tell(name, params, task.measure(params, 1000 * seed + evaluation))
    best = contestant.recommend()
    if best is None:
        return None
    index = contestant.params.index(dict(best))
    return best, contestant.values[index][task.problem.objective.name]


class _Coupled:
    """What peers ask of a problem: one task that measures everything."""

    def __init__(self, task: RealTask) -> None:
        self.problem = task.problem.coupled()


def search(task: RealTask, method: str, seed: int) -> Optimizer:
    """Calamint after the whole budget, the last three evaluations for confirming."""
    problem = task.problem.coupled() if method == "eic" else task.problem
    optimizer = Optimizer(
        problem,
        "eic" if method == "eic" else "pesc",
        Model(transform="none" if method == "none" else "auto"),
        seed=seed,
        initial=0,
    )
    for run, params in enumerate(starting_points(_Coupled(task), seed, STARTS)):  # type: ignore[arg-type]
        optimizer.add(params, task.measure(params, 1000 * seed + run))
    for evaluation in range(STARTS, task.evaluations):
        confirming = evaluation >= task.evaluations - CONFIRM
        for name in problem.tasks:
            job = (optimizer.confirm() if confirming else None) or optimizer.ask(task=name)
            assert job is not None
            values = task.measure(job.params, 1000 * seed + evaluation)
            measures = problem.tasks[job.task].measures
            optimizer.tell(job, {key: values[key] for key in measures})
    return optimizer


def repetition(name: str, method: str, seed: int) -> list[Row]:
    found = answer(TASKS[name], method, seed)
    if found is None:
        return [Row(name, method, seed, "", np.nan, np.nan, False)]
    params, claimed = found
    return [retrained(Row(name, method, seed, json.dumps(dict(params)), claimed, np.nan, False))]


def retrained(row: Row) -> Row:
    """The same answer with its true objective, and whether it is feasible."""
    task = TASKS[row.task]
    true = task.truth(json.loads(row.params))
    feasible = all(limit.met(true[limit.name]) for limit in task.problem.constraints)
    return replace(row, true=true[task.problem.objective.name], feasible=feasible)


def table(found: list[Row]) -> str:
    """Scores by task and method, with the paired difference to each method's rivals."""
    lines = [
        "| task | method | repetitions | mean score | between runs | infeasible |"
        " claimed minus true | auto minus method, 95 % | p |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for task in TASKS:
        by_method = {
            method: {row.seed: row for row in found if (row.task, row.method) == (task, method)}
            for method in METHODS
        }
        random = [row.true for row in by_method["random"].values() if row.feasible]
        penalty = float(np.quantile(random, 0.9)) if random else np.nan
        scores = {
            method: {seed: row.true if row.feasible else penalty for seed, row in entries.items()}
            for method, entries in by_method.items()
        }
        for method, entries in by_method.items():
            if not entries:
                continue
            values = np.array(list(scores[method].values()))
            claims = [row.claimed - row.true for row in entries.values() if row.params]
            both = sorted(set(scores["auto"]) & set(scores[method]))
            paired = np.array([scores["auto"][s] - scores[method][s] for s in both])
            lines.append(
                f"| {task} | {TITLES[method]} | {len(values)} | {values.mean():.4g} |"
                f" {values.std(ddof=1) if len(values) > 1 else 0:.3g} |"
                f" {sum(not row.feasible for row in entries.values())} |"
                f" {np.mean(claims) if claims else np.nan:.3g} | {_interval(paired, method)} |"
            )
    return "\n".join(lines)


def _interval(paired: np.ndarray[Any, Any], method: str) -> str:
    if method == "auto" or len(paired) < 2:
        return "– | –"
    draws = np.random.default_rng(0).choice(paired, (4000, len(paired))).mean(1)
    low, high = np.quantile(draws, [0.025, 0.975])
    p = float(wilcoxon(paired).pvalue) if np.any(paired) else 1.0
    return f"{paired.mean():.3g} ({low:.3g} to {high:.3g}) | {p:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Real tuning tasks.")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--processes", type=int, help="how many at once; by default every core")
    parser.add_argument("--summarise", action="store_true", help="run nothing")
    parser.add_argument("--retrain", action="store_true", help="only score answers again")
    options = parser.parse_args()
    path = RESULTS / "real.csv"
    if options.retrain:
        found = rows.read(path, Row)
        path.unlink()
        again = [
            retrained(row) if row.task in options.tasks and row.params else row for row in found
        ]
        rows.append(path, again)
        options.summarise = True
    done = {row.key for row in rows.read(path, Row)}
    for quiet in (False, True):
        jobs = {
            f"{task} {method} seed {seed}": (repetition, (task, method, seed))
            for seed in range(options.repetitions)
            for task in options.tasks
            for method in options.methods
            if TASKS[task].quiet == quiet and (task, method, seed) not in done
        }
        if jobs and not options.summarise:
            rows.gather(
                jobs,
                path,
                1 if quiet else options.processes,
                tell=lambda found: f"{found[0].true:.4g}, feasible: {found[0].feasible}",
            )
    text = table(rows.read(path, Row))
    print(text)
    (RESULTS / "real.md").write_text(f"# Real tuning tasks\n\n{__doc__}\n{text}\n")


if __name__ == "__main__":
    main()
