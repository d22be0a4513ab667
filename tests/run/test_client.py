"""The client: what it makes of servers that are none, of addresses, forks, and strange values."""

import contextlib
import http.server
import json
import math
import multiprocessing
import os
import pickle
import signal
import socket
import threading
import time
import traceback
from fractions import Fraction

import numpy as np
import pytest
from tests.run.cases import quick
from tests.run.served import serving

import calamint as cm
from calamint.run import client as client_module
from calamint.run.messages import pages_of

LISTED = {"studies": [{"id": 1, "uid": "u", "name": "study"}]}


@pytest.fixture
def study(tmp_path):
    return quick(storage=f"sqlite:///{tmp_path / 'a.db'}")


@pytest.fixture
def remote(study):
    with serving(study.database) as url:
        yield cm.connect(url)


def said(content, status=200, **headers):
    return status, headers, json.dumps(content).encode()


class Scripted(http.server.ThreadingHTTPServer):
    """Lists one study, and gives these answers to all else; the last one for ever. None is lost
    after a second."""

    daemon_threads = True

    def __init__(self, answers, prefix):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.prefix, self.asked = list(answers), prefix, []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server = self.server
        server.asked.append(self.path)
        listing = self.path == f"{server.prefix}/api/studies"
        answers = server.answers
        answer = said(LISTED) if listing else answers.pop(0) if answers[1:] else answers[0]
        if answer is None:
            time.sleep(1.0)
            self.close_connection = True
            return
        status, headers, body = answer
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST  # noqa: N815 as the library calls it

    def log_message(self, *words):
        pass


@contextlib.contextmanager
def answering(*answers, prefix=""):
    with Scripted(answers, prefix) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        server.url = f"http://127.0.0.1:{server.server_port}{prefix}"
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


# -- processes --------------------------------------------------------------------------------


def enqueues(remote, share):
    """Queue jobs at inputs of its own; the numbers that it is told must be theirs."""
    for turn in range(8):
        x = (share * 100 + turn) / 1000
        number = remote.enqueue("price", {"x": x, "y": 0.5})
        assert remote.jobs[number].params["x"] == x


def test_forked_processes_are_given_their_own_answers(study, remote):
    children = []
    for share in range(3):
        pid = os.fork()
        if pid == 0:
            try:
                signal.alarm(30)  # an answer that another one has read never comes
                enqueues(remote, share)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
    enqueues(remote, 3)  # over the connection that they were forked with
    assert len(study.jobs) == 32


def asks(remote):
    remote.enqueue("price", {"x": 0.25, "y": 0.5})


def test_a_study_can_be_sent_to_another_process(study, remote):
    again = pickle.loads(pickle.dumps(remote))
    assert (again.name, again.uid, str(again)) == (remote.name, remote.uid, str(remote))
    process = multiprocessing.get_context("spawn").Process(target=asks, args=(remote,))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert again.ask().params == {"x": 0.25, "y": 0.5}


def test_a_pickle_keeps_how_the_server_is_reached():
    made = client_module.Client("http://lab:8000/calamint/", "calamint_1_x", patience=7.0)
    again = pickle.loads(pickle.dumps(made))
    assert (again.url, again.patience) == ("http://lab:8000/calamint", 7.0)
    assert again._token == "calamint_1_x"


# -- what answers -----------------------------------------------------------------------------

STRANGERS = {
    "a redirect": (302, {"Location": "http://127.0.0.1:9/login"}, b""),
    "nothing": (204, {}, b""),
    "another success": said({"done": True}, 201),
    "a list": said([]),
    "null": said(None),
    "another object": said({}),
    "a page": (200, {}, b"<html>Log in</html>"),
    "a page that is missing": (404, {}, b"<html>Not found</html>"),
    "a page that is forbidden": (403, {}, b"<html>Forbidden</html>"),
    "an error of words": said({"error": "x"}, 404),
    "an error of nothing": said({"error": None}, 404),
    "an error without a kind": said({"error": {"code": 404, "message": "Not found"}}, 404),
    "an error without words": said({"error": {"kind": "ResultError"}}, 422),
    "nesting without end": (200, {}, b"[" * 100_000),
}


@pytest.mark.parametrize("answer", STRANGERS.values(), ids=STRANGERS.keys())
def test_what_answers_is_no_calamint_server(answer):
    """Nothing is taken for done, and nobody waits."""
    with answering(answer) as server:
        remote, start = cm.connect(server.url, patience=30.0), time.monotonic()
        for verb in (
            lambda: remote.cancel(3),
            lambda: remote.ask(),
            lambda: remote.ask(n=2),
            lambda: remote.tell(0, {"f": 1.0}),
            lambda: remote.enqueue("price", {}),
            lambda: remote.add({}, {"f": 1.0}),
            lambda: remote.pause(),
            lambda: remote.recommend(),
            lambda: remote.predict({}),
            lambda: remote.gains([]),
            lambda: remote.summary(),
            lambda: remote.jobs,
            lambda: remote.paused,
            lambda: remote.problem,
        ):
            with pytest.raises(cm.StorageError, match="no Calamint server") as raised:
                verb()
            assert "is the address right?" in str(raised.value)
            assert not raised.value.transient
        assert time.monotonic() - start < 5


