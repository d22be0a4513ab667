"""A server in this process, on a port of its own, for tests."""

import contextlib
import signal
import socket
import threading
import time

import calamint as cm
from calamint.run import Database
from calamint.show.serve.app import make_app
from calamint.show.serve.server import Server


@contextlib.contextmanager
def serving(database, port=0, **options):
    """The URL of a server of a storage."""
    database = database if isinstance(database, Database) else Database(database)
    app = make_app(database, **options)
    server = Server(app)
    listening = socket.create_server(("127.0.0.1", port))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.handle_exit(signal.SIGTERM, None)
        thread.join(10)


VERBS = {name for name in vars(cm.RemoteStudy) if not name.startswith("_")}


class Served:
    """A study as a client has it: its verbs go over HTTP; what only tests look at is read from the
    storage."""

    def __init__(self, local, url, **options):
        self.local, self.remote = local, cm.connect(url, study=local.name, **options)

    def __getattr__(self, name):
        return getattr(self.remote if name in VERBS else self.local, name)
