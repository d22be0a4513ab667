"""Requests as any program makes them, without Calamint's client."""

import html
import http.client
import json
import re
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


def text_of(page):
    """What a reader sees of it."""
    words = re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(words).split())


def send(server, path, **fields):
    """Fill in the form of a page and send it: status, where it leads or what it says."""
    status, page, _ = ask(server, "GET", path)
    assert status == 200, page
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
    action = html.unescape(
        re.search(r'<form class="action" method="post" action="([^"]*)"', page)[1]
    )
    status, page, headers = ask(
        server, "POST", html.unescape(action), list({**hidden, **fields}.items())
    )
    return status, headers["Location"] if status == 303 else page


def done(answer):
    status, where = answer
    assert status == 303, where
    return where


def job_path(number, what=""):
    return f"/studies/1/jobs/{number}{what}"


def finish(study):
    job = study.ask()
    names = study.problem.tasks[job.task].measures
    study.tell(job, dict.fromkeys(names, 0.1 * (1 + job.number)))
    return job
