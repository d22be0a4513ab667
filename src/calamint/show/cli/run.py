"""Commands that create a study and run it: init, run."""

from typing import Annotated

import typer
from rich.console import Console

from calamint.errors import ProblemError
from calamint.run import Database, Local, Study, names, read_works
from calamint.show.cli.app import DEFAULT, FAILED, INTERRUPTED, Name, Storage, app, open_study
from calamint.show.cli.arguments import import_name, read_problem
from calamint.show.live import Live
from calamint.show.sentences import say


@app.command(epilog="Example: calamint init problem.toml --storage sqlite:///nn.db")
def init(
    spec: Annotated[str, typer.Argument(help="A TOML or JSON file, or module:problem.")],
    storage: Storage = DEFAULT,
    name: Annotated[str, typer.Option("--name", "-n", help="Of the study.")] = "study",
    seed: Annotated[int | None, typer.Option(help="Another one gives another sequence.")] = None,
    acquisition: Annotated[str | None, typer.Option(help="How to decide; pesc by default.")] = None,
    delta: Annotated[float | None, typer.Option(help="Accepted risk of infeasibility.")] = None,
    rationality: Annotated[
        float | None, typer.Option(help="Share of the time that full updates may take.")
    ] = None,
) -> None:
    """Create a study from a problem, or check that it is there."""
    problem = read_problem(spec)
    database = Database(storage)
    existed = name in names(database)
    study = Study(
        problem,
        database,
        name,
        seed=seed,
        acquisition=acquisition,
        delta=delta,
        rationality=rationality,
    )
    typer.echo(problem.describe())
    done = sum(study.replica().ended.values())
    state = f"was there already, with {done} evaluations" if existed else "is ready"
    typer.echo(f"\nStudy {name!r} {state} in {database.where}.")


@app.command(epilog="Example: calamint run --evaluations 60 --storage sqlite:///nn.db")
def run(
    spec: Annotated[
        str | None, typer.Argument(help="Create the study from it, if it is not there.")
    ] = None,
    storage: Storage = DEFAULT,
    name: Name = None,
    evaluations: Annotated[int | None, typer.Option(help="In all, earlier ones included.")] = None,
    seconds: Annotated[float | None, typer.Option(help="After which no job is started.")] = None,
    cost: Annotated[float | None, typer.Option(help="In all, as it is expected.")] = None,
    bits: Annotated[float | None, typer.Option(help="The least that a job must tell.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds that a job may take.")] = None,
    tasks: Annotated[
        str | None, typer.Option(help="module:name of a dict of functions by task.")
    ] = None,
) -> None:
    """Decide and run jobs until a budget is used up; go on where an earlier run stopped."""
    if evaluations is None and seconds is None and cost is None and bits is None:
        raise ProblemError("no budget is given: add --evaluations, --seconds, --cost or --bits.")
    works = None if tasks is None else import_name(tasks, "'module:name' of a dict")
    if spec is not None:
        problem = read_problem(spec)
        read_works(problem.tasks, works)  # refuses before anything is stored
        study = Study(problem, Database(storage), name or "study")
    else:
        study = open_study(storage, name)
    console = Console()
    with Live(console) as live:
        report = study.run(
            works, evaluations, seconds, cost, bits, executor=Local(timeout), watch=live
        )
    say(console, f"{report}.")
    if study.history:
        say(console, f"Recommended: {study.recommend()}")
    say(console, f"Everything is in {study.database.where}.")
    if report.stopped == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if report.evaluations and report.failed == report.evaluations:
        say(console, "Every evaluation failed: `calamint jobs --state failed` has the reasons.")
        raise typer.Exit(FAILED)
