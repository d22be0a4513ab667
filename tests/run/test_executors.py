"""Running jobs for real: crashes, hangs, output, commands, capacities, interruptions."""

import gc
import json
import logging
import signal
import stat
import sys
import tempfile
import textwrap
import time
from functools import partial
from pathlib import Path

import pytest
from tests.run.cases import SQUARE, check_books, decoupled, python, quick, values_of
from tests.run.tasks import first_of_square, grad_input

import calamint as cm
from calamint.decide import VirtualClock
from calamint.run.execute import JobResult
from calamint.run.outcomes import SameCrash

ONE = cm.Problem(SQUARE, minimize="f", tasks={"run": cm.Task("f", failures="ignore")})


def price(params):
    return values_of("price", params)


def weigh(params):
    return values_of("weigh", params)["c"]


def test_a_crash_or_hang_fails_that_job_only(tmp_path):
    study = quick(ONE, f"sqlite:///{tmp_path / 'a.db'}", seed=0)
    for x in (0.1, 0.25, 0.35, 0.45, 0.75, 0.85, 0.95):
        study.enqueue("run", {"x": x, "y": 0.5})
    report = study.run({"run": grad_input}, evaluations=7, executor=cm.Local(timeout=4.0))
    assert report.evaluations == 7
    assert report.failed == 5
    causes = [job.cause for job in study.jobs]
    assert causes == ["crashed"] * 3 + ["timeout", "crashed", None, None]
    reasons = {round(job.params["x"], 2): job.reason for job in study.jobs}
    assert "exit code 7" in reasons[0.1]
    assert "SIGKILL" in reasons[0.25]
    assert "ValueError: x is in the middle" in reasons[0.35]
    assert "longer than 4 s" in reasons[0.45]
    assert "f is nan" in reasons[0.75]
    assert reasons[0.85] is None
    assert reasons[0.95] is None
    assert [record.values for record in study.history] == [{"f": 1.0}] * 2
    kept = tmp_path / "a.db.jobs" / "study"
    assert (kept / "job-3-1" / "stdout.txt").read_text() == "about to hang\n"
    assert "ValueError" in (kept / "job-2-1" / "stderr.txt").read_text()
    assert not (kept / "job-6-1").exists()  # it said nothing
    check_books(tmp_path / "a.db")


@pytest.mark.parametrize(("x", "words"), [(0.55, "write a number"), (0.65, "is not a number")])
def test_a_result_that_cannot_be_read_stops_the_run(x, words):
    study = quick(ONE)
    study.enqueue("run", {"x": x, "y": 0.5})
    with pytest.raises(cm.TaskError, match=words):
        study.run({"run": grad_input}, evaluations=9)
    assert [(job.state, job.cause) for job in study.jobs] == [("waiting", "refused")]


def test_the_same_crash_from_every_input_stops_the_run():
    study = quick(ONE)
    with pytest.raises(cm.TaskError, match="crashed alike at 5 inputs in a row: ValueError"):
        study.run(lambda params: int(f"bad {params['x']}"), evaluations=50)
    assert len(study.jobs) == 5
    for job in study.jobs:
        study.forgive(job.number)
    report = study.run(lambda params: int("bad"), evaluations=7, keep_going=True)
    assert (report.evaluations, report.failed) == (7, 7)


def test_only_crashes_in_a_row_stop_the_run():
    """Between them, nothing is heard of some jobs; time-outs are told apart from crashes."""
    study = quick(ONE)
    executor = cm.Local(timeout=0.3)
    report = study.run(lambda params: time.sleep(60), evaluations=6, executor=executor)
    assert (report.evaluations, report.failed) == (6, 6)
    assert {job.cause for job in study.jobs} == {"timeout"}
    study, crashes = quick(ONE, pause=0.0), SameCrash([])
    for number in range(1, 10):
        job = study.ask()
        assert crashes.seen(JobResult(job, error="its worker is gone", cause="lost")) is None
        said = crashes.seen(JobResult(job, error="no", cause="crashed"))
        assert (said is None) == (number < 5)
        study.fail(job, "no")


