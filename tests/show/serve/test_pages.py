"""The pages, as a browser gets them."""

import contextlib
import html
import json
import os
import re
import signal
import sqlite3
import time
from datetime import datetime
from urllib.parse import quote, urlencode

import psutil
import pytest
from tests.run.cases import quick
from tests.run.served import serving
from tests.show.serve.asking import ask, done, finish, job_path, send, text_of
from tests.show.studies import HOSTILE

import calamint as cm
from calamint.run import Database, folder_of

PAGES = ("", "/jobs", "/beliefs", "/decisions", "/resources", "/trust", "/changes", "/enqueue")


def test_every_page_of_an_empty_study(server):
    for path in PAGES:
        status, page, _ = ask(server, "GET", f"/studies/1{path}")
        assert status == 200
        assert page.count("<h1>") == page.count("</main>") == 1
    assert "No jobs" in text_of(ask(server, "GET", "/studies/1/jobs")[1])


def test_an_empty_study_says_how_to_start_it_and_has_no_figures(tmp_path):
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f")
    study = quick(problem, f"sqlite:///{tmp_path / 'a.db'}", name="a <b>")
    how = "Start it with calamint run --name 'a <b>' --evaluations 50 , or ask for jobs by hand"
    with serving(study.database) as server:
        for path in ("", "/beliefs", "/decisions", "/resources", "/trust"):
            page = ask(server, "GET", f"/studies/1{path}")[1]
            assert how in text_of(page)
            assert 'id="drawn-' not in page
        study.ask()
        page = ask(server, "GET", "/studies/1")[1]
        assert how not in text_of(page)
        # There are no limits that could bind.
        assert re.findall('id="drawn-(\\w+)', page) == ["recommendation", "progress"]


def test_pages_and_what_is_done_are_named_for_readers(study, server):
    for _ in range(3):
        finish(study)
    for path, words in {
        "/studies/1": ("Resources Resources Resource Busy", "The problem Minimise"),
        "/studies/1/beliefs": ("– (one parameter only)", "Go to the recommended input"),
        "/login": ("Ask whoever runs it: calamint token create NAME makes one.",),
        job_path(0, "/amend"): ("Reason Stored with the study. Amend Back",),
    }.items():
        text = text_of(ask(server, "GET", path)[1])
        assert all(each in text for each in words), text
    study.ask(task="price")
    where = done(send(server, job_path(3, "/fail"), reason="it diverged", cause="crashed"))
    assert "?done=Job+3+was+recorded+as+failed.&" in where


def test_tables_of_events_have_no_empty_columns(study, server):
    def columns():
        page = ask(server, "GET", "/studies/1/changes?everything=true")[1]
        return re.findall(r'<th scope="col">(\w+)', page)

    job = study.ask(task="price")
    assert columns() == ["When", "Job", "What"]
    study.fail(job, "the solver diverged")
    assert columns() == ["When", "Job", "What", "Why"]
    study.pause(task="price", reason="tea")
    assert columns() == ["When", "Job", "What", "By", "Why"]


def test_a_storage_without_studies(tmp_path):
    with serving(Database(f"sqlite:///{tmp_path / 'a.db'}")) as server:
        assert "has no studies yet" in text_of(ask(server, "GET", "/")[1])
        assert ask(server, "GET", "/studies/1")[0] == 404


def test_what_is_not_there_is_a_page_that_says_so(study, server):
    study.ask()
    for path in ("/studies/2", "/studies/x", "/nothing", job_path(9), job_path(0, "/burn")):
        status, page, _ = ask(server, "GET", path)
        assert status in (404, 422)
        assert '<p role="alert">' in page
        title = "Not found" if status == 404 else "Not done"
        assert f"<title>{title} – Calamint</title>" in page
        assert f"<h1>{title}</h1>" in page


def test_times_can_be_read_by_programs_and_say_how_long_ago_they_were(study, server, tmp_path):
    study.ask()
    page = ask(server, "GET", "/")[1]
    (said, *_) = re.findall(r'<time datetime="([^"]+)" title="([^"]+)">([^<]+)</time>', page)
    moment = datetime.fromisoformat(said[0])
    assert abs(moment.timestamp() - time.time()) < 60
    assert said[1] == f"{said[2]} UTC{moment:%z}"
    assert "just now" in text_of(page)
    for seconds, words in (
        (90, "1 minute ago"),
        (7300, "2 hours ago"),
        (6.5 * 86400, "6 days ago"),
    ):
        with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
            connection.execute("UPDATE events SET time = ?", (time.time() - seconds,))
        assert words in text_of(ask(server, "GET", "/")[1])


