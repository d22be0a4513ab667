"""Commands for those who run measurements themselves: ask, tell, fail, cancel, enqueue."""

import json
import sys
from typing import Annotated

import typer

from calamint.errors import ProblemError
from calamint.show.cli.app import (
    DEFAULT,
    NOTHING_TO_DO,
    As,
    JobNumber,
    Name,
    Storage,
    app,
    open_study,
)
from calamint.show.cli.arguments import read_pairs, read_params, read_value
from calamint.show.cli.output import Format, show_answer


@app.command(epilog="Example: calamint ask --task profile --format json")
def ask(
    storage: Storage = DEFAULT,
    name: Name = None,
    task: Annotated[str | None, typer.Option(help="Consider only this task.")] = None,
    resource: Annotated[str | None, typer.Option(help="Consider only this resource.")] = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Confirm the recommendation first.")
    ] = False,
    format: As = Format.table,  # noqa: A002
) -> None:
    """Book the next job and print what to run (exit code 3: nothing can start)."""
    job = open_study(storage, name).ask(resource, task, confirm=confirm)
    if job is None:
        typer.echo("Nothing can start now: tell, fail or cancel a job first.", err=True)
        raise typer.Exit(NOTHING_TO_DO)
    row = {
        "job": job.number,
        "task": job.task,
        "resources": list(job.resources),
        "params": job.params,
        "bits": job.bits,
        "cost": job.cost,
        "update": job.update,
    }
    show_answer(job, row, format)


@app.command(epilog="Example: calamint tell 3 error=0.071 latency_ms=1.3,0.1 converges=true")
def tell(
    job: JobNumber,
    values: Annotated[
        list[str] | None, typer.Argument(help="Results as name=value or name=value,standard_error.")
    ] = None,
    json_text: Annotated[
        str | None, typer.Option("--json", help="Results as JSON; - reads standard input.")
    ] = None,
    storage: Storage = DEFAULT,
    name: Name = None,
    seconds: Annotated[float | None, typer.Option(help="How long the job ran, in seconds.")] = None,
) -> None:
    """Report what a job measured."""
    if json_text is not None:
        text = sys.stdin.read() if json_text == "-" else json_text
        try:
            read = json.loads(text)
        except ValueError as error:
            raise ProblemError(f"the values are not JSON: {error}.") from error
    else:
        read = {key: read_value(text) for key, text in read_pairs(values or []).items()}
    study = open_study(storage, name)
    used = study.tell(job, read, seconds)
    if not used:
        typer.echo(f"Job {job} had ended: kept, and not used.")
        return
    record = study.jobs[job]
    failed = record.state != "done"
    typer.echo(
        f"Job {job} is {record.state}: {record.reason}." if failed else f"Job {job} is told."
    )


@app.command(epilog='Example: calamint fail 3 "the solver diverged"')
def fail(
    job: JobNumber,
    reason: Annotated[str, typer.Argument(help="Why it failed, in words.")],
    storage: Storage = DEFAULT,
    name: Name = None,
) -> None:
    """Report that a job ended without a result."""
    open_study(storage, name).fail(job, reason)
    typer.echo(f"Job {job} is recorded as failed.")


@app.command(epilog="Example: calamint cancel 3")
def cancel(job: JobNumber, storage: Storage = DEFAULT, name: Name = None) -> None:
    """Cancel a job and free its resources."""
    open_study(storage, name).cancel(job)
    typer.echo(f"Job {job} is cancelled.")


@app.command(epilog="Example: calamint enqueue train learning_rate=0.01 width=64")
def enqueue(
    task: Annotated[str, typer.Argument(help="Name of the task.")],
    params: Annotated[list[str], typer.Argument(help="Parameters as name=value, one for each.")],
    storage: Storage = DEFAULT,
    name: Name = None,
) -> None:
    """Queue an input to be tried before anything else."""
    study = open_study(storage, name)
    number = study.enqueue(task, read_params(study, params))
    typer.echo(f"Job {number} waits to be asked for.")
