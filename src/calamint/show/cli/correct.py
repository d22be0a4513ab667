"""Commands that put a study right: amend, complete, withdraw, restore, forgive."""

from typing import Annotated

import typer

from calamint.show.cli.app import DEFAULT, JobNumber, Name, Storage, Trust, app, edit_study
from calamint.show.cli.arguments import read_params, read_values
from calamint.show.cli.output import shown_values

Reason = Annotated[str, typer.Option(help="Why, in words.")]
Values = Annotated[list[str], typer.Argument(help="Values as name=value or name=value+-error.")]


@app.command(epilog='Example: calamint amend 3 yield=75.4 --reason "a misplaced point"')
def amend(
    job: JobNumber,
    values: Annotated[
        list[str] | None, typer.Argument(help="The right values as name=value.")
    ] = None,
    at: Annotated[
        list[str] | None, typer.Option(help="A parameter as it really was, name=value.")
    ] = None,
    reason: Reason = "",
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
) -> None:
    """Replace values that were told, or the input that they belong to."""
    study = edit_study(storage, name, trust)
    params = read_params(study, at) if at else None
    study.amend(job, read_values(values) if values else None, params, reason)
    typer.echo(f"Job {job} is amended: {shown_values(study, job)}.")


@app.command(epilog="Example: calamint complete 3 purity=0.93")
def complete(
    job: JobNumber,
    values: Values,
    more: Annotated[bool, typer.Option("--more", help="Others will follow.")] = False,
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
) -> None:
    """Tell values that arrive later, of functions that were left out or failed."""
    study = edit_study(storage, name, trust)
    study.complete(job, read_values(values), more)
    typer.echo(f"Job {job} is completed: {shown_values(study, job)}.")


@app.command(epilog='Example: calamint withdraw 3 "the flask was not clean"')
def withdraw(
    job: JobNumber,
    reason: Annotated[str, typer.Argument(help="Why, in words.")],
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
) -> None:
    """Take back a result or a failure, with all that it taught."""
    edit_study(storage, name, trust).withdraw(job, reason)
    typer.echo(f"Job {job} is withdrawn: nothing is learnt from it.")


@app.command(epilog="Example: calamint restore 3")
def restore(
    job: JobNumber, storage: Storage = DEFAULT, name: Name = None, trust: Trust = False
) -> None:
    """Take back all corrections of a job."""
    study = edit_study(storage, name, trust)
    study.restore(job)
    typer.echo(f"Job {job} is {study.jobs[job].state}, as first told: {shown_values(study, job)}.")


@app.command(epilog="Example: calamint forgive 3")
def forgive(
    job: JobNumber, storage: Storage = DEFAULT, name: Name = None, trust: Trust = False
) -> None:
    """Take back a failure that was not the input's fault, with what it taught."""
    edit_study(storage, name, trust).forgive(job)
    typer.echo(f"Job {job} is withdrawn: nothing is learnt from its failure.")