@pytest.mark.parametrize("word", HOSTILE.values(), ids=HOSTILE.keys())
def test_any_words(word, tmp_path):
    """Names of studies, options, reasons, output: nothing that users write becomes markup."""
    problem = cm.Problem({"x": cm.Choice(word, "other")}, minimize="f")
    study = quick(problem, f"sqlite:///{tmp_path / 'a.db'}", name=word[:200])
    for _ in range(3):
        study.enqueue("evaluate", {"x": word})
        study.fail(study.ask(), word)
    study.withdraw(0, word)
    study.pause(resource="local", reason=word)
    folder = folder_of(study.database, study.name, 1) / "job-1-1"
    folder.mkdir(parents=True)
    (folder / "stderr.txt").write_text(word)
    with serving(study.database) as server:
        pages = [f"/studies/1{path}" for path in PAGES]
        pages += ["/", *map(job_path, range(3)), job_path(1, "/amend"), job_path(1, "/forgive")]
        pages.append("/studies/1/drawn/recommendation")
        for path in pages:
            status, page, _ = ask(server, "GET", path)
            assert status == 200
            assert "<script>alert" not in page
            assert "a&lt;b</script>" not in page
            assert "\"b'c" not in page
        page = ask(server, "GET", job_path(1))[1]
        assert text_of(page).count(" ".join(word.split())[:150]) >= 3


def test_the_filter_of_jobs_takes_what_its_form_sends(study, server):
    for _ in range(6):
        finish(study)
    for state, task in (("done", ""), ("", "price"), ("", ""), ("no state", "no task" * 100)):
        query = urlencode({"state": state, "task": task, "order": "number", "descending": "true"})
        status, page, _ = ask(server, "GET", f"/studies/1/jobs?{query}")
        assert (status, "job 0" in text_of(page) or task == "price") == (200, True), (state, task)


def test_the_sliders_of_beliefs_take_anything(study, server):
    for place in ("²", "9" * 5000, "-1", "1e9", "nan", ""):
        query = urlencode({"x": "x", "y": "", "at.1": place})
        assert ask(server, "GET", f"/studies/1/beliefs?{query}")[0] == 200, place


def test_jobs_are_filtered_sorted_and_paged(study, server):
    for _ in range(60):
        finish(study)
    study.ask()

    def numbers(query):
        page = ask(server, "GET", f"/studies/1/jobs{query}")[1]
        return [int(each) for each in re.findall(r'id="job-(\d+)"', page)], page

    assert numbers("")[0] == list(range(60, 10, -1))
    found, page = numbers("?page=2")
    assert found == list(range(10, -1, -1))
    assert 'id="first"' in page
    assert "-below" not in page  # the rows end before that of a full page
    assert numbers("")[1].count('rel="next"') == 2
    assert numbers("?state=running")[0] == [60]
    priced = [job.number for job in study.jobs if job.task == "price" and job.state == "done"]
    assert numbers("?task=price&order=f&state=done")[0] == priced[:50]
    found, page = numbers("?order=f&descending=true")
    assert found[: len(priced)] == priced[::-1][:50]
    assert re.search(r'aria-sort="descending"><a[^>]*>f ', page)
    assert numbers("?order=gone&state=gone&page=99")[0] == []


def with_values(folder, number, **columns):
    """A job as if it had been decided otherwise."""
    with contextlib.closing(sqlite3.connect(folder / "a.db")) as connection, connection:
        for name, value in columns.items():
            said = json.dumps(value) if isinstance(value, dict) else value
            connection.execute(f"UPDATE jobs SET {name} = ? WHERE number = ?", (said, number))


def test_jobs_are_listed_with_what_was_tried_first(tmp_path):
    """Then results, in words where they are; costs only if they differ from one."""
    problem = cm.Problem(
        {"x": cm.Real(0, 1)}, minimize="f", constraints=[cm.Constraint("fits", binary=True)]
    )
    study = quick(problem, f"sqlite:///{tmp_path / 'a.db'}")
    for fits in (True, False):
        study.tell(study.ask(), {"f": 1.0, "fits": fits})
    study.fail(study.ask(), "the solver diverged " * 9)
    with serving(study.database) as server:
        page = ask(server, "GET", "/studies/1/jobs")[1]
        columns = re.findall(r'<th scope="col"[^>]*><a[^>]*>(\w+)|<th scope="col">(input)', page)
        columns = ["".join(each) for each in columns]
        assert columns == ["job", "task", "state", "input", "f", "fits", "created", "took"]
        rows = [text_of(row) for row in re.findall("<tr>.*?</tr>", page, re.DOTALL)[1:]]
        assert re.match(r"job 2 evaluate failed crashed: the solver .{60,75}… x = ", rows[0])
        assert " 1 fail " in rows[1]
        assert " 1 pass " in rows[2]
        assert "fits pass" in text_of(ask(server, "GET", job_path(0))[1])
        with_values(tmp_path, 0, predicted_cost=2.5)
        assert "expected cost" in text_of(ask(server, "GET", "/studies/1/jobs")[1])


