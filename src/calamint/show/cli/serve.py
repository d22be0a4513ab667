"""`serve` and `token`: a dashboard and an API for a storage, and who may use them."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import typer

from calamint import run, show
from calamint.errors import ProblemError
from calamint.show.cli.app import DEFAULT, As, Storage, Trust, app
from calamint.show.cli.output import Format, show_rows


class Rights(StrEnum):
    read = "read"
    work = "work"
    manage = "manage"


@app.command(epilog="Example: calamint serve --storage sqlite:///study.db")
def serve(
    storage: Storage = DEFAULT,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 chooses one that is free.")
    ] = 8000,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Require tokens on this machine as well.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Another host name under which the server is reached; repeatable."),
    ] = None,
    rate: Annotated[
        float, typer.Option(min=1.0, help="Most requests a second from one address.")
    ] = 500.0,
    trust: Trust = False,
) -> None:
    """Serve a dashboard and an HTTP API for the studies of a storage, until Ctrl-C.

    Unless it is reached from this machine only, everybody needs a token.
    """
    try:
        run_server = show.run_server
    except ImportError:
        raise ProblemError(
            "the server needs FastAPI and uvicorn: pip install 'calamint[serve]'."
        ) from None
    run_server(storage, host, port, tokens, allow_host or (), rate, trust, typer.echo)


token = typer.Typer(
    help="Create, list and revoke tokens of `calamint serve`.", no_args_is_help=True
)
app.add_typer(token, name="token")


@token.command(epilog="Example: calamint token create hplc --right work --resource hplc")
def create(
    name: Annotated[str, typer.Argument(help="Who will use it; recorded with what is done.")],
    right: Annotated[
        Rights,
        typer.Option(help="read; work: ask for jobs and tell results; or manage: everything."),
    ] = Rights.work,
    resource: Annotated[
        list[str] | None, typer.Option(help="Only jobs on these resources (with --right work).")
    ] = None,
    study: Annotated[str | None, typer.Option(help="Only the study of this name.")] = None,
    storage: Storage = DEFAULT,
) -> None:
    """Create a token and print it; only its hash is stored."""
    database = run.Database(storage, create=False)
    number = None
    if study is not None:
        found = [each.id for each in run.study_records(database) if each.name == study]
        if not found:
            raise ProblemError(f"the storage has no study {study!r}: see `calamint studies`.")
        number = found[0]
    typer.echo(run.create_token(database, name, right.value, tuple(resource or ()), number))


@token.command("list", epilog="Example: calamint token list --format json")
def list_all(storage: Storage = DEFAULT, format: As = Format.table) -> None:  # noqa: A002
    """List all tokens, including revoked ones."""
    database = run.Database(storage, read_only=True)
    names = {each.id: each.name for each in run.study_records(database)}
    rows = [
        {
            "name": each.name,
            "right": each.right,
            "resources": ", ".join(each.resources) or None,
            "study": None if each.study is None else names[each.study],
            "created": _when(each.created),
            "revoked": None if each.revoked is None else _when(each.revoked),
        }
        for each in run.list_tokens(database)
    ]
    show_rows(rows, format)


@token.command(epilog="Example: calamint token revoke hplc")
def revoke(
    name: Annotated[str, typer.Argument(help="As `token list` prints it.")],
    storage: Storage = DEFAULT,
) -> None:
    """Revoke a token: it stops working at once."""
    run.revoke_token(run.Database(storage, create=False), name)
    typer.echo(f"Token {name} is revoked.")


def _when(moment: float) -> str:
    return datetime.fromtimestamp(moment).isoformat(" ", "minutes")
