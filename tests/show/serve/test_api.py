"""The API, as programs of any language see it."""

import concurrent.futures
import json
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest
from tests.run.cases import decoupled, quick
from tests.run.served import serving
from tests.show.serve.asking import ask, sentence
from tests.show.studies import HOSTILE

import calamint as cm
from calamint.run import StudyView
from calamint.show.serve import api

STUDY = "/api/studies/1"


def test_a_whole_study(study, server):
    """Ask, run, tell, until nothing is left to be measured; then recommend."""
    for _ in range(6):
        job = ask(server, "POST", f"{STUDY}/ask", {})[1]["job"]
        x, y = job["params"]["x"], job["params"]["y"]
        values = {"f": x + y} if job["task"] == "price" else {"c": [x, 0.1]}
        told = ask(server, "POST", f"{STUDY}/jobs/{job['number']}/tell", {"values": values})
        assert told[:2] == (200, {"used": True})
    assert len(study.history) == 6
    assert {record.sem.get("c") for record in study.history} == {None, 0.1}
    best = ask(server, "GET", f"{STUDY}/recommendation")[1]
    assert set(best["params"]) == {"x", "y"}
    assert best == ask(server, "POST", f"{STUDY}/recommend", {})[1]
    page = ask(server, "GET", f"{STUDY}/jobs?limit=2&offset=1&order=f&descending=true")[1]
    assert page["total"] == 6
    assert len(page["jobs"]) == 2
    point = {"params": {"x": 0.5, "y": 0.5}}
    assert 0 <= ask(server, "POST", f"{STUDY}/predict", point)[1]["probability"] <= 1
    gains = ask(server, "POST", f"{STUDY}/gains", {"points": [point["params"]] * 3})[1]["bits"]
    assert {name: len(bits) for name, bits in gains.items()} == {"f": 3, "c": 3}


WRONG = {
    "not JSON": b"{",
    "NaN": b'{"values": {"f": NaN}}',
    "infinity": b'{"values": {"f": -Infinity}}',
    "a large exponent": b'{"values": {"f": 1e999}}',
    "nested without end": b"[" * 100_000,
    "not a dict": b"[1]",
    "not text": b"\xff\xfe",
    "a text": {"values": {"f": "much"}},
    "three numbers": {"values": {"f": [1, 2, 3]}},
    "another function": {"values": {"g": 1.0}},
    "a negative error": {"values": {"f": [1.0, -1.0]}},
    "another word": {"values": {"f": 1.0}, "hurry": True},
    "nothing": {},
    "a zero byte": {"values": {"f\0": 1.0}},
    "half a character": {"values": {"\ud800": 1.0}},
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG.keys())
def test_results_that_cannot_be_read(body, study, server):
    ask(server, "POST", f"{STUDY}/ask", {"task": "price"})
    answer = ask(server, "POST", f"{STUDY}/jobs/0/tell", body)
    assert answer[0] == 422
    assert sentence(answer)
    assert study.jobs[0].state == "running"
    assert study.history == []


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_requests_that_do_not_say_that_they_are_json(kind, study, server):
    """As of curl without a header, or of a form of another site."""
    body = b'{"values": {"f": 1.0}}'
    study.ask(task="price")
    answer = ask(server, "POST", f"{STUDY}/jobs/0/tell", body, Content_Type=kind)
    assert answer[0] == 415
    assert "send 'Content-Type: application/json'" in sentence(answer)
    assert study.history == []
    json_kind = "Application/JSON; charset=utf-8"
    assert ask(server, "POST", f"{STUDY}/jobs/0/tell", body, Content_Type=json_kind)[0] == 200


def test_what_is_not_there(server):
    for method, path in (
        *(("GET", "/api/nothing"), ("GET", f"{STUDY}/jobs/3"), ("POST", f"{STUDY}/jobs/3/cancel")),
        *(("GET", "/api/studies/9"), ("POST", f"{STUDY}/jobs/3/tell")),
    ):
        content = {"values": {"f": 1.0}} if path.endswith("tell") else {}
        answer = ask(server, method, path, content if method == "POST" else None)
        assert answer[0] == 404, path
        assert sentence(answer)
    answer = ask(server, "DELETE", f"{STUDY}/jobs")
    assert (answer[0], sentence(answer)) == (405, "this cannot be done here.")


