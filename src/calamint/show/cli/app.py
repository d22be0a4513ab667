"""The program that commands are added to, and what they share: options, and opening a study."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from calamint import run
from calamint.errors import ProblemError, SchemaError
from calamint.show.cli.output import Format

# What a script can tell by the exit code; 2 is a wrong command line.
FAILED, NOTHING_TO_DO, STORAGE, INTERRUPTED = 1, 3, 4, 130

Storage = Annotated[
    str,
    typer.Option(
        "--storage",
        "-s",
        envvar="CALAMINT_STORAGE",
        help="URL of the storage, such as sqlite:///study.db.",
    ),
]
Name = Annotated[
    str | None, typer.Option("--name", help="Name of the study, if the storage has several.")
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        envvar="CALAMINT_TRUST",
        help="Import the functions that the storage names, which runs their modules.",
    ),
]
As = Annotated[Format, typer.Option("--format", "-f", help="Output format.")]
JobNumber = Annotated[int, typer.Argument(help="Number of the job, as printed by ask.")]
DEFAULT = "sqlite:///calamint.db"

app = typer.Typer(
    name="calamint",
    help="Which measurement to make next, at which input, on which machine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Rich takes longer to load than all the rest of the help
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 nothing can start now,"
    " 4 the storage cannot be used, 130 interrupted.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"calamint {version('calamint')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


def read_study(storage: str, name: str | None, trust: bool) -> "run.StudyView":
    """The study that a command only reads; its storage may be one that cannot be written."""
    try:
        return run.StudyView.of(storage, name, trust=trust)
    except SchemaError:
        return open_study(storage, name, trust)


def confirmed(question: str, yes: bool) -> None:
    """Ask, unless the answer is given; without a yes nothing is done."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ProblemError("nobody can be asked: write --yes. Nothing was changed.")
    if not typer.confirm(question):
        typer.echo("Nothing was changed.")
        raise typer.Exit(FAILED)


def edit_study(storage: str, name: str | None, trust: bool) -> "run.StudyEditor":
    """The study that a command tells, corrects or changes; it decides nothing."""
    return run.StudyEditor.of(storage, name, trust=trust)


def open_study(storage: str, name: str | None, trust: bool) -> "run.Study":
    """The study that a command is about."""
    return run.Study.load(storage, name, trust=trust)
