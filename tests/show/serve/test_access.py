"""Who may do what: tokens, rights, other hosts and sites, sizes, rates, and repeated requests."""

import concurrent.futures
import re
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest
from tests.run.cases import decoupled, quick
from tests.run.served import serving
from tests.show.serve.asking import ask, sentence

import calamint as cm
from calamint.run import create_token, revoke_token
from calamint.show.serve import guard
from calamint.show.serve.guard import Limits, Rates

JOBS = "/api/studies/1/jobs"
ASK = "/api/studies/1/ask"


@pytest.fixture
def guarded(study):
    """A server that asks everybody for a token."""
    with serving(study.database, needs_token=True) as url:
        yield url


def bearer(study, /, *given, **more):
    return {"Authorization": f"Bearer {create_token(study.database, *given, **more)}"}


def test_on_this_machine_no_token_is_needed(server):
    assert ask(server, "GET", JOBS)[0] == 200
    assert ask(server, "POST", ASK, {})[1]["job"]["number"] == 0


def test_wrong_tokens(study, guarded):
    right = create_token(study.database, "ann", "read")
    wrong = [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic abc"},
        *({"Authorization": f"Bearer {each}"} for each in ("", "x", right[:-1], right + "x")),
        {"Authorization": f"Bearer {right.upper()}"},
        {"Cookie": f"calamint_token={right}"},  # which a browser would send for other sites, too
    ]
    for headers in wrong:
        answer = ask(guarded, "GET", JOBS, **headers)
        assert answer[0] == 401, headers
        assert answer[2]["WWW-Authenticate"] == "Bearer"
        assert sentence(answer)
    assert ask(guarded, "GET", JOBS, Authorization=f"Bearer {right}")[0] == 200
    revoke_token(study.database, "ann")
    answer = ask(guarded, "GET", JOBS, Authorization=f"Bearer {right}")
    assert (answer[0], "revoked" in sentence(answer)) == (401, True)


def test_a_token_that_is_shown_must_be_right_even_where_none_is_needed(server):
    assert ask(server, "GET", JOBS, Authorization="Bearer wrong")[0] == 401


def test_only_hashes_of_tokens_are_stored(study):
    token = create_token(study.database, "ann", "read")
    secret = token.split("_", 2)[2].encode()
    for path in study.database.path.parent.glob("a.db*"):
        assert secret not in path.read_bytes()


def test_who_has_a_token_does_not_wait_for_those_who_have_none(study, guarded):
    """However often they try from the same address, which may be that of a proxy."""
    for _ in range(30):
        assert ask(guarded, "GET", JOBS, Authorization="Bearer x")[0] == 401
        assert ask(guarded, "GET", JOBS)[0] == 401
    assert ask(guarded, "GET", JOBS, **bearer(study, "ann", "read"))[0] == 200


def test_every_address_has_its_rate_whatever_it_sends(study):
    with serving(study.database, limits=Limits(rate=2.0)) as server:
        answers = [ask(server, "GET", JOBS, Cookie=f"a={each}") for each in range(12)]
    refused = [each for each in answers if each[0] == 429]
    assert 1 <= len(refused) <= 8
    assert int(refused[0][2]["Retry-After"]) >= 1


@pytest.mark.parametrize("header", ["Forwarded", "X_Forwarded_For", "Via"])
def test_who_comes_through_a_proxy_needs_a_token(header, study, server):
    assert ask(server, "GET", JOBS)[0] == 200
    answer = ask(server, "GET", JOBS, **{header: "203.0.113.9"})
    assert (answer[0], "a token is needed" in sentence(answer)) == (401, True)
    token = bearer(study, "ann", "read")
    assert ask(server, "GET", JOBS, **{header: "203.0.113.9"}, **token)[0] == 200