def test_a_job_that_somebody_tells_while_it_runs_does_not_stop_the_run(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    study, other = quick(ONE, url), quick(ONE, url)

    class Meddling(cm.Live):
        def started(self, progress, job):
            if job.number == 0:
                other.tell(0, {"f": 0.25})

    report = study.run({"run": first_of_square}, evaluations=3, watch=Meddling())
    assert report.stopped == "evaluations"
    assert study.history[0].values == {"f": 0.25}
    assert len(study.history) == 3


def test_output_and_results_are_bounded(tmp_path):
    def talk(params):
        for _ in range(3000):
            print("x" * 999)
        print("the end")
        return {"f": 1.0} if params["x"] < 0.5 else {"f": "x" * 2_000_000}

    study = quick(ONE, f"sqlite:///{tmp_path / 'a.db'}")
    study.enqueue("run", {"x": 0.1, "y": 0.5})
    study.run(talk, evaluations=1)
    said = (tmp_path / "a.db.jobs" / "study" / "job-0-1" / "stdout.txt").read_text()
    assert 1_000_000 < len(said) < 1_200_000
    assert "bytes were cut here" in said
    assert said.endswith("the end\n")
    study.enqueue("run", {"x": 0.9, "y": 0.5})
    with pytest.raises(cm.TaskError, match="more than 1000000 bytes"):
        study.run(talk, evaluations=2)


def test_grandchildren_end_with_their_job(tmp_path):
    """Also those that left the process group."""
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux says what a process was started with")
    file = tmp_path / "pid"

    def leave(params):
        import subprocess

        child = subprocess.Popen(["sleep", "3600"], start_new_session=True)
        file.write_text(str(child.pid))
        return {"f": 1.0}

    quick(ONE).run(leave, evaluations=1)
    deadline = time.monotonic() + 5
    pid = int(file.read_text())
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_job_that_cannot_be_started_waits_alone(monkeypatch):
    """No file handles are left for one of several: the others go on."""
    import calamint.run.execute.machine as machine

    study, made = quick(decoupled(resources={"office": 1, "hall": 3}), pause=0.0), []
    process = machine.JobProcess

    def start(*arguments):
        made.append(arguments[0])
        if len(made) == 2:
            raise OSError(24, "Too many open files")
        return process(*arguments)

    monkeypatch.setattr(machine, "JobProcess", start)
    report = study.run({"price": price, "weigh": weigh}, evaluations=6)
    assert (report.evaluations, report.failed) == (6, 0)
    assert [job.state for job in study.jobs] == ["done"] * 6
    assert study.jobs[made[1].number].attempts == 1  # it was tried again without a new one
    assert all(count == 0 for count in study.optimizer.observations.failed.values())


def test_a_full_disk_is_not_the_inputs_fault():
    import errno

    def write(params):
        raise OSError(errno.ENOSPC, "No space left on device")

    study = quick(ONE, pause=0.0, retries=1)
    study.enqueue("run", {"x": 0.1, "y": 0.5})
    with pytest.raises(cm.TaskError, match="held"):
        study.run(write, evaluations=1)
    assert (study.jobs[0].state, study.jobs[0].cause) == ("held", "infrastructure")


def test_closures_and_lambdas_run_too():
    study = quick(ONE)
    shift = 3.0
    study.run(lambda params: params["x"] + shift, evaluations=2)
    assert all(record.values["f"] == record.params["x"] + 3 for record in study.history)


def test_what_cannot_be_sent_is_refused_before_anything_is_asked():
    import threading

    study, lock = quick(ONE), threading.Lock()
    with pytest.raises(cm.TaskError, match="cannot be pickled"):
        study.run(lambda params: lock.acquire(), evaluations=2)
    with pytest.raises(cm.ProblemError, match="did you mean 'run'"):
        study.run({"rn": price}, evaluations=1)
    with pytest.raises(cm.ProblemError, match="no budget"):
        study.run({"run": price})
    with pytest.raises(cm.ProblemError, match=r"tasks\['run'\] is None"):
        study.run(evaluations=1)
    with pytest.raises(cm.ProblemError, match="timeout is -1"):
        cm.Local(timeout=-1)
    assert study.jobs == []


def test_resources_are_used_as_soon_as_they_are_free(tmp_path):
    """Two slots of 'hall' beside 'office': nothing waits for the slow one."""
    study = quick(storage=f"sqlite:///{tmp_path / 'a.db'}")

    def slow(params):
        time.sleep(1.5)
        return price(params)

    begin = time.monotonic()
    report = study.run({"price": slow, "weigh": weigh}, seconds=3.0)
    assert time.monotonic() - begin < 12
    ended = study.replica().ended
    assert ended["weigh"] > ended["price"]
    assert report.stopped == "seconds"
    check_books(tmp_path / "a.db")


COMMANDS = """
    import json, os, sys
    params = json.load(sys.stdin)
    assert params == json.loads(os.environ["CALAMINT_PARAMS"])
    if params["x"] > 0.9:
        print("too far", file=sys.stderr)
        sys.exit(3)
    print("working in", os.path.basename(os.getcwd()))
    if params["x"] > 0.5:
        with open(os.environ["CALAMINT_RESULT"], "w") as file:
            json.dump({"f": params["x"]}, file)
        print("nothing here")
    else:
        print(json.dumps({"f": [params["x"], 0.1]}))
"""


def test_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(textwrap.dedent(COMMANDS))
    study = quick(ONE, "sqlite:///a.db")
    for x in (0.25, 0.75, 0.95):
        study.enqueue("run", {"x": x, "y": 0.5})
    report = study.run({"run": [sys.executable, "program.py"]}, evaluations=3)
    assert report.failed == 1
    assert [record.values for record in study.history] == [{"f": 0.25}, {"f": 0.75}]
    assert "exit code 3 (too far)" in study.jobs[2].reason
    folder = tmp_path / "a.db.jobs" / "study" / "job-0-1"
    assert f"working in {tmp_path.name}" in (folder / "stdout.txt").read_text()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert json.loads((tmp_path / "a.db.jobs/study/job-1-1/result.json").read_text()) == {"f": 0.75}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([sys.executable, "-c", "print('no number')"], "not JSON: 'no number'"),
        ([sys.executable, "-c", "pass"], "it printed nothing"),
        ([sys.executable, "-c", "print('$HOME; ls')"], r"\$HOME; ls"),  # no shell reads it
        ([sys.executable, "-c", "print('{\"g\": 1}')"], "not measured here"),
    ],
)
def test_commands_that_answer_nonsense_stop_the_run(argv, words):
    """The first time: it is no input's fault, and nothing is learnt from it."""
    study = quick(ONE)
    with pytest.raises(cm.TaskError, match=words):
        study.run({"run": argv}, evaluations=8)
    assert [(job.state, job.cause) for job in study.jobs] == [("waiting", "refused")]
    report = study.run({"run": [sys.executable, "-c", "print('{\"f\": 1}')"]}, evaluations=1)
    assert (report.evaluations, report.failed) == (1, 0)
    assert [record.values for record in study.history] == [{"f": 1.0}]


