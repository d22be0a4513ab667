"""The command line: a whole optimisation without writing Python."""

import sys

import typer

from calamint.errors import CalamintError, StorageError
from calamint.show.cli import (
    ask_tell,
    change,
    cluster,
    copy,
    correct,
    doctor,
    export_import,
    plot,
    recommend,
    run,
    serve,
    status,
    worker,
)
from calamint.show.cli.app import FAILED, STORAGE, app

# Importing them adds their commands.
COMMANDS = (
    *(run, worker, cluster, status, ask_tell, correct, change),
    *(recommend, plot, export_import, copy, doctor, serve),
)
_ORDER = (
    *("init", "run", "worker", "cluster", "status", "recommend", "plot", "report"),
    *("ask", "tell", "fail", "cancel", "enqueue", "release"),
    *("amend", "complete", "withdraw", "restore", "forgive"),
    *("change", "changes", "pause", "resume", "serve"),
    *("jobs", "history", "predict", "gains", "export", "import", "copy", "studies", "doctor"),
)
app.registered_commands.sort(
    key=lambda command: _ORDER.index(command.name or command.callback.__name__)  # type: ignore[union-attr]
)


def main() -> None:
    """The program; mistakes are one sentence and an exit code."""
    try:
        app()
    except StorageError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(STORAGE)
    except CalamintError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
