"""Decisions on large problems: many measurements, constraints and parameters, and a failed job.

    .venv/bin/python benchmarks/large.py

One thread. Measurements at space-filling or uniform inputs are given; then the first decision, and
the second after one more result, are timed, for each problem in a process of its own. The last
column is what the decision says of itself. Written to `results/large.md`.
"""

import os
import resource
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from calamint import Optimizer, Problem, Real
from calamint.testbed import CLASSIC
from starts import starting_points

Params = Mapping[str, Any]
Measure = Callable[[Params], dict[str, float]]


def toy(count: int) -> tuple[Optimizer, Measure]:
    solved = CLASSIC["toy"]().coupled()
    optimizer = Optimizer(solved.problem, initial=0)
    _add(optimizer, list(starting_points(solved, 0, count)), solved.evaluate)
    return optimizer, solved.evaluate


def jobs(failures: int) -> tuple[Optimizer, Measure]:
    """All 300 jobs of an initial design worked, or all but some."""
    solved = CLASSIC["toy"]().coupled()
    optimizer = Optimizer(solved.problem, initial=300)
    for index in range(300):
        job = optimizer.ask()
        assert job is not None
        if index < failures:
            optimizer.fail(job, "it crashed")
        else:
            optimizer.tell(job, solved.evaluate(job.params))
    last = optimizer.history[-1]
    optimizer.add(last.params, last.values)
    return optimizer, solved.evaluate


def constraints(count: int = 20, measured: int = 100) -> tuple[Optimizer, Measure]:
    names = [f"c{index}" for index in range(count)]
    rng = np.random.default_rng(0)
    waves = 3 * rng.standard_normal((count, 3))

    def measure(params: Params) -> dict[str, float]:
        x, y = params["x"], params["y"]
        values = 1.2 * np.sin(waves @ [x, y, 1 / 3])
        objective = (x - 0.3) ** 2 + (y - 0.6) ** 2 + 0.1 * np.sin(8 * x)
        return {"f": objective, **dict(zip(names, values.tolist(), strict=True))}

    problem = Problem(
        {"x": Real(0, 1), "y": Real(0, 1)}, "f", constraints=[f"{name} <= 1" for name in names]
    )
    optimizer = Optimizer(problem, initial=0)
    _add(optimizer, [{"x": x, "y": y} for x, y in rng.random((measured, 2)).tolist()], measure)
    return optimizer, measure


def parameters(count: int = 50, measured: int = 300) -> tuple[Optimizer, Measure]:
    names = [f"x{index}" for index in range(count)]

    def measure(params: Params) -> dict[str, float]:
        x = np.array([params[name] for name in names])
        objective = ((x[:6] - 0.4) ** 2).sum() + 0.1 * np.sin(5 * x[7])
        return {"f": float(objective), "c": float(x[:10].sum() - 6)}

    optimizer = Optimizer(
        Problem({name: Real(0, 1) for name in names}, "f", constraints=["c <= 0"]), initial=0
    )
    inputs = np.random.default_rng(0).random((measured, count)).tolist()
    _add(optimizer, [dict(zip(names, row, strict=True)) for row in inputs], measure)
    return optimizer, measure


def _add(optimizer: Optimizer, inputs: list[Params], measure: Measure) -> None:
    for params in [*inputs, inputs[0]]:  # one again: then no decision is about noise
        optimizer.add(params, measure(params))


CASES: dict[str, tuple[Callable[..., tuple[Optimizer, Measure]], tuple[int, ...]]] = {
    "toy, N = 300": (jobs, (0,)),
    "toy, N = 300, one failed job": (jobs, (1,)),
    "20 constraints, N = 100": (constraints, ()),
    "50 parameters, N = 300": (parameters, ()),
    "toy, N = 1000": (toy, (1000,)),
    "toy, N = 2000": (toy, (2000,)),
}


def row(name: str) -> str:
    build, given = CASES[name]
    optimizer, measure = build(*given)
    seconds = []
    for _ in range(2):
        job = optimizer.ask()
        assert job is not None
        optimizer.tell(job, measure(job.params))
        seconds.append(optimizer.decisions[-1].stage_seconds["total"])
    bounded = "; ".join(optimizer.decisions[-1].bounded)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"| {name} | {seconds[0]:.2f} s | {seconds[1]:.2f} s | {peak:.0f} MB | {bounded} |"


def main() -> None:
    lines = ["| problem | first | second | peak memory | bounded |", "|---|---|---|---|---|"]
    for name in CASES:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            lines.append(process.submit(row, name).result())
        print(lines[-1], flush=True)
    text = "\n".join(["# Decisions on large problems", "", str(__doc__), *lines, ""])
    (Path(__file__).parent / "results" / "large.md").write_text(text)


if __name__ == "__main__":
    main()