def test_a_program_that_does_not_exist_is_not_the_inputs_fault():
    study = quick(ONE)
    with pytest.raises(cm.TaskError, match="is not found here"):
        study.run({"run": ["no-such-program"]}, evaluations=3)
    assert study.jobs == []


def test_budgets(caplog):
    clock = VirtualClock({})
    study = cm.Study(decoupled(), seed=0, clock=clock, model=cm.Model(hyperparameters="map"))
    works = {"price": price, "weigh": weigh}
    simulated = cm.Simulated({"price": 3.0, "weigh": 1.0}, clock)
    with caplog.at_level(logging.INFO, "calamint"):
        report = study.run(works, evaluations=8, executor=simulated)
    assert (report.stopped, report.evaluations) == ("evaluations", 8)
    assert "job 0: run price on office" in caplog.text
    report = study.run(works, evaluations=8, executor=simulated)
    assert (report.stopped, report.evaluations) == ("evaluations", 0)  # in all, not again
    report = study.run(works, cost=12, executor=simulated)
    assert (report.stopped, report.evaluations) == ("cost", 4)
    begin = clock.now()
    report = study.run(works, seconds=7, executor=simulated)
    assert report.stopped == "seconds"
    assert 7 <= clock.now() - begin <= 10
    report = study.run(works, evaluations=500, bits=100.0, executor=simulated)
    assert (report.stopped, report.evaluations) == ("bits", 0)
    for wrong in ({"evaluations": 0}, {"seconds": -1}, {"bits": float("nan")}):
        with pytest.raises(cm.ProblemError):
            study.run(works, executor=simulated, **wrong)


INTERRUPTED = """
    import sys, time
    import calamint as cm
    from tests.run.cases import quick
    from tests.run.test_executors import ONE

    nap = float(sys.argv[2])
    study = quick(ONE, sys.argv[1])
    print("begun", flush=True)
    report = study.run(lambda params: (time.sleep(nap), {"f": 1.0})[1], evaluations=50)
    print(report.stopped, report.evaluations, flush=True)
"""