def test_waiting_until_something_can_start(study, server):
    """It is answered when a resource is free, and not much later."""
    jobs = [study.ask() for _ in range(3)]
    assert study.ask() is None
    start = time.monotonic()
    assert ask(server, "POST", f"{STUDY}/ask", {"wait": 0.4})[1] == {"job": None}
    assert time.monotonic() - start > 0.39
    threading.Timer(0.5, study.cancel, [jobs[0]]).start()
    answer = ask(server, "POST", f"{STUDY}/ask", {"wait": 60})[1]
    assert answer["job"]["number"] == 3


def test_no_job_is_booked_for_who_is_gone(study, server):
    job = study.ask(task="price")
    parts, wait = urlsplit(server), '{"task": "price", "wait": 20}'
    for body in (wait, '{"n": 1000}'):
        with socket.create_connection((parts.hostname, parts.port)) as connection:
            head = f"POST {STUDY}/ask HTTP/1.1\r\nHost: {parts.netloc}\r\n"
            kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(f"{head}{kind}{body}".encode())
            time.sleep(0.3)
        if body == wait:
            study.tell(job, {"f": 1.0})
            time.sleep(1.0)
            assert len(study.jobs) == 1
    time.sleep(1.0)
    booked = len(study.jobs)
    assert booked < 900
    time.sleep(1.0)
    assert len(study.jobs) == booked


def test_who_asks_the_model_keeps_nobody_waiting(study, server, monkeypatch):
    """Pages and results need no model; and a queue has an end."""
    started, go_on = threading.Event(), threading.Event()

    def slow(self, *_):
        started.set()
        go_on.wait(30)
        return

    monkeypatch.setattr(StudyView, "recommend", slow)
    with concurrent.futures.ThreadPoolExecutor(60) as pool:
        path = f"{STUDY}/recommendation"
        asked = [pool.submit(ask, server, "GET", path) for _ in range(60)]
        started.wait(10)
        begin = time.monotonic()
        assert ask(server, "GET", "/studies/1/jobs")[0] == 200
        assert ask(server, "POST", f"{STUDY}/ask", {})[0] == 200
        assert time.monotonic() - begin < 5
        go_on.set()
        answers = [each.result() for each in asked]
    assert {each[0] for each in answers} == {200, 503}
    refused = [each for each in answers if each[0] == 503]
    assert 1 <= len(refused) <= 15
    assert "try again" in sentence(refused[0])
    assert refused[0][2]["Retry-After"] == "1"


def test_errors_of_ours_have_the_headers_of_all_answers(study, monkeypatch):
    def failing(*_):
        raise AssertionError("ours")

    monkeypatch.setattr(api, "problem_changes", failing)
    with serving(study.database) as server:
        status, said, headers = ask(server, "GET", f"{STUDY}/changes")
    assert (status, "the server failed" in said["error"]["message"]) == (500, True)
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"


def test_what_was_told_with_a_standard_error(study, server):
    job = study.ask(task="price")
    study.tell(job, {"f": (0.5, 0.1)})
    said = ask(server, "GET", f"{STUDY}/jobs/0")[1]
    assert (said["values"], said["sem"]) == ({"f": 0.5}, {"f": 0.1})


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("POST", "ask", {"resorce": "hall"}, "'resorce' is not a field of this request."),
        ("POST", "ask", {"n": 0}, "n is 0: it should be greater than or equal to 1."),
        ("POST", "jobs/0/tell", {}, "values is missing."),
        ("POST", "jobs/0/tell", None, "a body of JSON is missing."),
        ("GET", "recommendation?delta=2", None, "delta is '2': it should be less than 1."),
        ("POST", "predict", b'{"params": {"x": ' + b"1" * 5000 + b"}}", "is not JSON"),
    ],
)
def test_sentences_about_fields(method, path, body, words, study, server):
    study.ask()
    headers = {"Content_Type": "application/json"} if method == "POST" else {}
    answer = ask(server, method, f"{STUDY}/{path}", body, **headers)
    assert (answer[0], words in sentence(answer)) == (422, True), answer[1]


