"""Commands that create a study and run it: init, run."""

from typing import Annotated

import typer
from rich.console import Console

from calamint import run as running
from calamint import show
from calamint.decide import default_confirmations
from calamint.errors import ProblemError
from calamint.show.cli.app import (
    DEFAULT,
    FAILED,
    INTERRUPTED,
    Name,
    Storage,
    Trust,
    app,
    open_study,
)
from calamint.show.cli.arguments import (
    import_name,
    read_problem_and_settings,
    read_rationality,
)
from calamint.show.sentences import say


@app.command(epilog="Example: calamint init problem.toml --storage sqlite:///nn.db")
def init(
    spec: Annotated[
        str,
        typer.Argument(
            help="Problem spec: a TOML or JSON file, or module:name or file.py:name of a Problem."
        ),
    ],
    storage: Storage = DEFAULT,
    name: Annotated[str, typer.Option("--name", help="Name of the study.")] = "study",
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    acquisition: Annotated[
        str | None, typer.Option(help="Acquisition function (default: pesc).")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Accepted probability of being infeasible.")
    ] = None,
    rationality: Annotated[
        str | None,
        typer.Option(
            help="Time of full updates relative to the time between them, 'inf' or 'batch'."
        ),
    ] = None,
    initial: Annotated[int | None, typer.Option(help="Inputs of the initial design.")] = None,
    fantasies: Annotated[
        int | None, typer.Option(help="Imagined results of every pending job.")
    ] = None,
    couple: Annotated[
        bool | None, typer.Option(help="Measure everything together, whatever the tasks.")
    ] = None,
    retries: Annotated[int | None, typer.Option(help="How often a job is tried again.")] = None,
    pause: Annotated[
        float | None, typer.Option(help="Seconds before the first retry, then doubled.")
    ] = None,
    others: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Any setting, such as model.transform=log or acquisition.solutions=50."
        ),
    ] = None,
) -> None:
    """Create a study from a problem spec, or check that it exists.

    Settings can also stand in the spec, in a table [settings]; options come first.
    """
    problem, settings = read_problem_and_settings(spec, others or ())
    options = {
        "seed": seed,
        "acquisition": acquisition,
        "delta": delta,
        "rationality": None if rationality is None else read_rationality(rationality),
        "initial": initial,
        "fantasies": fantasies,
        "couple": couple,
        "retries": retries,
        "pause": pause,
    }
    settings |= {key: value for key, value in options.items() if value is not None}
    database = running.Database(storage)
    existed = name in running.names(database)
    study = running.Study(problem, database, name, **settings)
    typer.echo(problem.describe())
    done = sum(study.replica().ended.values())
    state = f"was there already, with {done} evaluations" if existed else "is ready"
    typer.echo(f"\nStudy {name!r} {state} in {database.where}.")


@app.command(epilog="Example: calamint run --evaluations 60 --storage sqlite:///nn.db")
def run(
    spec: Annotated[
        str | None,
        typer.Argument(help="Problem spec to create the study from, if it does not exist."),
    ] = None,
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
    evaluations: Annotated[
        int | None, typer.Option(help="Total number of evaluations, earlier runs included.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Start no more jobs after this many seconds.")
    ] = None,
    cost: Annotated[
        float | None, typer.Option(help="Total expected cost of all jobs, earlier runs included.")
    ] = None,
    bits: Annotated[
        float | None, typer.Option(help="Stop when no job is expected to yield this many bits.")
    ] = None,
    confirm: Annotated[
        int | None,
        typer.Option(
            help="Confirmations of the recommendation within the budget; up to 3 if not given."
        ),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Kill a job that runs longer than this many seconds.")
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(help="Functions that run the tasks: module:name or file.py:name of a dict."),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(help="Run jobs on the cluster of this Dask scheduler: tcp://host:8786."),
    ] = None,
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Go on if a task crashes in the same way everywhere."),
    ] = False,
) -> None:
    """Decide and run jobs until a budget is used up; resumes an earlier run."""
    if evaluations is None and seconds is None and cost is None and bits is None:
        raise ProblemError("no budget is given: add --evaluations, --seconds, --cost or --bits.")
    functions = None if tasks is None else import_name(tasks, "'module:name' of a dict")
    if spec is not None:
        problem, settings = read_problem_and_settings(spec)
        running.check_tasks(problem.tasks, functions)  # refuses before anything is stored
        study = running.Study(problem, running.Database(storage), name or "study", **settings)
    else:
        study = open_study(storage, name, trust)
    console = Console()
    with show.Live(console) as live:
        report = study.run(
            functions,
            evaluations,
            seconds,
            cost,
            bits,
            default_confirmations(study.problem, evaluations) if confirm is None else confirm,
            running.Local(timeout) if dask is None else running.Dask(dask, timeout),
            live,
            keep_going=keep_going,
        )
    say(console, f"{report}.")
    if study.history:
        observed = study.recommend(kind="observed")
        if observed.confirmed:
            say(console, f"Best confirmed: {observed}")
        say(console, f"Best by the model: {study.recommend()}")
    say(console, f"Everything is in {study.database.where}.")
    if report.stopped == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if report.evaluations and report.failed == report.evaluations:
        say(console, "Every evaluation failed: `calamint jobs --state failed` has the reasons.")
        raise typer.Exit(FAILED)
