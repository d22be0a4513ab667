"""`make run`: the toy problem of Gramacy et al., its functions measured one at a time."""

import argparse
from collections import Counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from calamint.decide import Optimizer, Recommendation, Record, Suggestion
from calamint.testbed import SolvedProblem, toy


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Solve the toy problem and show the answer.")
    parser.add_argument("--evaluations", type=_positive, default=45, help="how many (45)")
    parser.add_argument("--seed", type=int, default=0, help="another run (0)")
    options = parser.parse_args(arguments)
    console = Console()
    solved = toy()
    console.print(solved.problem.describe(), highlight=False)
    optimizer = Optimizer(solved.problem, seed=abs(options.seed))
    console.print(
        f"\nEach function at {optimizer.initial} space-filling inputs first, then predictive"
        " entropy search with constraints\nchooses what to measure, and where. Each line: the"
        " measurement, the bits that were expected of it\nand of the best ones of the other"
        " functions, and the time that deciding took.\n",
        highlight=False,
    )
    search(solved, optimizer, options.evaluations, console)
    counts = Counter(record.task for record in optimizer.history)
    often = ", ".join(f"{task} {counts[task]} times" for task in solved.problem.tasks)
    console.print(f"\nMeasured: {often}.", highlight=False)
    console.print(answer(solved, optimizer.recommend()))


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("write a whole number of at least 1")
    return number


def search(solved: SolvedProblem, optimizer: Optimizer, evaluations: int, console: Console) -> None:
    """Ask, evaluate and tell, with a line for every measurement."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task("evaluating", total=evaluations)
        for _ in range(evaluations):
            suggestion = optimizer.ask()
            assert suggestion is not None
            optimizer.tell(suggestion, solved.evaluate(suggestion.params, suggestion.task))
            line = _line(len(optimizer.history), suggestion, optimizer.history[-1])
            progress.console.print(line, highlight=False)
            progress.advance(bar)


def _line(number: int, job: Suggestion, record: Record) -> str:
    inputs = "  ".join(f"{name} {value:.4f}" for name, value in record.params.items())
    results = "  ".join(f"{name:2} {value:+.4f}" for name, value in record.values.items())
    bits = ""
    if job.bits:
        others = ", ".join(f"{task} {value:z.2f}" for task, value in job.runners_up.items())
        bits = f"{sum(job.bits.values()):5.2f} bits ({others})"
    return f"{number:3}  {inputs}  {results}  {bits:28} {1000 * job.seconds:4.0f} ms"


def answer(solved: SolvedProblem, found: Recommendation) -> Table:
    """The recommendation with the true answer beside it."""
    table = Table(title="Recommendation")
    table.add_column("")
    table.add_column("found", justify="right")
    table.add_column("true answer", justify="right")
    for name in solved.problem.space.parameters:
        table.add_row(name, f"{found.params[name]:.4f}", f"{solved.solution[name]:.4f}")
    table.add_row("expected objective", f"{found.objective:.6f}", f"{solved.optimum:.6f}")
    doubt = "" if found.confident else " (no input is feasible enough)"
    table.add_row("probability of being feasible", f"{found.probability:.1%}{doubt}", "")
    table.add_row("truly feasible", "yes" if solved.feasible(found.params) else "no", "yes")
    return table


if __name__ == "__main__":
    main()
