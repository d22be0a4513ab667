"""Requests as any program makes them, without Calamint's client."""

import http.client
import json
from urllib.parse import urlencode, urlsplit


def ask(server, method, path, content=None, **headers):
    """Status, what was said, and headers. `content` is for JSON, bytes as they are, or a form."""
    parts = urlsplit(server)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    given = {key.replace("_", "-"): value for key, value in headers.items()}
    if isinstance(content, list):
        content = urlencode(content).encode()
        given.setdefault("Content-Type", "application/x-www-form-urlencoded")
    elif content is not None and not isinstance(content, bytes):
        content = json.dumps(content).encode()
    if content is not None:
        given.setdefault("Content-Type", "application/json")
    connection.request(method, path, content, given)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    kind = response.headers.get("content-type", "")
    return (
        response.status,
        json.loads(body) if kind.startswith("application/json") else body,
        response.headers,
    )


def sentence(answer):
    """What an error says, after a look at its form."""
    _, said, _ = answer
    assert set(said) == {"error"}
    assert set(said["error"]) == {"kind", "message"}
    message = said["error"]["message"]
    assert message[-1] in ".?"
    assert "Traceback" not in message
    return message
