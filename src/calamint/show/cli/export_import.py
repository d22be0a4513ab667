"""Commands for tables of measurements: export, import."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from calamint.errors import ProblemError
from calamint.show.cli.app import DEFAULT, Name, Storage, Trust, app, edit_study, read_study


class Extra(StrEnum):
    refuse = "refuse"
    ignore = "ignore"
    notes = "notes"


@app.command(epilog="Example: calamint export measurements.csv")
def export(
    path: Annotated[Path, typer.Argument(help="File to write, ending in .csv or .json.")],
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
) -> None:
    """Write all measurements to a CSV or JSON file."""
    study = read_study(storage, name, trust)
    if path.suffix == ".json":
        try:
            path.write_text(json.dumps(study.table(), indent=2) + "\n")
        except OSError as error:
            raise ProblemError(f"{str(path)!r} cannot be written: {error.strerror}.") from error
    elif path.suffix == ".csv":
        study.to_csv(path)
    else:
        raise ProblemError(f"the file is {str(path)!r}: write one ending in .csv or .json.")
    typer.echo(f"Rows in {path}: {len(study.history)}.")


@app.command("import", epilog="Example: calamint import earlier.csv")
def import_(
    path: Annotated[
        Path, typer.Argument(help="CSV, Excel or JSON file, with the columns that export writes.")
    ],
    extra: Annotated[
        Extra, typer.Option(help="What to do with other columns: ignore, or keep as notes.")
    ] = Extra.refuse,
    again: Annotated[
        bool, typer.Option("--again", help="Add rows that the study has already, as repeated.")
    ] = False,
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
) -> None:
    """Add measurements from a file; rows that the study has already are skipped."""
    report = edit_study(storage, name, trust).add_table(path, extra.value, again)
    skipped = f", skipped as the study has them already: {report.skipped}" * (report.skipped > 0)
    typer.echo(f"Rows added: {report.added}{skipped}.")
