"""`make run`: the toy problem of Gramacy et al. as a study on two machines, stored in a file."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from calamint.decide import Recommendation
from calamint.problem import Params, Task
from calamint.run import Study
from calamint.show.live import Live
from calamint.show.sentences import say
from calamint.testbed import SolvedProblem, toy

# The objective is computed on one machine, the two constraints are measured on another.
TASKS = {
    name: Task(name, runs_on=["solver" if name == "f" else "lab"]) for name in ("f", "c1", "c2")
}
RESOURCES = {"solver": 1, "lab": 1}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Solve the toy problem and show the answer.")
    parser.add_argument("--evaluations", type=_positive, default=45, help="how many in all (45)")
    parser.add_argument("--seed", type=int, default=0, help="another run (0)")
    parser.add_argument("--storage", help="where to store it (sqlite:///runs/toy.db)")
    options = parser.parse_args(arguments)
    console = Console()
    solved = toy()
    problem = solved.problem.changed(tasks=TASKS, resources=RESOURCES)
    console.print(problem.describe(), highlight=False)
    console.print(
        "\nEach function is measured at a few space-filling inputs first; then predictive\n"
        "entropy search with constraints chooses what to measure, and where, as soon as\n"
        "a machine is free.\n",
        highlight=False,
    )
    if options.storage is None:
        Path("runs").mkdir(exist_ok=True)
    seed = abs(options.seed)
    study = Study(problem, options.storage or "sqlite:///runs/toy.db", f"toy-{seed}", seed=seed)
    done = sum(study.replica().ended.values())
    wanted = options.evaluations
    if done >= wanted:
        wanted = done + 15
        console.print(f"All {done} evaluations are stored: 15 more.", highlight=False)
    with Live(console) as live:
        report = study.run(
            {task: measurement(solved, task) for task in TASKS},
            evaluations=wanted,
            confirm=3,
            watch=live,
        )
    say(console, f"{report}.\n")
    seen = study.recommend(kind="observed")
    console.print(answer(solved, seen if seen.confirmed else study.recommend()))
    say(console, f"Everything is in {study.database.where}; run again, it goes on.")


def measurement(solved: SolvedProblem, name: str) -> Callable[[Params], dict[str, float]]:
    """A function of the problem, which takes a moment to measure."""

    def measure(params: Params) -> dict[str, float]:
        time.sleep(0.2)
        return solved.evaluate(params, name)

    return measure


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("write a whole number of at least 1")
    return number


def answer(solved: SolvedProblem, found: Recommendation) -> Table:
    """The recommendation with the true answer beside it."""
    table = Table(title="Recommendation")
    table.add_column("")
    table.add_column("found", justify="right")
    table.add_column("true answer", justify="right")
    for name in solved.problem.space.parameters:
        table.add_row(name, f"{found.params[name]:.4f}", f"{solved.solution[name]:.4f}")
    table.add_row("objective", f"{found.objective:.6f}", f"{solved.optimum:.6f}")
    doubt = "" if found.confident or found.confirmed else " (no input is feasible enough)"
    table.add_row("probability of being feasible", f"{found.probability:.1%}{doubt}", "")
    table.add_row("confirmed by measurements", "yes" if found.confirmed else "no", "")
    table.add_row("truly feasible", "yes" if solved.feasible(found.params) else "no", "yes")
    return table


if __name__ == "__main__":
    main()
