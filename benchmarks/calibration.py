"""Do claims hold? Every measurement of a search on real tasks, predicted from all others.

    make peers-setup
    .venv-peers/bin/python benchmarks/calibration.py            # 10 searches of each task
    .venv-peers/bin/python benchmarks/calibration.py --summarise

Each search is that of `real.py`. Then each measurement in turn is left out, the model is fitted
anew to the rest, and what it says of the one left out, noise included, is compared with it.

Coverage is the share of values inside the central 90 % interval. The second table sorts
predictions of a constraint by the probability that the measurement meets its limits, and counts
how many did.
"""

import argparse
import itertools
import os
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.special import betaincinv, ndtr

import rows
from calamint.arrays import Array
from calamint.model import Data, FunctionSurrogate
from real import search
from real_tasks import TASKS

RESULTS = Path(__file__).parent / "results"
BINS = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)


@dataclass(frozen=True)
class Row:
    """One measurement that was left out.

    Attributes:
        below: The predicted probability of a smaller value.
        within: The predicted probability of meeting the limits; NaN for the objective.
        met: Whether it met them.
    """

    task: str
    seed: int
    function: str
    index: int
    below: float
    within: float
    met: bool

    @property
    def key(self) -> tuple[str, int, str, int]:
        return self.task, self.seed, self.function, self.index


def leave_one_out(name: str, seed: int) -> list[Row]:
    from calamint import Model
    from calamint.model import fit

    modelled = search(TASKS[name], "auto", seed).query().modelled
    problem, found = modelled.problem, []
    for index in range(max(map(len, modelled.data.values()))):
        rest = {function: _without(data, index) for function, data in modelled.data.items()}
        surrogate = fit(problem, Model(), rest, np.random.default_rng([seed, index]))
        for function, data in modelled.data.items():
            if index < len(data):
                below, within, met = _compared(surrogate.functions[function], data, index)
                within = np.nan if function == problem.objective.name else within
                found.append(
                    Row(name, seed, function, index, round(below, 4), round(within, 4), met)
                )
    return found


def _without(data: Data, index: int) -> Data:
    return data.take(np.flatnonzero(np.arange(len(data)) != index))


def _compared(model: FunctionSurrogate, data: Data, index: int) -> tuple[float, float, bool]:
    """Predicted probabilities of a smaller value and of meeting the limits; and whether it did."""
    mean, variance = model.posterior.mean_variance(data.inputs[index : index + 1])
    std = np.sqrt(variance + model.posterior.noise[:, None])
    value = float(model.transform.to_model(data.values[index : index + 1])[0])
    below, low, high = (ndtr((end - mean) / std).mean() for end in (value, model.low, model.high))
    return float(below), float(high - low), bool(model.low <= value <= model.high)


def coverage(found: list[Row]) -> str:
    lines = [
        "| task | function | measurements | 50 % | 90 % | 95 % |",
        "|---|---|---|---|---|---|",
    ]
    functions = dict.fromkeys((row.task, row.function) for row in found)
    for task, function in functions:
        below = np.array([r.below for r in found if (r.task, r.function) == (task, function)])
        lines.append(f"| {task} | {function} | {len(below)} | {_shares(below)} |")
    below = np.array([row.below for row in found])
    return "\n".join([*lines, f"| all | | {len(below)} | {_shares(below)} |"])


def _shares(below: Array) -> str:
    inside = [np.mean(np.abs(below - 0.5) <= level / 2) for level in (0.5, 0.9, 0.95)]
    return " | ".join(f"{share:.3f}" for share in inside)


def reliability(found: list[Row]) -> str:
    lines = [
        "| predicted probability | predictions | on average | limits met | 95 % interval |",
        "|---|---|---|---|---|",
    ]
    within = np.array([row.within for row in found])
    met = np.array([row.met for row in found])
    for low, high in itertools.pairwise(BINS):
        inside = (within >= low) & ((within < high) | (high == 1.0))
        count, successes = int(inside.sum()), int(met[inside].sum())
        if count:
            # Clopper and Pearson's, as if predictions were independent.
            ends = (
                betaincinv(successes, count - successes + 1, 0.025) if successes else 0.0,
                betaincinv(successes + 1, count - successes, 0.975) if successes < count else 1.0,
            )
            lines.append(
                f"| {low:g} to {high:g} | {count} | {within[inside].mean():.3f} |"
                f" {successes / count:.3f} | {ends[0]:.3f} to {ends[1]:.3f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Leave-one-out calibration on real tasks.")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--processes", type=int, help="how many at once; by default every core")
    parser.add_argument("--summarise", action="store_true", help="run nothing")
    options = parser.parse_args()
    path = RESULTS / "calibration.csv"
    done = {(row.task, row.seed) for row in rows.read(path, Row)}
    for quiet in (False, True):
        jobs = {
            f"{task} seed {seed}": (leave_one_out, (task, seed))
            for seed in range(options.repetitions)
            for task in options.tasks
            if TASKS[task].quiet == quiet and (task, seed) not in done
        }
        if jobs and not options.summarise:
            rows.gather(jobs, path, 1 if quiet else options.processes)
    found = sorted(rows.read(path, Row), key=lambda row: list(TASKS).index(row.task))
    text = f"{coverage(found)}\n\n{reliability(found)}\n"
    print(text)
    (RESULTS / "calibration.md").write_text(f"# Calibration on real tasks\n\n{__doc__}\n{text}")


if __name__ == "__main__":
    main()