@pytest.mark.parametrize("answer", STRANGERS.values(), ids=STRANGERS.keys())
def test_connecting_to_what_is_no_calamint_server(answer):
    with (
        answering(answer, prefix="/other") as server,
        pytest.raises(cm.StorageError, match="no Calamint server"),
    ):
        cm.connect(server.url.removesuffix("/other"))


def test_connecting_to_a_page_of_a_calamint_server(study):
    with serving(study.database) as url:
        for path in ("/studies/1", "/api"):
            with pytest.raises(cm.StorageError, match=f"at {url}{path} is no Calamint server"):
                cm.connect(f"{url}{path}")


@pytest.mark.parametrize("wish", ["inf", "nan", "-1", "1e400", "soon", "3600"])
def test_a_server_that_asks_for_time(wish):
    """It is given some, and not more than there is patience."""
    busy = (503, {"Retry_After": wish}, b"<html>Busy</html>")
    with answering(busy) as server:
        remote, start = cm.connect(server.url, patience=0.6), time.monotonic()
        with pytest.raises(cm.StorageError, match="answered with status 503") as raised:
            remote.cancel(3)
        assert raised.value.transient
        assert 0.5 < time.monotonic() - start < 3
    with answering(busy, said({"done": True})) as server:
        cm.connect(server.url, patience=0.6).cancel(3)


def test_an_error_that_passes_is_that_of_the_server():
    words = {"error": {"kind": "CalamintError", "message": "too many requests: wait a moment."}}
    with (
        answering(said(words, 429)) as server,
        pytest.raises(cm.StorageError, match=r"^too many requests: wait a moment\.$") as raised,
    ):
        cm.connect(server.url, patience=0.0).cancel(3)
    assert raised.value.transient


def test_a_server_that_never_answers(monkeypatch):
    """A system takes connections for a program that hangs."""
    monkeypatch.setattr(client_module, "_SOON", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        with pytest.raises(cm.StorageError, match="cannot be reached"):
            cm.connect(f"http://127.0.0.1:{silent.getsockname()[1]}", patience=0.1)
        assert time.monotonic() - start < 3


def test_a_connection_is_not_waited_for_as_an_answer_is(monkeypatch):
    waited = []

    def connect(address, timeout, *more):
        waited.append(timeout)
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(cm.StorageError, match=r"cannot be reached: is it running\? \(timed out\)"):
        client_module.Client("http://127.0.0.1:8000", patience=0.0).get("/studies/1")
    assert waited == [10.0]


def test_a_request_that_was_lost_after_a_long_time_is_made_again():
    """As when a server is restarted while somebody waits for a job: patience begins there."""
    with answering(None, said({"job": None})) as server:
        assert cm.connect(server.url, patience=0.5).ask(wait=600) is None


# -- addresses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1:99999", "http://127.0.0.1:abc", "http://127.0.0.1:0", "http://[::1"),
        *("lab:8000", "ftp://lab", "http://", "http://:80", "", None, b"http://lab", 8000),
        *("http://a b", "http://a..b", "http://lab?x=1", "http://lab#x", f"http://{'a' * 99}"),
    ],
)
def test_addresses_that_are_none(url):
    with pytest.raises(cm.ProblemError, match="write such as 'http://127"):
        cm.connect(url)


@pytest.mark.parametrize("url", ["http://u:secret@lab", "http:/u:secret@lab", "u:secret@[::1"])
def test_addresses_with_passwords(url):
    with pytest.raises(cm.ProblemError, match="and token= if") as raised:
        cm.connect(url)
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("end", ["", "/"])
def test_a_server_that_has_a_path_of_its_own(end):
    with answering(said({"done": True}), prefix="/lab%20a/calamint") as server:
        remote = cm.connect(f"{server.url}{end}".replace("%20", " "))
        remote.cancel(3)
        assert repr(remote) == f"<RemoteStudy 'study' on {server.url}>"
        assert server.asked == [
            "/lab%20a/calamint/api/studies",
            "/lab%20a/calamint/api/studies/1/jobs/3/cancel",
        ]


def test_addresses_without_a_port():
    for url, host, port in (
        *(("http://[::1]", "::1", 80), ("https://[::1]", "::1", 443)),
        *(("http://lab", "lab", 80), ("https://lab:8443/x", "lab", 8443)),
    ):
        made = client_module.Client(url)._open()
        assert (made.host, made.port) == (host, port)


@pytest.mark.parametrize("patience", [None, "60", math.nan, -1, [1]])
def test_patience_that_is_none(patience):
    with pytest.raises(cm.ProblemError, match=r"patience is .*: write a number of seconds"):
        cm.connect("http://127.0.0.1:8000", patience=patience)


# -- what is said -----------------------------------------------------------------------------

HERE, NOWHERE = {"x": 0.5, "y": 0.5}, {"x": math.nan, "y": 0.5}


