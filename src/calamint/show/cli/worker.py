"""`worker`: a machine that takes jobs of a study by itself."""

from typing import Annotated

import typer
from rich.console import Console

from calamint import run as running
from calamint import show
from calamint.show.cli.app import DEFAULT, INTERRUPTED, Name, Storage, Trust, app, open_study
from calamint.show.cli.arguments import check_offered, import_name, read_counts
from calamint.show.sentences import say

# Seconds of a worker without a budget: a human life.
_FOREVER = 3e9


@app.command(epilog="Example: calamint worker --resource gpu -s postgresql://me@host/studies")
def worker(
    resource: Annotated[
        list[str],
        typer.Option(help="What this machine offers: gpu, or cpu=4 for four jobs at a time."),
    ],
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
    evaluations: Annotated[
        int | None, typer.Option(help="Stop at this total number of evaluations of the study.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Start no more jobs after this many seconds.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Kill a job that runs longer than this many seconds.")
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(help="Functions that run the tasks: module:name or file.py:name of a dict."),
    ] = None,
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Go on if a task crashes in the same way everywhere."),
    ] = False,
) -> None:
    """Take jobs of a study that run on some resources, until Ctrl-C or a budget is used up.

    Any number of machines can work on a study in PostgreSQL, and any number of processes of one
    machine on one in SQLite. Tasks that run elsewhere need not be known here.
    """
    offered = read_counts(resource)
    functions = None if tasks is None else import_name(tasks, "'module:name' of a dict")
    study = open_study(storage, name, trust)
    check_offered(study, offered)
    console = Console()
    sentences = [f"Taking jobs of study {study.name!r} on {', '.join(offered)}; Ctrl-C to end."]

    def began(event: running.RunEvent) -> None:  # noqa: ARG001
        """Until then, options may be refused."""
        while sentences:
            say(console, sentences.pop())

    with show.Live(console) as live:
        report = study.run(
            functions,
            evaluations,
            _FOREVER if evaluations is None and seconds is None else seconds,
            executor=running.Local(timeout, resources=offered),
            watch=live,
            keep_going=keep_going,
            on=began,
        )
    say(console, f"{report}.")
    if report.stopped == "interrupted":
        raise typer.Exit(INTERRUPTED)
