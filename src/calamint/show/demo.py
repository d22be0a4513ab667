"""`make run`: the toy problem of Gramacy et al., solved before your eyes."""

import argparse

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from calamint.decide import Optimizer, Recommendation, Record
from calamint.testbed import SolvedProblem, toy


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Solve the toy problem and show the answer.")
    parser.add_argument("--evaluations", type=_positive, default=24, help="how many (24)")
    parser.add_argument("--seed", type=int, default=0, help="another run (0)")
    options = parser.parse_args(arguments)
    console = Console()
    solved = toy().coupled()
    console.print(solved.problem.describe(), highlight=False)
    optimizer = Optimizer(solved.problem, seed=abs(options.seed))
    console.print(
        f"\n{optimizer.initial} space-filling inputs first, then predictive entropy search with"
        f" constraints,\nunder {optimizer.model.samples} samples of the model's hyper-parameters."
        " At the end of each line: the\nbits that were expected of the evaluation, and the time"
        " that deciding took.\n",
        highlight=False,
    )
    search(solved, optimizer, options.evaluations, console)
    console.print(answer(solved, optimizer.recommend()))


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("write a whole number of at least 1")
    return number


def search(solved: SolvedProblem, optimizer: Optimizer, evaluations: int, console: Console) -> None:
    """Ask, evaluate and tell, with a line for every evaluation and the time that deciding took."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task("evaluating", total=evaluations)
        for _ in range(evaluations):
            suggestion = optimizer.ask()
            assert suggestion is not None
            optimizer.tell(suggestion, solved.evaluate(suggestion.params))
            seconds = optimizer.decisions[-1].seconds["total"]
            bits = sum(suggestion.bits.values()) if suggestion.bits else None
            line = _line(len(optimizer.history), optimizer.history[-1], bits, seconds)
            progress.console.print(line, highlight=False)
            progress.advance(bar)


def _line(number: int, record: Record, bits: float | None, seconds: float) -> str:
    inputs = "  ".join(f"{name} {value:.4f}" for name, value in record.params.items())
    results = "  ".join(f"{name} {value:+.4f}" for name, value in record.values.items())
    told = "         " if bits is None else f"{bits:4.2f} bits"
    return f"{number:3} {inputs} -> {results} {told} {1000 * seconds:4.0f} ms"


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
