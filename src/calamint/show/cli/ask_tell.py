"""Commands for those who run measurements themselves: ask, tell, fail, cancel, enqueue, release."""

import json
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from calamint import run
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
    edit_study,
    open_study,
)
from calamint.show.cli.arguments import read_params, read_values
from calamint.show.cli.output import Format, show_answer, show_rows, shown_values


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
    n: Annotated[
        int | None,
        typer.Option("--number", "-n", help="How many jobs to book, whatever the capacity."),
    ] = None,
    format: As = Format.table,  # noqa: A002
) -> None:
    """Book the next job and print what to run (exit code 3: nothing can start)."""
    study = open_study(storage, name, trust)
    if n is not None:
        jobs = study.ask(resource, task, confirm=confirm, n=n)
        inputs = ({"job": job.number, "task": job.task, **job.params} for job in jobs)
        show_rows([_row(job) for job in jobs] if format is Format.json else list(inputs), format)
        return
    job = study.ask(resource, task, confirm=confirm)
    if job is None:
        typer.echo(f"Nothing can start now: {_taken(study)}", err=True)
        raise typer.Exit(NOTHING_TO_DO)
    show_answer(job, _row(job), format)


def _row(job: "run.Job") -> dict[str, Any]:
    return {
        "job": job.number,
        "task": job.task,
        "resources": list(job.resources),
        "params": job.params,
        "bits": job.bits,
        "cost": job.cost,
        "update": job.update,
    }


def _taken(study: "run.Study") -> str:
    """Which capacity is taken by which jobs, and what to do."""
    taken = [
        f"{resource} is taken by job {' and job '.join(map(str, numbers))}"
        for resource, numbers in study.occupied().items()
    ]
    paused = [f"{kind} {name} is paused" for kind, each in study.paused.items() for name in each]
    if paused:
        resume = "Resume it" if len(paused) == 1 else "Resume them"
        return f"{'; '.join([*taken, *paused])}. {resume}, or tell, fail or cancel a job first."
    return f"{'; '.join(taken) or 'jobs wait to be tried again'}. Tell, fail or cancel a job first."


@app.command(epilog="Example: calamint tell 3 error=0.071 latency_ms=1.3+-0.1 converges=true")
def tell(
    job: JobNumber,
    values: Annotated[
        list[str] | None,
        typer.Argument(help="Results as name=value or name=value+-standard_error."),
    ] = None,
    json_text: Annotated[
        str | None, typer.Option("--json", help="Results as JSON; - reads standard input.")
    ] = None,
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
    seconds: Annotated[float | None, typer.Option(help="How long the job ran, in seconds.")] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(help="A parameter that was not as suggested, as it really was: name=value."),
    ] = None,
    more: Annotated[
        bool, typer.Option("--more", help="Functions that are left out will follow: see complete.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask about values far outside what was seen.")
    ] = False,
) -> None:
    """Report what a job measured."""
    if json_text is not None:
        text = sys.stdin.read() if json_text == "-" else json_text
        try:
            read = json.loads(text)
        except ValueError as error:
            raise ProblemError(f"the values are not JSON: {error}.") from error
    else:
        read = read_values(values or [])
    study = edit_study(storage, name, trust)
    params = read_params(study, at) if at else None
    for doubt in run.far_outside(study.history, read):
        if not sys.stdin.isatty():  # nobody can answer
            typer.echo(
                f"{doubt} Put it right by `calamint amend {job}` if that is wrong.", err=True
            )
        elif not yes and not typer.confirm(f"{doubt} Tell it?"):
            typer.echo("Nothing was told.")
            raise typer.Exit(1)
    used = study.tell(job, read, seconds, params, more)
    if not used:
        typer.echo(f"Job {job} had ended: kept, and not used.")
        return
    record = study.jobs[job]
    if record.state == "failed":
        typer.echo(f"Job {job} is failed: {record.reason}.")
    else:
        rest = ", more to come" if record.state == "partial" else ""
        typer.echo(f"Job {job} is told: {shown_values(study, job)}{rest}.")


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
    study = edit_study(storage, name, trust)
    study.fail(job, reason, cause.value)
    state = study.jobs[job].state
    again = ": it is tried again" if state == "waiting" else ""
    typer.echo(f"Job {job} is {state}{again}.")


@app.command(epilog="Example: calamint cancel 3")
def cancel(
    job: JobNumber, storage: Storage = DEFAULT, name: Name = None, trust: Trust = False
) -> None:
    """Cancel a job and free its resources."""
    edit_study(storage, name, trust).cancel(job)
    typer.echo(f"Job {job} is cancelled.")


@app.command(epilog="Example: calamint release 3")
def release(
    job: JobNumber, storage: Storage = DEFAULT, name: Name = None, trust: Trust = False
) -> None:
    """Try a job again that is held, because its attempts were lost too often."""
    edit_study(storage, name, trust).release(job)
    typer.echo(f"Job {job} waits to be asked for.")


@app.command(epilog="Example: calamint enqueue train learning_rate=0.01 width=64")
def enqueue(
    task: Annotated[str, typer.Argument(help="Name of the task.")],
    params: Annotated[list[str], typer.Argument(help="Parameters as name=value, one for each.")],
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
) -> None:
    """Queue an input to be tried before anything else."""
    study = edit_study(storage, name, trust)
    number = study.enqueue(task, read_params(study, params))
    typer.echo(f"Job {number} waits to be asked for.")
