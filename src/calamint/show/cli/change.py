"""Commands that change what a study is about: change, changes, pause, resume."""

from datetime import datetime
from typing import Annotated

import typer

from calamint.errors import ProblemError
from calamint.show.cli.app import (
    DEFAULT,
    As,
    Name,
    Storage,
    Trust,
    app,
    confirmed,
    edit_study,
    read_study,
)
from calamint.show.cli.arguments import read_problem
from calamint.show.cli.output import Format, show_rows

Reason = Annotated[str, typer.Option(help="Why, in words.")]
ATask = Annotated[str | None, typer.Option("--task", help="Name of the task.")]
AResource = Annotated[str | None, typer.Option("--resource", help="Name of the resource.")]


@app.command(epilog='Example: calamint change problem.toml --reason "the stirrer is new"')
def change(
    problem: Annotated[
        str | None, typer.Argument(help="The spec as it should be, .toml or .json.")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take the last change back.")] = False,
    reason: Reason = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
) -> None:
    """Go on with another problem: other bounds, options, limits, tasks, resources or costs.

    Settings stay as they are.
    """
    if undo == (problem is not None):
        raise ProblemError("write a spec, such as problem.toml, or --undo.")
    study = edit_study(storage, name, trust)
    wanted = study.problem_before(trust) if problem is None else read_problem(problem)
    differences = study.preview_change(wanted)
    if not differences:
        typer.echo("Nothing differs.")
        return
    for each in differences:
        typer.echo(f"  {each}")
    confirmed("Change the problem?", yes)
    study.change(wanted, reason or ("undone" if undo else ""))
    typer.echo("The problem is changed.")
    space = study.problem.space
    for job in study.jobs:
        point = space.encode(job.params, outside=True)
        if job.state in ("waiting", "running", "held") and not space.contains(point):
            typer.echo(
                f"Job {job.number} is {job.state} out of the new bounds: `calamint cancel"
                f" {job.number}` if it must not be measured."
            )


@app.command(epilog="Example: calamint changes --format json")
def changes(
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
    format: As = Format.table,  # noqa: A002
) -> None:
    """List all changes of the problem: what, who, when and why."""
    rows = [
        {
            "when": datetime.fromtimestamp(change.time).isoformat(" ", "minutes"),
            "by": change.by,
            "reason": change.reason,
            "what": "; ".join(change.differences),
        }
        for change in read_study(storage, name, trust).changes
    ]
    show_rows(rows, format)


@app.command(epilog="Example: calamint pause --resource hplc --reason maintenance")
def pause(
    task: ATask = None,
    resource: AResource = None,
    reason: Reason = "",
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
) -> None:
    """Start no more jobs of a task, or on a resource."""
    edit_study(storage, name, trust).pause(task, resource, reason)
    typer.echo(f"{task or resource} is paused.")


@app.command(epilog="Example: calamint resume --resource hplc")
def resume(
    task: ATask = None,
    resource: AResource = None,
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
) -> None:
    """Start jobs again of a task, or on a resource, that was paused."""
    edit_study(storage, name, trust).resume(task, resource)
    typer.echo(f"{task or resource} is resumed.")