@pytest.mark.parametrize("name", [None, "lab.example"])
def test_a_server_with_a_name_of_its_own_needs_tokens(name, study):
    """Its users are on other machines, also if a proxy on this one passes on what they ask for."""
    words = ["serve", "--port", "0", "--storage", f"sqlite:///{study.database.path}"]
    named = [] if name is None else ["--allow-host", name]
    command = [sys.executable, "-m", "calamint", *words, *named]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        server = re.search(r"http://\S+", process.stdout.readline())[0]
        status = ask(server, "GET", JOBS, **({} if name is None else {"Host": name}))[0]
        process.terminate()
        said = process.stdout.read()
    assert status == (200 if name is None else 401)
    assert ("Everybody needs a token" in said) == (name is not None)


@pytest.mark.parametrize(
    "host", ["127.0.0.1/x?", "ann@127.0.0.1", "127.0.0.1#x", "127.0.0.1:80:90", "[::1", "", "a b"]
)
def test_hosts_that_are_none(host, server):
    assert ask(server, "GET", JOBS, Host=host)[0] == 400


def test_rights(study, guarded):
    reader, worker = bearer(study, "ann", "read"), bearer(study, "bob", "work")
    manager = bearer(study, "eve", "manage")
    assert ask(guarded, "GET", JOBS, **reader)[0] == 200
    refused = ask(guarded, "POST", ASK, {}, **reader)
    assert (refused[0], "may read" in sentence(refused)) == (403, True)
    status, page, _ = ask(guarded, "GET", "/studies/1/enqueue", **reader)
    assert (status, "<h1>Not allowed</h1>" in page) == (403, True)
    assert ask(guarded, "POST", ASK, {}, **worker)[0] == 200
    pause = {"resource": "office"}
    assert ask(guarded, "POST", "/api/studies/1/pause", pause, **worker)[0] == 403
    assert study.paused == {"task": [], "resource": []}
    assert ask(guarded, "POST", "/api/studies/1/pause", pause, **manager)[0] == 200
    assert study.paused["resource"] == ["office"]
    assert study.summary().paused == ["office"]


def test_workers_have_their_resources_and_their_jobs(study, guarded):
    office = bearer(study, "office-1", "work", resources=("office",))
    other = bearer(study, "hall-1", "work", resources=("hall",))
    for _ in range(6):  # whatever could start in the hall is not given to the office
        job = ask(guarded, "POST", ASK, {}, **office)[1]["job"]
        if job is None:
            break
        assert job["resources"] == ["office"]
    assert [each.resources for each in study.attempts()] == [("office",)]
    refused = ask(guarded, "POST", ASK, {"resource": "hall"}, **office)
    assert (refused[0], "is for office, not hall" in sentence(refused)) == (403, True)
    values = {"values": {"f": 1.0}}
    assert ask(guarded, "POST", f"{JOBS}/0/tell", values, **other)[0] == 403
    assert ask(guarded, "POST", f"{JOBS}/0/cancel", {}, **other)[0] == 403
    assert study.jobs[0].state == "running"
    assert ask(guarded, "POST", f"{JOBS}/0/fail", {"reason": "no"}, **office)[0] == 200


def test_an_attempt_that_was_given_to_somebody_else(tmp_path):
    """Who had the job before may not touch it by leaving out which attempt is meant."""
    study = quick(storage=f"sqlite:///{tmp_path / 'a.db'}", retries=10, pause=0.0)
    with serving(study.database, needs_token=True) as server:
        first, second = bearer(study, "first", "work"), bearer(study, "second", "work")
        wanted = {"task": "price", "lease": 0.2}
        assert ask(server, "POST", ASK, wanted, **first)[1]["job"]["attempt"] == 1
        time.sleep(0.5)
        given = ask(server, "POST", ASK, {"task": "price"}, **second)[1]["job"]
        assert (given["number"], given["attempt"]) == (0, 2)
        for verb, body in (
            *(("cancel", {}), ("fail", {"reason": "no"}), ("renew", {"lease": 9.0})),
            ("tell", {"values": {"f": 1.0}}),
        ):
            assert ask(server, "POST", f"{JOBS}/0/{verb}", body, **first)[0] == 403, verb
        for used, attempt, who in ((True, 2, second), (False, 1, first)):
            told = {"attempt": attempt, "values": {"f": float(attempt)}}
            answer = ask(server, "POST", f"{JOBS}/0/tell", told, **who)
            assert answer[:2] == (200, {"used": used})
    assert [each.values for each in study.history] == [{"f": 2.0}]