def test_waiting_for_events(study, server):
    assert ask(server, "GET", f"{STUDY}/events?wait=0.1")[1] == {"events": []}
    threading.Timer(0.3, study.ask).start()
    (event,) = ask(server, "GET", f"{STUDY}/events?wait=60")[1]["events"]
    assert (event["kind"], event["job"]) == ("asked", 0)
    study.ask()
    later = ask(server, "GET", f"{STUDY}/events?after={event['sequence']}")[1]["events"]
    assert [each["job"] for each in later] == [1]


def test_those_who_wait_do_not_keep_a_server_from_ending(study):
    found = []
    with serving(study.database) as server:
        path = f"{STUDY}/events?wait=600"
        waiting = threading.Thread(target=lambda: found.append(ask(server, "GET", path)))
        waiting.start()
        time.sleep(0.5)
        start = time.monotonic()
    waiting.join(10)
    assert found[0][0] == 200
    assert time.monotonic() - start < 4


def test_leases(tmp_path):
    """A job that nobody renews is given to somebody else; who comes back later is told so."""
    study = quick(storage=f"sqlite:///{tmp_path / 'a.db'}", pause=0.0)
    with serving(study.database) as server:
        check_leases(study, server)


def check_leases(study, server):
    ask(server, "POST", f"{STUDY}/ask", {"task": "price", "lease": 0.5})
    renewed = ask(server, "POST", f"{STUDY}/jobs/0/renew", {"lease": 0.5, "attempt": 1})
    assert renewed[1] == {"renewed": True}
    again = ask(server, "POST", f"{STUDY}/ask", {"task": "price", "wait": 30})[1]["job"]
    assert (again["number"], again["attempt"]) == (0, 2)
    late = {"lease": 0.5, "attempt": 1}
    assert ask(server, "POST", f"{STUDY}/jobs/0/renew", late)[1] == {"renewed": False}
    assert ask(server, "POST", f"{STUDY}/jobs/0/renew", {"lease": 9.0})[1] == {"renewed": True}
    assert study.jobs[0].attempts == 2


def test_what_others_do_is_seen(study, server):
    """The server keeps studies open: what other processes write is read all the same."""
    job = ask(server, "POST", f"{STUDY}/ask", {"task": "price"})[1]["job"]
    study.tell(job["number"], {"f": 1.0})
    assert ask(server, "GET", f"{STUDY}/history")[1]["total"] == 1
    study.change(decoupled(constraints=["c >= 0.2"]), "stricter")
    assert "0.2" in json.dumps(ask(server, "GET", STUDY)[1]["problem"])
    assert ask(server, "POST", f"{STUDY}/ask", {})[0] == 200


@pytest.mark.parametrize("word", HOSTILE.values(), ids=HOSTILE.keys())
def test_any_words(word, tmp_path):
    """Names of studies, options, reasons: whatever users write comes back as it was."""
    problem = cm.Problem({"x": cm.Choice(word, "other")}, minimize="f")
    study = quick(problem, f"sqlite:///{tmp_path / 'a.db'}", name=word[:200])
    with serving(study.database) as server:
        remote = cm.connect(server, study=word[:200])
        remote.enqueue("evaluate", {"x": word})
        job = remote.ask()
        assert job.params == {"x": word}
        remote.tell(job, {"f": 1.0})
        remote.withdraw(job, word)
        remote.pause(resource="local", reason=word)
        assert remote.jobs == study.jobs
        events = ask(server, "GET", f"{STUDY}/events")[1]["events"]
        assert [each["detail"]["reason"] for each in events[-2:]] == [word, word]


def test_the_description_is_one_of_openapi(server):
    answer = ask(server, "GET", "/api/openapi.json")
    assert answer[0] == 200
    assert answer[1]["openapi"].startswith("3.")
    verbs = {
        *("ask", "tell", "fail", "renew", "cancel", "amend", "complete", "withdraw", "forgive"),
        *("restore", "release", "recommend", "predict", "gains", "jobs", "events", "enqueue"),
        *("add", "pause", "resume", "change", "history", "summary", "attempts", "changes"),
    }
    assert verbs <= {path.rsplit("/", 1)[1] for path in answer[1]["paths"]}
    assert not [path for path in answer[1]["paths"] if not path.startswith("/api/")]
