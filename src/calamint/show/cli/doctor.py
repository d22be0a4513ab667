"""The command that checks the installation and a storage: doctor."""

from typing import Annotated

import typer

from calamint import show
from calamint.show.cli.app import FAILED, app


@app.command(epilog="Example: calamint doctor --storage sqlite:///nn.db")
def doctor(
    storage: Annotated[
        str | None, typer.Option("--storage", "-s", envvar="CALAMINT_STORAGE")
    ] = None,
) -> None:
    """Check the installation and a storage, and print what is wrong."""
    findings = show.examine(storage)
    for finding in findings:
        typer.echo(f"{'ok   ' if finding.well else 'WRONG'} {finding.sentence}")
    if not all(finding.well for finding in findings):
        raise typer.Exit(FAILED)