def test_a_token_that_is_revoked_while_its_user_waits(study, guarded):
    job = study.ask(task="price")
    study.enqueue("price", {"x": 0.5, "y": 0.5})
    waiting = {"resource": "office", "task": "price", "wait": 20}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        ann = bearer(study, "ann", "work")
        asked = pool.submit(ask, guarded, "POST", ASK, waiting, **ann)
        after = f"/api/studies/1/events?wait=20&after={study.replica().sequence}"
        heard = pool.submit(ask, guarded, "GET", after, **ann)
        time.sleep(0.5)
        revoke_token(study.database, "ann")
        study.tell(job, {"f": 1.0})
        assert asked.result()[0] == 401
        assert heard.result()[0] in (200, 401)  # it may have been sent before
    assert [each.state for each in study.jobs] == ["done", "waiting"]


def test_nobody_is_called_as_the_local_user(study):
    with pytest.raises(cm.ProblemError, match="the user of the server's machine"):
        create_token(study.database, "local", "read")


def test_foreign_studies(study, guarded):
    second = quick(storage=study.database, name="second")
    only_first = bearer(study, "ann", "manage", study=1)
    assert ask(guarded, "GET", "/api/studies/2/jobs", **only_first)[0] == 403
    assert ask(guarded, "POST", "/api/studies/2/ask", {}, **only_first)[0] == 403
    assert ask(guarded, "GET", "/studies/2", **only_first)[0] == 403
    listed = ask(guarded, "GET", "/api/studies", **only_first)[1]["studies"]
    assert [each["name"] for each in listed] == ["study"]
    assert second.jobs == []
    everything = bearer(study, "bob", "read")
    missing = ask(guarded, "GET", "/api/studies/77/jobs", **everything)
    assert (missing[0], sentence(missing)) == (404, "study 77 does not exist here.")


def test_jobs_of_another_study_are_refused(study, server):
    """A job number says nothing of its study: the client knows better."""
    second = quick(storage=study.database, name="second")
    job = second.ask()
    remote = cm.connect(server, study="study")
    with pytest.raises(cm.ResultError, match="does not belong to this study"):
        remote.tell(job, {"f": 1.0, "c": 1.0})


def test_other_hosts(study):
    with serving(study.database, limits=Limits(hosts=("lab.example",))) as server:
        port = server.rsplit(":", 1)[1]
        known = ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", "[::1]:80", "LAB.example")
        for host in known:
            assert ask(server, "GET", JOBS, Host=host)[0] == 200, host
        for host in ("evil.example", "localhost.evil.example", "", "a@evil.example", "[::"):
            answer = ask(server, "GET", JOBS, Host=host)
            assert answer[0] == 400, host
        assert "--allow-host" in sentence(ask(server, "GET", JOBS, Host="evil.example"))


def test_other_sites(study, server):
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": server.replace("127.0.0.1", "localhost")},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": server},
        {"Origin": "http://["},
    ):
        answer = ask(server, "POST", ASK, {}, **headers)
        assert (answer[0], "another site" in sentence(answer)) == (403, True), headers
    assert study.jobs == []
    assert ask(server, "POST", ASK, {}, Origin=server)[0] == 200
    # They may have links, and nothing that is loaded without a reader's wish.
    for path in ("/studies/1", JOBS, "/studies/1/drawn/progress"):
        other = {"Sec_Fetch_Site": "cross-site"}
        assert ask(server, "GET", path, **other, Sec_Fetch_Mode="navigate")[0] == 200
        assert ask(server, "GET", path, **other, Sec_Fetch_Mode="no-cors")[0] == 403


