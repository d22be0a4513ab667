"""`plot` and `report`: pictures of a study, and all of them with a page of words."""

from pathlib import Path
from typing import Annotated

import typer

from calamint import show
from calamint.checks import did_you_mean
from calamint.errors import ProblemError
from calamint.show.cli.app import DEFAULT, Name, Storage, Trust, app, read_study

# Written out, because importing them takes a while.
_NAMES = (
    *("progress", "trade_off", "limits", "slices", "contours", "importance"),
    *("parallel_coordinates", "decisions", "evaluations", "time", "timeline", "trust"),
    *("explain", "compare"),
)


@app.command(epilog="Example: calamint plot progress -o progress.html")
def plot(
    what: Annotated[str, typer.Argument(help=f"One of {', '.join(_NAMES)}.", metavar="PLOT")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .html, .png or .svg file; PLOT.html by default."),
    ] = None,
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
) -> None:
    """Draw a plot of a study to a file."""
    wanted = what.replace("-", "_")
    if wanted not in _NAMES:
        raise ProblemError(f"there is no plot {what!r}: {did_you_mean(wanted, _NAMES)}")
    path = output if output is not None else Path(f"{wanted}.html")
    drawn = show.plots.PLOTS[wanted](read_study(storage, name, trust))
    typer.echo(f"{drawn.save(path)}: {drawn.title}")


@app.command(epilog="Example: calamint report -o study.html")
def report(
    output: Annotated[Path, typer.Option("--output", "-o", help="The .html file to write.")] = Path(
        "report.html"
    ),
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
) -> None:
    """Write a report: what was found and why, with every plot and its data, in one HTML file."""

    def say(what: str) -> None:
        typer.echo(f"  {what}", err=True)

    path = show.write_report(read_study(storage, name, trust), output, say)
    typer.echo(f"{path}: open it in a browser; it needs no network")
