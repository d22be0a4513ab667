"""Serving a storage until somebody ends it."""

import ipaddress
import socket
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from types import FrameType
from typing import final

import uvicorn
from fastapi import FastAPI

from calamint.errors import ProblemError
from calamint.run import Database
from calamint.show.serve.app import make_app
from calamint.show.serve.changes import Changes
from calamint.show.serve.guard import RATE, Limits

# Seconds that requests have to end when the server does.
_LAST = 5
_WAITING = 200


def run_server(
    storage: str,
    host: str = "127.0.0.1",
    port: int = 8000,
    needs_token: bool = False,
    hosts: Collection[str] = (),
    rate: float = RATE,
    trust: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the studies of a storage until the process is interrupted.

    Args:
        host: The address to listen on. Any but that of this machine itself needs tokens.
        port: 0 chooses one that is free.
        needs_token: Whether the user of this machine needs a token, too.
        hosts: Names by which it may be called, besides localhost and addresses. As they are those
            of other machines, or of a proxy, everybody needs a token then.
        rate: Requests that each address may make in a second.
        trust: Import the functions that studies name, which runs their modules.
        say: Told where it listens.
    """
    database = Database(storage, create=False)
    listening = _listen(host, port)
    is_local = _is_loopback(host) and not hosts
    app = make_app(database, needs_token or not is_local, trust, Limits(hosts, rate=rate))
    name = f"[{host}]" if ":" in host else host
    say(f"{database.where} is served at http://{name}:{listening.getsockname()[1]}")
    if not is_local:
        say(
            "Everybody needs a token: `calamint token create NAME`. Nothing is encrypted: use a"
            " network that you trust, or a proxy with TLS."
        )
    with suppress(KeyboardInterrupt):  # how it is meant to be ended
        Server(app).run([listening])


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens, or a sentence why there is none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(found[0], found[1])
        if sys.platform != "win32":
            # A server that was started again can have its port at once.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(found[4])
        listening.listen(_WAITING)
    except (OSError, OverflowError) as error:
        raise ProblemError(
            f"{host}:{port} cannot be listened on: {error}. Choose another with --host or --port."
        ) from None
    return listening


@final
class Server(uvicorn.Server):
    """One whose requests that wait for something are answered before it ends."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_LAST,
            )
        )
        self._changes: Changes = app.state.changes

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._changes.stop_soon()
        super().handle_exit(sig, frame)