def test_forms_of_other_sites(study, server):
    """Also without the headers that browsers send: a form has a secret that only our pages know."""
    study.ask()
    form = [("reason", "because"), ("cause", "crashed")]
    for token in ("", "x" * 64):
        answer = ask(server, "POST", "/studies/1/jobs/0/fail", [*form, ("form_token", token)])
        assert answer[0] == 403
        assert "was not made here" in answer[1]
    assert study.jobs[0].state == "running"


def test_large_bodies(study, server):
    answer = ask(server, "POST", ASK, b" " * 1_000_001)
    assert (answer[0], "at most 1,000,000 bytes" in sentence(answer)) == (413, True)
    assert study.jobs == []


def test_slow_bodies(study, server, monkeypatch):
    monkeypatch.setattr(guard, "_SLOWEST_BODY", 0.2)
    parts = urlsplit(server)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        head = f"POST {ASK} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: 10\r\n\r\n"
        connection.sendall(f"{head}{{".encode())
        assert b" 408 " in connection.recv(1000)
    assert study.jobs == []


def test_rates(study):
    with serving(study.database, limits=Limits(rate=50.0)) as server:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: ask(server, "GET", "/api/studies"), range(600)))
        refused = [answer for answer in answers if answer[0] == 429]
        assert 0 < len(refused) < 600
        assert "too many requests" in sentence(refused[0])
        time.sleep(float(refused[0][2]["Retry-After"]))
        assert ask(server, "GET", "/api/studies")[0] == 200


def test_rates_are_those_of_each_address():
    rates = Rates(rate=1.0, burst=3.0)
    assert [rates.take("a") > 0 for _ in range(5)] == [False, False, False, True, True]
    assert rates.take("b") == 0


def test_repeated_requests(study, server):
    first = ask(server, "POST", ASK, {"task": "price"}, Idempotency_Key="a")
    assert first[0] == 200
    assert ask(server, "POST", ASK, {"task": "price"}, Idempotency_Key="a")[1] == first[1]
    told = {"values": {"f": 1.0}}
    for _ in range(3):
        answer = ask(server, "POST", f"{JOBS}/0/tell", told, Idempotency_Key="b")
        assert answer[:2] == (200, {"used": True})
    assert len(study.history) == len(study.jobs) == 1
    other = ask(server, "POST", f"{JOBS}/0/tell", {"values": {"f": 2.0}}, Idempotency_Key="b")
    assert (other[0], "used for another request" in sentence(other)) == (422, True)
    for name in ("office", "hall"):  # what is paused is part of the address of a form
        path = f"/studies/1/pause/resource?name={name}"
        form = dict(re.findall(r'name="(\w+)" value="([^"]*)"', ask(server, "GET", path)[1]))
        fields = [("form_token", form["form_token"]), ("key", "c"), ("reason", "")]
        assert ask(server, "POST", path, fields)[0] == (303 if name == "office" else 422)
    assert study.paused["resource"] == ["office"]
    study.resume(resource="office")
    assert ask(server, "POST", ASK, {"task": "weigh"}, Idempotency_Key="d.1")[0] == 200
    several = ask(server, "POST", ASK, {"n": 2}, Idempotency_Key="d")
    assert (several[0], len(several[1]["jobs"])) == (200, 2)
    assert ask(server, "POST", ASK, {}, Idempotency_Key="é" * 10)[0] == 422
    assert ask(server, "POST", ASK, {}, Idempotency_Key="k" * 181)[0] == 422