def tell(study, values, **more):
    (job,) = study.ask(task="price", n=1)
    study.tell(job, values, **more)
    return job


REFUSED = {
    "seconds": lambda s: tell(s, {"f": 1.0}, seconds=math.nan),
    "params": lambda s: tell(s, {"f": 1.0}, params=NOWHERE),
    "amended": lambda s: s.amend(tell(s, {"f": 1.0}), params=NOWHERE),
    "delta": lambda s: s.recommend(delta=math.nan),
    "enqueued": lambda s: s.enqueue("price", NOWHERE),
    "bytes": lambda s: s.enqueue("price", {"x": b"1", "y": 0.5}),
    "object": lambda s: s.enqueue("price", {"x": object(), "y": 0.5}),
    "set": lambda s: s.predict({"x": {0.5}, "y": 0.5}),
    "large": lambda s: s.predict({"x": 10**400, "y": 0.5}),
    "points": lambda s: s.gains([HERE, NOWHERE]),
    "rows": lambda s: s.add_all([(NOWHERE, {"f": 1.0})]),
    "rows that are none": lambda s: s.add_all([3]),
    "values": lambda s: tell(s, {"f": b"1"}),
    "error": lambda s: tell(s, {"f": (1.0, math.nan)}),
    "pair": lambda s: tell(s, {"f": np.array([1.0, 0.1])}),
    "added": lambda s: s.add(HERE, {"f": math.nan}),
}


@pytest.mark.parametrize("verb", REFUSED.values(), ids=REFUSED.keys())
def test_what_a_study_refuses(verb, study, remote):
    """With the same kind of error."""
    with pytest.raises(cm.ProblemError, match=r": write ") as expected:
        verb(study)
    with pytest.raises(cm.ProblemError, match=r": write ") as raised:
        verb(remote)
    assert type(raised.value) is type(expected.value)


def test_what_is_said_of_values_that_json_does_not_have(remote):
    for verb, words in (
        (lambda: remote.enqueue("price", {"x": math.nan}), r"params\['x'\] is nan: write a finite"),
        (lambda: remote.enqueue("price", {"x": b"1"}), r"params\['x'\] is b'1': write a number"),
        (lambda: remote.predict([math.inf]), r"params\[0\] is inf: write a finite number"),
        (lambda: remote.tell(0, {"f": b"1"}), r"values\['f'\] is b'1': write a number"),
        (lambda: remote.pause(reason="", task=b"t"), r"task is b't': write"),
    ):
        with pytest.raises(cm.ProblemError, match=words):
            verb()


def test_waits_that_are_none(remote):
    for wait in (math.nan, math.inf, "5", -1.0, 3601, None):
        with pytest.raises(cm.ProblemError, match=r"wait is .*: write a number of seconds from 0"):
            remote.ask(wait=wait)


def test_params_that_contain_themselves(remote):
    params = {}
    params["x"] = params
    with pytest.raises(cm.ProblemError, match="nested without end"):
        remote.predict(params)


def test_measurements_that_failed(study, remote):
    """They alone may be what JSON does not have."""
    for value in (math.nan, -math.inf, None, np.float32("nan"), (math.nan, 0.1)):
        tell(remote, {"f": value})
        assert study.jobs[-1].state == "failed"


def test_numbers_of_any_type(study, remote):
    params = {"x": np.float32(0.25), "y": Fraction(1, 2)}
    remote.add(params, {"f": (np.int64(3), np.array(0.5))})
    assert study.history[0].params == {"x": 0.25, "y": 0.5}
    assert study.history[0].values == {"f": 3.0}
    assert remote.predict({"x": np.array(0.5), "y": np.bool_(True) + 0}).functions


# -- how much ---------------------------------------------------------------------------------


def test_gains_of_many_points(study, remote):
    job = study.ask(task="price")
    study.tell(job, {"f": 1.0})
    points = [{"x": i / 2500, "y": 0.5} for i in range(2500)]
    found, expected = remote.gains(points), study.gains(points)
    assert found.keys() == expected.keys()
    for name, bits in expected.items():
        np.testing.assert_allclose(found[name], bits)
    assert {name: len(bits) for name, bits in remote.gains([]).items()} == {"f": 0, "c": 0}


def test_gains_of_large_points():
    pages = pages_of([{"x": "n" * 2000}] * 1500)
    assert sum(map(len, pages)) == 1500
    assert all(len(json.dumps({"points": page})) <= 1_000_000 for page in pages)
    assert len(pages) <= 5


def test_rows_that_are_too_many_for_one_request(study, remote):
    with pytest.raises(cm.ProblemError, match=r"rows has 10,001: write at most 10,000 .* bytes"):
        remote.add_all([(HERE, {"f": 1.0})] * 10_001)
    notes = [{"note": "n" * 1900}] * 600
    with pytest.raises(cm.ProblemError, match=r"write at most 1,000,000, such as fewer rows"):
        remote.add_all([(HERE, {"f": 1.0})] * 600, notes=notes)
    assert study.history == []