@pytest.mark.parametrize(
    ("bits", "said"), [(0.5, "0.5"), (0.0004, "< 0.0005"), (-1e-6, "0")], ids=str
)
def test_bits_that_are_too_few_to_tell_have_no_bars(bits, said, study, server, tmp_path):
    study.ask()
    with_values(tmp_path, 0, bits={"f": bits, "c": -1e-9}, scores={"price": bits, "weigh": -1e-6})
    page = ask(server, "GET", job_path(0))[1]
    text = text_of(page)
    assert f"expected to yield {said} bits" in text
    assert f"price (this job) {said}" in text or f"weigh 0 price (this job) {said}" in text
    assert ('class="share"' in page) == (bits == 0.5)
    assert ("Little was left to learn: no other input offered more." in text) == (bits < 0.5)
    assert "-1e" not in text
    listed = text_of(ask(server, "GET", "/studies/1/decisions")[1])
    assert f"initial {said} " in listed
    assert "weigh 0 " in listed


def test_decisions_are_listed_with_what_decided_first(study, server):
    study.ask()
    page = ask(server, "GET", "/studies/1/decisions")[1]
    columns = re.findall(r'<th scope="col"([^>]*)>([^<]*)', page)
    assert [name for _, name in columns] == [
        *("Job", "Task", "Chosen by", "Bits", "Cost", "Next best", "Decided in"),
        *("from f", "from c"),
    ]
    right = [name for how, name in columns if "number" in how]
    assert right == ["Bits", "Cost", "Decided in", "from f", "from c"]


def test_output_of_jobs(study, server):
    """Of every attempt; what is not a plain file of the job is not shown."""
    job = finish(study)
    folder = folder_of(study.database, study.name, 1) / f"job-{job.number}-1"
    folder.mkdir(parents=True)
    (folder / "stdout.txt").write_text("x" * 100_000 + "the last line")
    secret = folder.parent / "secret.txt"
    secret.write_text("a secret")
    (folder / "stderr.txt").symlink_to(secret)
    page = ask(server, "GET", job_path(job.number))[1]
    assert "the last line" in page
    assert "a secret" not in page
    assert len(page) < 60_000
    assert "No output is stored" not in page
    finish(study)
    text = text_of(ask(server, "GET", job_path(1))[1])
    assert "No output is stored on this machine. History" in text
    assert re.search(
        r"It was chosen as part of the initial design. The decision took [^.]+ s?", text
    )


def test_attempts_say_who_runs_them(study, server):
    cm.connect(server, study="study").ask()
    assert re.search(
        r"from [-\d: ]+, over HTTP, by local\.", text_of(ask(server, "GET", job_path(0))[1])
    )
    study.ask()
    assert re.search(
        r"from [-\d: ]+, by [\w.-]+, process \d+\.", text_of(ask(server, "GET", job_path(1))[1])
    )


def test_figures_are_drawn_in_the_background_and_only_when_there_is_news(study, server):
    for _ in range(8):
        finish(study)
    path = "/studies/1/drawn/progress"
    page = ask(server, "GET", path)[1]
    assert "Computing progress" in page
    until = time.monotonic() + 60
    while "Computing" in page and time.monotonic() < until:
        time.sleep(0.1)
        page = ask(server, "GET", path)[1]
    assert '<section class="plot" id="progress">' in page
    query = html.unescape(re.search(r'hx-get="[^"]*(\?[^"]*)"', page)[1])
    assert ask(server, "GET", path + query)[0] == 204
    finish(study)
    status, page, _ = ask(server, "GET", path + query)
    assert (status, "As of event 16 of 18" in page) == (200, True)
    nested = f"{'[' * 900}{']' * 900}"
    for wrong in (
        *("[]", "{", '{"a":1}', "[" * 9000, f'{{"at":{nested}}}', f'{{"at":{{"x":{nested}}}}}'),
        *('{"at":{},"along":[]}', '{"at":{},"along":["x","y","x"]}', '{"along":["x"]}'),
    ):
        where = f"/studies/1/drawn/belief?options={quote(wrong)}"
        assert ask(server, "GET", where)[0] in (404, 422), wrong
    assert ask(server, "GET", "/studies/1/drawn/nothing")[0] == 404


def test_what_cannot_be_drawn_says_why(study, server):
    """A limit that the model cannot have, and a process that is killed while it draws."""
    for _ in range(4):
        finish(study)
    path = "/studies/1/drawn/explain"
    ask(server, "GET", path)
    until = time.monotonic() + 60
    killed = set()
    while time.monotonic() < until:
        for child in psutil.Process(os.getpid()).children(recursive=True):
            if child.pid not in killed and "spawn_main" in " ".join(child.cmdline()):
                killed.add(child.pid)
                child.send_signal(signal.SIGKILL)
        page = ask(server, "GET", path)[1]
        if "Computing" not in page:
            break
        time.sleep(0.05)
    assert "was ended twice" in page
    assert len(killed) >= 2
    while "was ended twice" in page and time.monotonic() < until:  # it is tried again
        time.sleep(0.1)
        page = ask(server, "GET", path)[1]
    assert '<section class="plot" id="explain">' in page