@pytest.mark.parametrize(
    ("nap", "presses", "states"), [(2.0, 1, ["done"]), (60.0, 2, ["cancelled"])]
)
def test_ctrl_c(tmp_path, nap, presses, states):
    path = tmp_path / "a.db"
    url = f"sqlite:///{path}"
    process = python(textwrap.dedent(INTERRUPTED), url, nap, stdout=-1, text=True)
    assert process.stdout.readline() == "begun\n"
    watcher = quick(ONE, url)
    deadline = time.monotonic() + 30
    while not watcher.jobs and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
        time.sleep(0.4)
    out, _ = process.communicate(timeout=30)
    assert out.startswith("interrupted")
    assert [job.state for job in watcher.jobs] == states
    # It can be resumed.
    report = quick(ONE, url).run(first_of_square, evaluations=len(states) + 1)
    assert report.stopped == "evaluations"
    check_books(path)


def test_workers_die_with_the_process_that_runs_the_study(tmp_path):
    mark = tmp_path / "alive"
    script = f"""
        import time
        from tests.run.cases import quick
        from tests.run.test_executors import ONE

        def busy(params):
            while True:
                open({str(mark)!r}, "w").write(str(time.time()))
                time.sleep(0.05)

        quick(ONE, {f"sqlite:///{tmp_path / 'a.db'}"!r}).run(busy, evaluations=1)
    """
    process = python(textwrap.dedent(script))
    deadline = time.monotonic() + 30
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.wait()
    time.sleep(0.5)
    last = mark.read_text()
    time.sleep(0.5)
    assert mark.read_text() == last
    # The owner is known to be dead: its job is tried again at once, without waiting for the lease.
    study = quick(ONE, f"sqlite:///{tmp_path / 'a.db'}")
    report = study.run(first_of_square, evaluations=1)
    assert report.evaluations == 1
    assert study.jobs[0].attempts == 2


def test_an_evaluation_is_counted_once_however_often_it_is_tried(tmp_path):
    mark = tmp_path / "tried"
    problem = cm.Problem(SQUARE, minimize="f", tasks={"run": cm.Task("f", failures="retry")})

    def fails_once(params):
        if not mark.exists():
            mark.touch()
            raise ValueError("not yet")
        return params["x"]

    report = quick(problem, pause=0.0).run(fails_once, evaluations=2)
    assert (report.evaluations, report.failed) == (2, 0)


def test_observers_are_told_and_may_stop_a_run():
    study = quick(cm.Problem(SQUARE, minimize="f"))
    events = []

    def on(event):
        events.append((event.kind, None if event.job is None else event.job.number))
        if event.kind == "ended":
            assert event.result.values == {"f": event.job.params["x"]}
            assert study.jobs[event.job.number].state == "done"
            if event.job.number == 2:
                study.stop()

    report = study.run(first_of_square, evaluations=9, on=on)
    assert report.stopped == "stopped"
    assert "it was told to" in str(report)
    kinds = [(kind, number) for number in range(3) for kind in ("started", "ended")]
    assert [event for event in events if event[0] != "message"] == kinds
    # The same call goes on.
    assert study.run(first_of_square, evaluations=5).stopped == "evaluations"
    study.stop()  # there is none
    assert study.run(first_of_square, evaluations=6).stopped == "evaluations"


def test_an_observer_that_raises_ends_the_run():
    def on(event):
        raise ZeroDivisionError

    study = quick(cm.Problem(SQUARE, minimize="f"))
    with pytest.raises(ZeroDivisionError):
        study.run(first_of_square, evaluations=3, on=on)
    assert study.run(first_of_square, evaluations=1).stopped == "evaluations"


@pytest.mark.parametrize("noisy", [False, True])
def test_a_finite_space_that_is_exhausted(tmp_path, noisy):
    space = {"kind": cm.Choice("a", "b"), "n": cm.Integer(1, 2)}
    count = tmp_path / "count"

    def measure(params):
        with count.open("a") as file:
            file.write(".")
        noise = count.stat().st_size if noisy else 0
        return {"f": ord(params["kind"]) + params["n"] + noise}

    study = quick(cm.Problem(space, minimize="f"), seed=1)
    report = study.run(measure, evaluations=40)
    if noisy:  # there is something to average
        assert report.stopped == "evaluations"
    else:
        assert report.stopped == "exhausted"
        assert report.evaluations < 40
        assert "every input was measured" in str(report)
        assert len({str(record.params) for record in study.history}) == 4


def test_a_study_in_memory_leaves_no_files(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    study = quick()
    executor = cm.Local()
    tasks = {name: partial(values_of, name) for name in study.problem.tasks}
    study.run(tasks, evaluations=2, executor=executor)
    (folder,) = tmp_path.glob("calamint-*")
    del study, executor
    gc.collect()
    assert not folder.exists()
