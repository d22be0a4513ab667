"""Talking to a server: requests that are made again while it cannot be reached, and only once."""

import http.client
import json
import os
import secrets
import ssl
import threading
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, final
from urllib.parse import urlencode, urlsplit

from calamint import errors
from calamint.errors import AccessError, CalamintError, ProblemError, StorageError

# Seconds that an answer may take: a decision of a large study is long.
_TIMEOUT = 600.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_PASSING = (429, 502, 503, 504)


@final
class Client:
    """Requests to one server, each thread on a connection of its own.

    Args:
        url: Of the server, such as "http://127.0.0.1:8000".
        token: What `calamint token create` printed; None if the server needs none.
        patience: Seconds for which a request is made again while the server cannot be reached. It
            has a key, by which the server knows it again: what it asks for is done once.
    """

    def __init__(self, url: str, token: str | None = None, patience: float = 60.0) -> None:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise ProblemError(f"url is {url!r}: write such as 'http://127.0.0.1:8000'.")
        if token is not None and (
            not isinstance(token, str) or not (token.isascii() and token.isprintable())
        ):
            raise ProblemError("token is not one: write what `calamint token create` printed.")
        self.url, self.patience = f"{parts.scheme}://{parts.netloc}", patience
        self._parts, self._token = parts, token
        self._local = threading.local()

    def __reduce__(self) -> Any:
        """Without its connections, which no other process could use."""
        return Client, (self.url, self._token, self.patience)

    def get(self, path: str, **query: Any) -> Any:
        given = {key: value for key, value in query.items() if value not in (None, [], ())}
        return self._request("GET", f"{path}?{urlencode(given, doseq=True)}" if given else path)

    def post(self, path: str, content: Mapping[str, Any], wait: float = 0.0) -> Any:
        """wait: seconds that the server may take to find something"""
        key = secrets.token_hex(16)
        return self._request("POST", path, json.dumps(content, allow_nan=False), key, wait)

    def _request(
        self,
        method: str,
        path: str,
        body: str | None = None,
        key: str | None = None,
        wait: float = 0.0,
    ) -> Any:
        headers = {"Accept": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        until, pause = time.monotonic() + self.patience, _FIRST_PAUSE
        while True:
            try:
                status, answer, after = self._once(method, path, body, headers, _TIMEOUT + wait)
            except (OSError, http.client.HTTPException) as error:
                self._drop()
                if time.monotonic() > until:
                    raise StorageError(
                        f"server {self.url} cannot be reached: is it running? ({error}).",
                        transient=True,
                    ) from error
            else:
                if status < 400:
                    return answer
                if status not in _PASSING or time.monotonic() > until:
                    raise _error(status, answer, self.url)
                pause = max(pause, after)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _once(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str], timeout: float
    ) -> tuple[int, Any, float]:
        """The status, what was said, and the seconds to wait if it asks for that."""
        connection = self._connection()
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        connection.request(method, f"/api{path}", body, dict(headers))
        response = connection.getresponse()
        text = response.read()
        after = 0.0
        with suppress(ValueError):
            after = float(response.headers.get("Retry-After") or 0.0)
        try:
            answer = json.loads(text) if text else None
        except ValueError:
            raise http.client.HTTPException(f"{self.url} answers with what is not JSON") from None
        return response.status, answer, after

    def _connection(self) -> http.client.HTTPConnection:
        """That of this thread; a forked process would be given the answers of its parent on it."""
        held = getattr(self._local, "held", None)
        if held is None or held[0] != os.getpid():
            held = self._local.held = os.getpid(), self._open()
        connection: http.client.HTTPConnection = held[1]
        return connection

    def _open(self) -> http.client.HTTPConnection:
        host, port = str(self._parts.hostname), self._parts.port
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            made: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, context=context
            )
        else:
            made = http.client.HTTPConnection(host, port)
        # When the thread has ended, or the client is gone.
        weakref.finalize(made, _close, made.__dict__)
        return made

    def _drop(self) -> None:
        if hasattr(self._local, "held"):
            self._local.held[1].close()
            del self._local.held


def _close(connection: Mapping[str, Any]) -> None:
    """By its attributes: it must not be kept alive."""
    if connection["sock"] is not None:
        connection["sock"].close()


def _error(status: int, answer: Any, url: str) -> CalamintError:
    """What the server refused, as the error that a study here would have raised."""
    said = answer.get("error", {}) if isinstance(answer, dict) else {}
    message = said.get("message", f"server {url} answered with status {status}.")
    kind = getattr(errors, str(said.get("kind")), None)
    if isinstance(kind, type) and issubclass(kind, StorageError):
        return StorageError(message, transient=status in _PASSING)
    if isinstance(kind, type) and issubclass(kind, CalamintError):
        return kind(message)
    return AccessError(message) if status in (401, 403) else StorageError(message, transient=True)