def test_a_request_that_is_made_many_times_at_once(study, server):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        futures = [
            pool.submit(ask, server, "POST", ASK, {"n": 3}, Idempotency_Key="a") for _ in range(8)
        ]
        answers = [future.result() for future in futures]
    assert {answer[0] for answer in answers} == {200}
    assert len({str(answer[1]) for answer in answers}) == 1
    assert len(study.jobs) == 3


def test_what_is_done_is_recorded_with_who_did_it(study, guarded):
    worker = bearer(study, "hplc", "work")
    ask(guarded, "POST", ASK, {"task": "price"}, **worker)
    ask(guarded, "POST", f"{JOBS}/0/tell", {"values": {"f": 1.0}}, **worker)
    ask(guarded, "POST", f"{JOBS}/0/amend", {"values": {"f": 2.0}}, **bearer(study, "e", "manage"))
    events = ask(guarded, "GET", "/api/studies/1/events", **worker)[1]["events"]
    assert [(each["kind"], each["caller"]) for each in events] == [
        ("asked", "hplc"),
        ("told", "hplc"),
        ("amended", "e"),
    ]


def test_every_answer_has_the_headers_that_browsers_need(server):
    for path in ("/", "/api/studies", "/static/htmx.js", "/nothing", "/api/nothing"):
        headers = ask(server, "GET", path)[2]
        policy = headers["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "unsafe-eval" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert "Server" not in headers


def test_a_browser_shows_its_token_once(study, guarded):
    token = create_token(study.database, "ann", "manage")
    assert ask(guarded, "GET", "/")[2]["Location"] == "/login?next=%2F"
    assert (
        ask(guarded, "GET", "/studies/1/jobs")[2]["Location"] == "/login?next=%2Fstudies%2F1%2Fjobs"
    )
    assert ask(guarded, "POST", "/login", [("token", "wrong")])[0] == 401
    assert ask(guarded, "POST", "/login", [(f"field{each}", "") for each in range(20)])[0] == 401
    for wanted, given in (
        ("/studies/1/jobs/3", "/studies/1/jobs/3"),
        *((each, "/") for each in ("//evil.example", "https://evil.example", "/studies/@evil", "")),
    ):
        form = [("token", token), ("next", wanted)]
        assert ask(guarded, "POST", "/login", form)[2]["Location"] == given
    secure = ask(guarded, "POST", "/login", [("token", token)], X_Forwarded_Proto="https")
    assert "Secure" in secure[2]["Set-Cookie"]
    status, _, headers = ask(guarded, "POST", "/login", [("token", token)])
    cookie = headers["Set-Cookie"]
    assert status == 303
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    shown = {"Cookie": cookie.split(";")[0]}
    page = ask(guarded, "GET", "/studies/1", **shown)
    assert (page[0], "Log out" in page[1]) == (200, True)
    assert ask(guarded, "GET", JOBS, **shown)[0] == 401  # programs send it in a header
    revoke_token(study.database, "ann")
    assert ask(guarded, "GET", "/studies/1", **shown)[0] == 303


def test_readers_see_no_buttons(study, guarded):
    study.ask()
    reader, manager = bearer(study, "ann", "read"), bearer(study, "eve", "manage")
    for path in ("/studies/1", "/studies/1/jobs", "/studies/1/jobs/0", "/studies/1/resources"):
        assert "Cancel" not in ask(guarded, "GET", path, **reader)[1]
        assert "Pause" not in ask(guarded, "GET", path, **reader)[1]
    assert "Cancel" in ask(guarded, "GET", "/studies/1/jobs/0", **manager)[1]
    for path in ("/studies/1/jobs/0/cancel", "/studies/1/enqueue"):
        assert ask(guarded, "GET", path, **reader)[0] == 403
        assert ask(guarded, "POST", path, [], **reader)[0] == 403


def test_a_study_in_memory_cannot_be_served():
    study = cm.Study(decoupled())
    with pytest.raises(cm.ProblemError, match="in memory"), serving(study.database):
        pass
