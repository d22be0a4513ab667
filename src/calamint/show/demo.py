"""`make run`: the toy problem of Gramacy et al., solved before your eyes."""

import argparse
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from calamint.decide.design import space_filling
from calamint.testbed import SolvedProblem, toy


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Solve the toy problem and show the answer.")
    parser.add_argument("--evaluations", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    console = Console()
    solved = toy().coupled()
    console.print(solved.problem.describe(), highlight=False)
    console.print("\nSearching by a space-filling design: no model of the functions is used yet.\n")
    best, value = search(solved, options.evaluations, options.seed, console)
    console.print(answer(solved, best, value))


def search(
    solved: SolvedProblem, evaluations: int, seed: int, console: Console
) -> tuple[dict[str, Any], float]:
    """Evaluate a space-filling design; return the best feasible point and its objective."""
    problem = solved.problem
    rng = np.random.default_rng(seed)
    best: dict[str, Any] = {}
    lowest = np.inf
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task("evaluating", total=evaluations)
        for number, point in enumerate(space_filling(problem.space, evaluations, rng), start=1):
            params = problem.space.decode(point)
            values = solved.evaluate(params)
            objective = problem.objective.inward(values[problem.objective.name])
            met = all(limit.met(values[limit.name]) for limit in problem.constraints)
            if met and objective < lowest:
                best, lowest = params, objective
            progress.console.print(_line(number, params, values, met), highlight=False)
            progress.advance(bar)
    return best, problem.objective.outward(lowest)


def _line(number: int, params: dict[str, Any], values: dict[str, float], met: bool) -> str:
    inputs = "  ".join(f"{name} {value:.4f}" for name, value in params.items())
    results = "  ".join(f"{name} {value:+.4f}" for name, value in values.items())
    return f"{number:3}  {inputs}  ->  {results}  {'feasible' if met else '-'}"


def answer(solved: SolvedProblem, best: dict[str, Any], value: float) -> Table:
    """The recommendation with the true answer beside it."""
    table = Table(title="Recommendation")
    table.add_column("")
    table.add_column("found", justify="right")
    table.add_column("true answer", justify="right")
    for name in solved.problem.space.parameters:
        table.add_row(name, f"{best[name]:.4f}", f"{solved.solution[name]:.4f}")
    table.add_row("expected objective", f"{value:.4f}", f"{solved.optimum:.4f}")
    # Noise-free and measured at this very point, so there is no doubt left.
    table.add_row("probability of being feasible", "100 %", "")
    return table


if __name__ == "__main__":
    main()
