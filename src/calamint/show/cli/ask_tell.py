"""Commands for those who run measurements themselves: ask, tell, fail, cancel, enqueue; and for
jobs that need a person: release, forgive."""

import json
import sys
from enum import StrEnum
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
    Trust,
    app,
    open_study,
)
from calamint.show.cli.arguments import read_pairs, read_params, read_value
from calamint.show.cli.output import Format, show_answer


class Causes(StrEnum):
    crashed = "crashed"
    timeout = "timeout"
    refused = "refused"
    lost = "lost"
    infrastructure = "infrastructure"


@app.command(epilog="Example: calamint ask --task profile --format json")
def ask(
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
    task: Annotated[str | None, typer.Option(help="Consider only this task.")] = None,
    resource: Annotated[str | None, typer.Option(help="Consider only this resource.")] = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Confirm the recommendation first.")
    ] = False,
    format: As = Format.table,  # noqa: A002
) -> None:
    """Book the next job and print what to run (exit code 3: nothing can start)."""
    job = open_study(storage, name, trust).ask(resource, task, confirm=confirm)
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
    trust: Trust = False,
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
    study = open_study(storage, name, trust)
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
    cause: Annotated[
        Causes, typer.Option(help="Only crashed and timeout can be the input's fault.")
    ] = Causes.crashed,
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
) -> None:
    """Report that a job ended without a result."""
    open_study(storage, name, trust).fail(job, reason, cause.value)
    typer.echo(f"Job {job} is recorded as failed.")


@app.command(epilog="Example: calamint cancel 3")
def cancel(
    job: JobNumber, storage: Storage = DEFAULT, name: Name = None, trust: Trust = False
) -> None:
    """Cancel a job and free its resources."""
    open_study(storage, name, trust).cancel(job)
    typer.echo(f"Job {job} is cancelled.")


@app.command(epilog="Example: calamint release 3")
def release(
    job: JobNumber, storage: Storage = DEFAULT, name: Name = None, trust: Trust = False
) -> None:
    """Try a job again that is held, because its attempts were lost too often."""
    open_study(storage, name, trust).release(job)
    typer.echo(f"Job {job} waits to be asked for.")


@app.command(epilog="Example: calamint forgive 3")
def forgive(
    job: JobNumber, storage: Storage = DEFAULT, name: Name = None, trust: Trust = False
) -> None:
    """Take back a failure that was not the input's fault, with what it taught."""
    open_study(storage, name, trust).forgive(job)
    typer.echo(f"Job {job} is withdrawn: nothing is learnt from its failure.")


@app.command(epilog="Example: calamint enqueue train learning_rate=0.01 width=64")
def enqueue(
    task: Annotated[str, typer.Argument(help="Name of the task.")],
    params: Annotated[list[str], typer.Argument(help="Parameters as name=value, one for each.")],
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
) -> None:
    """Queue an input to be tried before anything else."""
    study = open_study(storage, name, trust)
    number = study.enqueue(task, read_params(study, params))
    typer.echo(f"Job {number} waits to be asked for.")
