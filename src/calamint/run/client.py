"""Talking to a server: requests that are made again while it cannot be reached, and only once."""

import http.client
import json
import math
import os
import secrets
import ssl
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any, final
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from calamint import errors
from calamint.checks import finite, shown
from calamint.errors import AccessError, CalamintError, ProblemError, StorageError
from calamint.run.messages import LARGEST_BODY, MOST_ROWS, exact_json

# Seconds to connect, and for the list of studies, which takes no time.
_SOON = 10.0
# Seconds that any other answer may take: a decision of a large study is long.
_TIMEOUT = 600.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
# The longest pause that a server can ask for.
_LONGEST_WISH = 60.0
_PASSING = (429, 502, 503, 504)


@final
class Client:
    """Requests to one server, each thread on a connection of its own.

    Args:
        url: Of the server, such as "http://127.0.0.1:8000".
        token: What `calamint token create` printed; None if the server needs none.
        patience: Seconds for which a request is made again, from when the server is found not to be
            reached. It has a key, by which the server knows it again: what it asks for is done
            once. A server that was reached may take minutes to answer, as decisions do.
    """

    def __init__(self, url: str, token: str | None = None, patience: float = 60.0) -> None:
        parts = _address(url)
        if token is not None and (
            not isinstance(token, str) or not (token.isascii() and token.isprintable())
        ):
            raise ProblemError("token is not one: write what `calamint token create` printed.")
        # A server behind a proxy can have a path of its own.
        self._base = quote(parts.path.rstrip("/"), safe="/%")
        self.url = f"{parts.scheme}://{parts.netloc}{self._base}"
        self.patience = _patience(patience)
        self._parts, self._token = parts, token
        self._local = threading.local()

    def __reduce__(self) -> Any:
        """Without its connections, which no other process could use."""
        return Client, (self.url, self._token, self.patience)

    def studies(self) -> list[Mapping[str, Any]]:
        return list(self._request("GET", "/studies", ("studies",), seconds=_SOON)["studies"])

    def get(self, path: str, *needed: str, **query: Any) -> Any:
        """What is answered, which has what is needed."""
        given = {key: value for key, value in query.items() if value not in (None, [], ())}
        path = f"{path}?{urlencode(given, doseq=True)}" if given else path
        return self._request("GET", path, needed)

    def post(self, path: str, content: Mapping[str, Any], *needed: str) -> Any:
        """What is answered, which has what is needed; if the server is to `wait`, it may take so
        many seconds more."""
        try:
            body = json.dumps({key: exact_json(each, key) for key, each in content.items()})
        except RecursionError:
            raise ProblemError("the request is nested without end: write plain dicts.") from None
        if len(body) > LARGEST_BODY:
            raise ProblemError(
                f"the request has {len(body):,} bytes: write at most {LARGEST_BODY:,}, such as"
                f" fewer rows at a time (at most {MOST_ROWS:,})."
            )
        return self._request("POST", path, needed, body, _TIMEOUT + content.get("wait", 0.0))

    def _request(
        self,
        method: str,
        path: str,
        needed: tuple[str, ...] = (),
        body: str | None = None,
        seconds: float = _TIMEOUT,
    ) -> dict[str, Any]:
        headers = self._headers(body)
        since, until, pause = time.monotonic(), math.inf, _FIRST_PAUSE
        while True:
            said, refusal, wish = self._once(method, path, needed, body, headers, seconds)
            if refusal is None:
                return said
            now = time.monotonic()
            if until == math.inf:
                # What never answered was waited for; what was lost may have gone on for minutes.
                until = self.patience + (since if _never_answered(refusal) else now)
            if now >= until or not (isinstance(refusal, StorageError) and refusal.transient):
                raise refusal
            time.sleep(min(max(pause, wish), until - now))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _headers(self, body: str | None) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
            headers["Idempotency-Key"] = secrets.token_hex(16)
        return headers

    def _once(
        self,
        method: str,
        path: str,
        needed: tuple[str, ...],
        body: str | None,
        headers: dict[str, str],
        seconds: float,
    ) -> tuple[dict[str, Any], CalamintError | None, float]:
        """What was said, or why not, and the seconds to wait if the server asks for that."""
        try:
            connection = self._connection()
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(seconds)
            connection.request(method, f"{self._base}/api{path}", body, headers)
            response = connection.getresponse()
            said = _json_object(response.read())
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            what = f"server {self.url} cannot be reached: is it running? ({error})."
            refusal = StorageError(what, transient=True)
            refusal.__cause__ = error
            return {}, refusal, 0.0
        if response.status == 200 and said is not None and said.keys() >= {*needed}:
            return said, None, 0.0
        wish = _seconds(response.headers.get("Retry-After"))
        return {}, _error(response.status, said, self.url), wish

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
                host, port or 443, timeout=_SOON, context=context
            )
        else:
            made = http.client.HTTPConnection(host, port or 80, timeout=_SOON)
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


def _address(url: object) -> SplitResult:
    """The parts of the address of a server.

    Raises:
        ProblemError: If it is not one.
    """
    text = url if isinstance(url, str) else ""
    if "@" in text:  # it may have a password, which must not be repeated
        raise ProblemError(
            "url has a user or a password ('@'): write the address alone, such as"
            " 'http://127.0.0.1:8000', and token= if the server asks for a token."
        )
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        host.encode("idna")
        known = parts.scheme in ("http", "https") and parts.port != 0
        known &= not (parts.query or parts.fragment) and host.isprintable() and " " not in host
    except ValueError:
        known = False
    if not known or not host:
        raise ProblemError(f"url is {shown(url)}: write such as 'http://127.0.0.1:8000'.")
    return parts


def _patience(seconds: object) -> float:
    number = math.inf if isinstance(seconds, float) and seconds == math.inf else finite(seconds)
    if number is None or number < 0:
        raise ProblemError(
            f"patience is {shown(seconds)}: write a number of seconds that is not negative."
        )
    return number


def _seconds(text: str | None) -> float:
    """What `Retry-After` says, within reason; 0 if it says nothing that can be read."""
    try:
        wish = float(text or 0.0)
    except ValueError:
        return 0.0
    return min(wish, _LONGEST_WISH) if wish > 0 else 0.0


def _never_answered(refusal: CalamintError) -> bool:
    return isinstance(refusal.__cause__, TimeoutError)


def _json_object(text: bytes) -> dict[str, Any] | None:
    """None if it is something else."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _error(status: int, said: Mapping[str, Any] | None, url: str) -> CalamintError:
    """What the server refused, as the error that a study here would have raised."""
    passes = status in _PASSING
    error = (said or {}).get("error")
    message = error.get("message") if isinstance(error, dict) else None
    if not isinstance(error, dict) or not isinstance(message, str):
        if status >= 500 or passes:
            return StorageError(f"server {url} answered with status {status}.", transient=passes)
        return _stranger(status, url)
    kind = getattr(errors, str(error.get("kind")), None)
    if not isinstance(kind, type) or not issubclass(kind, CalamintError):
        if not isinstance(error.get("kind"), str):
            return _stranger(status, url)
        kind = AccessError if status in (401, 403) else StorageError
    if kind is CalamintError and status in (404, 405):
        return _stranger(status, url)  # a page that it does not have, such as one of the dashboard
    if passes or issubclass(kind, StorageError):
        return StorageError(message, transient=passes)
    return kind(message)


def _stranger(status: int, url: str) -> StorageError:
    return StorageError(
        f"what answers at {url} is no Calamint server (status {status}): is the address right?"
    )
