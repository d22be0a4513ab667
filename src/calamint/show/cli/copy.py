"""`copy`: studies from one storage to another."""

from typing import Annotated

import typer

from calamint import run
from calamint.errors import ProblemError
from calamint.show.cli.app import app


@app.command(epilog="Example: calamint copy sqlite:///study.db postgresql://me@host/studies")
def copy(
    source: Annotated[str, typer.Argument(help="The URL of the storage that has the studies.")],
    target: Annotated[str, typer.Argument(help="The URL of the storage to copy them to.")],
    name: Annotated[
        str | None, typer.Option(help="Only this study; all of them by default.")
    ] = None,
) -> None:
    """Copy studies with their history to another storage, SQLite or PostgreSQL."""
    old = run.Database(source, read_only=True)
    names = run.names(old) if name is None else [name]
    if not names:
        raise ProblemError(f"storage {old.where} has no study: there is nothing to copy.")
    new = run.Database(target)
    for each in run.names(new):
        if each in names:
            raise ProblemError(f"the target has a study {each!r} already: nothing was copied.")
    for each in names:
        typer.echo(f"Study {run.copy_study(old, new, each)!r} is copied to {new.where}.")
