"""What forms say and do, as a browser sends them."""

import re
import threading
import time

import pytest
from tests.run.cases import decoupled, quick
from tests.run.served import serving
from tests.show.serve.asking import ask, done, finish, job_path, send, text_of

import calamint as cm
from calamint.run import StudyEditor


def test_no_form_waits_until_a_large_study_is_open(study, server, monkeypatch):
    study.ask(task="price")
    go_on, load = threading.Event(), StudyEditor.of

    def slow(*arguments, **options):
        go_on.wait(30)
        return load(*arguments, **options)

    monkeypatch.setattr(StudyEditor, "of", slow)
    for _ in range(2):
        status, page, headers = ask(server, "GET", job_path(0, "/tell"))
        assert (status, headers["Refresh"]) == (200, "1")
        assert "The study is being opened" in text_of(page)
    assert ask(server, "GET", "/studies/1/enqueue")[0] == 200  # which needs no study
    go_on.set()
    status, page, headers = ask(server, "GET", job_path(0, "/tell"))
    assert (status, headers["Refresh"]) == (200, None)
    assert "Report results of job 0" in text_of(page)


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
