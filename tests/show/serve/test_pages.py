"""The pages, as a browser gets them."""

import contextlib
import html
import json
import os
import re
import signal
import sqlite3
import time
from urllib.parse import quote, urlencode
from datetime import datetime

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
    assert where.endswith("?done=Job+3+was+recorded+as+failed.")


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


def test_results_are_told_by_hand(study, server):
    job = study.ask(task="price")
    page = ask(server, "GET", job_path(0, "/tell"))[1]
    text = text_of(page)
    assert "Report results of job 0" in text
    assert re.search("Results f .* Input, if it was not as asked x .* Seconds", text)
    status, page = send(server, job_path(0, "/tell"), **{"value.0": "much"})
    said = "f: 'much' is not a number. Write 0.07, or 0.07 ± 0.01 with its standard error."
    assert (status, said in text_of(page)) == (422, True), text_of(page)
    assert re.search(r'id="value.0"[^>]* aria-invalid="true" autofocus', page)
    assert page.count("aria-invalid") == 1
    assert 'value="much"' in page  # it is not lost
    assert study.jobs[0].state == "running"
    where = done(send(server, job_path(0, "/tell"), **{"value.0": "1.5 ± 0.1", "seconds": "60"}))
    said = "done=The+results+of+job+0+were+recorded."
    assert where.startswith(f"/studies/1/jobs/0?{said}&proof=")
    assert "The results of job 0 were recorded." in text_of(ask(server, "GET", where)[1])
    for forged in (where.replace("recorded", "lost"), f"/studies/1/jobs/0?{said}"):  # by others
        assert "The results of job 0" not in text_of(ask(server, "GET", forged)[1])
    (record,) = study.history
    assert (record.values, record.sem, record.seconds) == ({"f": 1.5}, {"f": 0.1}, 60.0)
    assert record.params == job.params


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"value.0": "0,5"}, "f: '0,5' has a comma. Write 0.5, or"),
        ({"value.0": "1 ± -2"}, "f: '1 ± -2' is not a number with its standard error."),
        ({"value.0": "1 ± 2 ± 3"}, "f: '1 ± 2 ± 3' is not a number with its standard error."),
        ({"value.0": "yes"}, "f: 'yes' is not a number."),
        ({}, "No result was filled in."),
        ({"value.0": "1", "seconds": "1e11"}, "Seconds that it took: '1e11' is not a number from"),
        ({"value.0": "1", "seconds": "nan"}, "Seconds that it took: 'nan' is not a number from"),
        ({"value.0": "1", "seconds": "long"}, "Seconds that it took: 'long' is not a number from"),
        ({"value.0": "1", "param.0": "wide"}, "x is 'wide'"),
        ({"value.0": "1", "key": "a b"}, "The key of the form is not"),
        ({"value.0": "1", "key": "é"}, "The key of the form is not"),
        ({"value.0": "1", "key": "k" * 181}, "The key of the form is not"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_form_is_said_in_words(fields, said, study, server):
    study.ask(task="price")
    status, page = send(server, job_path(0, "/tell"), **fields)
    assert (status, said in text_of(page)) == (422, True), text_of(page)
    assert study.jobs[0].state == "running"
    wrong = re.findall(r'id="([\w.]+)"[^>]* aria-invalid="true" autofocus', page)
    names = {"f": "value.0", "x": "param.0", "Seconds": "seconds"}
    first = re.match(r"\w+", said)[0]
    assert wrong == ([names[first]] if first in names else [])


def test_what_must_be_filled_in_is_asked_for(study, server):
    study.ask(task="price")
    for path, names in {
        job_path(0, "/fail"): ["Reason"],
        "/studies/1/enqueue": ["Task", "x", "y"],
    }.items():
        page = ask(server, "GET", path)[1]
        hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
        status, page, _ = ask(server, "POST", path, list(hidden.items()))
        assert (status, f"{names[0]} is empty: fill it in." in text_of(page)) == (422, True)
        assert page.count("(required)") == len(names)
    assert study.jobs[0].state == "running"


def test_what_cannot_be_done_with_a_job_is_said_at_once(study, server):
    finish(study)
    for what, said in {
        "fail": "Job 0 is done: only a job that is running can be failed.",
        "tell": "Job 0 is done: only a job that is running or held can be given results.",
        "release": "Job 0 is done: only a job that is held can be released.",
    }.items():
        status, page, _ = ask(server, "GET", job_path(0, f"/{what}"))
        assert (status, said in text_of(page), "<form" in page) == (409, True, False)


def test_forms_are_filled_in_with_what_is_known(study, server):
    study.tell(study.ask(task="price"), {"f": (0.1, 0.02)})
    page = ask(server, "GET", job_path(0, "/amend"))[1]
    x, y = study.history[0].params.values()
    shown = dict(re.findall(r'<input id="([\w.]+)" name="[^"]*" value="([^"]*)"', page))
    assert shown == {"value.0": "0.1 ± 0.02", "param.0": str(x), "param.1": str(y), "reason": ""}
    status, page = send(server, job_path(0, "/amend"), **shown)
    assert (status, "These are the values that count already" in page) == (422, True)
    done(send(server, job_path(0, "/amend"), **{**shown, "value.0": "0.3"}))
    (record,) = study.history
    assert (record.values, record.sem, record.params) == ({"f": 0.3}, {}, {"x": x, "y": y})
    ask(server, "GET", "/studies/1")
    until = time.monotonic() + 60
    shown = {}
    while not shown.get("param.0") and time.monotonic() < until:
        time.sleep(0.1)
        page = ask(server, "GET", "/studies/1/enqueue")[1]
        shown = dict(re.findall(r'<input id="([\w.]+)" name="[^"]*" value="([^"]*)"', page))
    assert shown == {f"param.{i}": str(study.recommend().params[n]) for i, n in enumerate("xy")}


def test_values_that_are_far_outside_are_asked_about(study, server):
    for _ in range(20):
        finish(study)
    job = study.ask(task="price")
    path = job_path(job.number, "/tell")
    status, page = send(server, path, **{"value.0": "1e6"})
    assert (status, "far outside what was seen" in text_of(page)) == (422, True)
    assert study.jobs[job.number].state == "running"
    done(send(server, path, **{"value.0": "1e6", "sure": "yes"}))
    assert study.jobs[job.number].values == {"f": 1e6}


def test_corrections_by_hand(study, server):
    job = finish(study)
    name = next(iter(study.history[0].values))
    done(send(server, job_path(0, "/amend"), **{"value.0": "7", "reason": "a typo"}))
    assert study.history[0].values == {name: 7.0}
    done(send(server, job_path(0, "/amend"), **{"param.0": "0.25"}))
    assert study.history[0].params == {**job.params, "x": 0.25}
    done(send(server, job_path(0, "/withdraw"), reason="contaminated"))
    assert study.history == []
    done(send(server, job_path(0, "/restore")))
    assert study.history[0].values == {name: 0.1}
    done(send(server, job_path(0, "/amend"), **{"value.0": "8 ± 0.5", "sure": "yes"}))
    page = text_of(ask(server, "GET", "/studies/1/changes")[1])
    assert f"amended: {name}: 0.1 → 8 ± 0.5" in page  # what counted then
    assert "amended: measured at x = 0.25" in page
    history = text_of(ask(server, "GET", job_path(0))[1])
    assert re.search(rf"result reported after [\w. ]+: {name} = 0.1 ", history)
    amended = f"job 0 amended: {name}: 0.1 → 7 local a typo"
    for words in (amended, "job 0 withdrawn local contaminated", "restored"):
        assert words in page


def test_failures_by_hand(study, server):
    study.ask(task="price")
    done(send(server, job_path(0, "/fail"), reason="the solver diverged", cause="crashed"))
    assert (study.jobs[0].state, study.jobs[0].reason) == ("failed", "the solver diverged")
    done(send(server, job_path(0, "/forgive")))
    assert study.jobs[0].state == "withdrawn"
    study.ask(task="price")
    done(send(server, job_path(1, "/cancel")))
    assert study.jobs[1].state == "cancelled"


def test_a_held_job_is_released_by_hand(tmp_path):
    study = quick(storage=f"sqlite:///{tmp_path / 'a.db'}", retries=1, pause=0.0)
    for _ in range(2):
        study.fail(study.ask(task="price"), "no space left", cause="infrastructure")
    assert study.jobs[0].state == "held"
    with serving(study.database) as server:
        assert "1 job is held" in text_of(ask(server, "GET", "/studies/1")[1])
        done(send(server, job_path(0, "/release")))
        assert study.ask(task="price").number == 0


def test_values_that_arrive_later_by_hand(tmp_path):
    problem = decoupled(
        tasks={"all": cm.Task(["f", "c"], runs_on="office")}, resources={"office": 1}
    )
    study = quick(problem, f"sqlite:///{tmp_path / 'a.db'}")
    with serving(study.database) as server:
        study.ask()
        done(send(server, job_path(0, "/tell"), **{"value.0": "1", "more": "yes"}))
        assert study.jobs[0].state == "partial"
        page = ask(server, "GET", job_path(0, "/complete"))[1]
        assert ">c</label>" in re.sub(r"\s+", "", page)
        done(send(server, job_path(0, "/complete"), **{"value.1": "2"}))
        assert study.jobs[0].values == {"f": 1.0, "c": 2.0}
        assert "Complete" not in text_of(ask(server, "GET", job_path(0))[1])


def test_inputs_are_enqueued_and_resources_paused_by_hand(study, server):
    fields = {"task": "weigh", "param.0": "0.25", "param.1": "2"}
    status, page = send(server, "/studies/1/enqueue", **fields)
    assert (status, "y is 2" in text_of(page)) == (422, True)
    done(send(server, "/studies/1/enqueue", **{**fields, "param.1": "0.75"}))
    assert study.jobs[0].params == {"x": 0.25, "y": 0.75}
    done(send(server, "/studies/1/pause/resource?name=hall", reason="a party"))
    done(send(server, "/studies/1/pause/task?name=price"))
    assert study.paused == {"task": ["price"], "resource": ["hall"]}
    assert text_of(ask(server, "GET", "/studies/1/resources")[1]).count("paused") == 2
    page = ask(server, "GET", "/studies/1")[1]
    assert re.search(r"Task price is paused \(local, [-\d: ]+\)\. Resume price ", text_of(page))
    assert "Resource hall is paused: a party (local, " in text_of(page)
    assert '/resume/task?name=price"' in page
    done(send(server, "/studies/1/resume/resource?name=hall"))
    assert "Resource hall is paused" not in text_of(ask(server, "GET", "/studies/1")[1])
    assert study.paused == {"task": ["price"], "resource": []}
    assert ask(server, "GET", "/studies/1/pause/resource?name=gone")[0] == 404


def test_a_form_that_is_sent_twice_has_its_effect_once(study, server):
    study.ask(task="price")
    page = ask(server, "GET", "/studies/1/enqueue")[1]
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
    form = [*hidden.items(), ("task", "weigh"), ("param.0", "0.5"), ("param.1", "0.5")]
    for _ in range(2):
        assert ask(server, "POST", "/studies/1/enqueue", form)[0] == 303
    assert len(study.jobs) == 2


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
    assert (status, "being renewed" in page) == (200, True)
    nested = f"{'[' * 900}{']' * 900}"
    for wrong in (
        *("[]", "{", '{"a":1}', "[" * 9000, f'{{"at":{nested}}}', f'{{"at":{{"x":{nested}}}}}'),
        *('{"at":{},"along":[]}', '{"at":{},"along":["x","y","x"]}', '{"along":["x"]}'),
    ):
        where = f"/studies/1/drawn/belief?options={quote(wrong)}"
        assert ask(server, "GET", where)[0] in (404, 422), wrong
    assert (status, "As of event 16 of 18" in page) == (200, True)
    for wrong in ("?options=[]", "?options={", '?options={"a":1}', f"?options={'[' * 9000}"):
        assert ask(server, "GET", path + wrong)[0] in (404, 422)
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
