"""Worker processes that are kept for the next job, and jobs in this process."""

import json
import os
import signal
import sys
import time

import pytest
from tests.run.cases import SQUARE, quick

import calamint as cm

ONE = cm.Problem(SQUARE, minimize="f", tasks={"run": cm.Task("f", failures="ignore")})


def at(study, *inputs):
    for x in inputs:
        study.enqueue("run", {"x": x, "y": 0.5})
    return len(inputs)


def process_of(params):
    return {"f": float(os.getpid())}


def told(study):
    return [record.values["f"] for record in study.history]


def test_a_worker_runs_one_job_after_the_other():
    study = quick(ONE)
    study.run(process_of, evaluations=4)
    assert len(set(told(study))) == 1
    assert told(study)[0] != os.getpid()
    apart = quick(ONE)
    apart.run(process_of, evaluations=3, executor=cm.Local(reuse=False))
    assert len(set(told(apart))) == 3


def test_workers_end_with_the_run():
    study = quick(ONE)
    study.run(process_of, evaluations=2)
    with pytest.raises(ProcessLookupError):
        os.kill(int(told(study)[0]), 0)


def test_killing_a_worker_fails_its_job_only():
    def work(params):
        if params["x"] == 0.5:
            os.kill(os.getpid(), signal.SIGKILL)
        return process_of(params)

    study = quick(ONE)
    count = at(study, 0.1, 0.2, 0.5, 0.6, 0.7)
    report = study.run(work, evaluations=count)
    assert report.failed == 1
    assert [job.state for job in study.jobs] == ["done", "done", "failed", "done", "done"]
    assert "SIGKILL" in study.jobs[2].reason
    first, second, *others = told(study)
    assert first == second
    assert others[0] == others[1] != first


def test_a_worker_that_dies_between_jobs_is_nobodys_fault():
    study, killed = quick(ONE, pause=0.0), []

    def on(event):
        if event.kind == "ended" and not killed:
            killed.append(int(event.result.values["f"]))
            os.kill(killed[0], signal.SIGKILL)

    report = study.run(process_of, evaluations=4, on=on)
    assert (report.evaluations, report.failed) == (4, 0)
    assert killed
    assert [job.cause for job in study.jobs] == [None] * 4
    assert len(set(told(study))) == 2


def test_a_job_that_hangs_takes_its_worker_with_it():
    def work(params):
        if params["x"] == 0.5:
            time.sleep(600)
        return process_of(params)

    study = quick(ONE)
    count = at(study, 0.1, 0.5, 0.6)
    study.run(work, evaluations=count, executor=cm.Local(timeout=2.0))
    assert [(job.state, job.cause) for job in study.jobs] == [
        ("done", None),
        ("failed", "timeout"),
        ("done", None),
    ]
    assert len(set(told(study))) == 2


@pytest.mark.parametrize("leaves", ["a thread", "a process"])
def test_a_worker_in_which_something_is_left_behind_is_not_kept(leaves):
    def work(params):
        import subprocess
        import threading

        if leaves == "a thread":
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        else:
            subprocess.Popen(["sleep", "600"])
        return process_of(params)

    study = quick(ONE)
    study.run(work, evaluations=2)
    assert len(set(told(study))) == 2


def test_a_job_finds_the_folder_and_the_environment_that_the_first_one_had(tmp_path):
    def work(params):
        found = os.getcwd(), os.environ.get("LEFT_BEHIND"), os.environ.get("HOME")
        os.chdir("/")
        os.environ["LEFT_BEHIND"] = "yes"
        os.environ.pop("HOME", None)
        (tmp_path / f"{params['x']}.json").write_text(json.dumps(found))
        return process_of(params)

    study = quick(ONE)
    study.run(work, evaluations=at(study, 0.1, 0.2))
    assert len(set(told(study))) == 1
    first, second = (json.loads((tmp_path / f"{x}.json").read_text()) for x in (0.1, 0.2))
    assert first == second
    assert first[:2] == [os.getcwd(), None]


def test_output_goes_to_the_job_that_printed_it(tmp_path):
    def work(params):
        print(f"x is {params['x']}")
        print(f"beware of {params['x']}", file=sys.stderr)
        os.system(f"echo from a shell {params['x']}")
        return {"f": 1.0}

    study = quick(ONE, f"sqlite:///{tmp_path / 'a.db'}")
    study.run(work, evaluations=at(study, 0.1, 0.2, 0.3))
    for number, x in enumerate((0.1, 0.2, 0.3)):
        folder = tmp_path / "a.db.jobs" / "study" / f"job-{number}-1"
        lines = (folder / "stdout.txt").read_text().splitlines()
        assert sorted(lines) == [f"from a shell {x}", f"x is {x}"]
        assert (folder / "stderr.txt").read_text() == f"beware of {x}\n"


class Slow:
    """A function that takes long to load, and counts its calls."""

    def __init__(self):
        self.calls = 0

    def __setstate__(self, state):
        time.sleep(0.7)
        self.__dict__ = state

    def __call__(self, params):
        self.calls += 1
        return {"f": float(self.calls)}


def test_what_a_function_loads_is_loaded_once_and_is_not_its_cost():
    study = quick(ONE)
    begin = time.monotonic()
    study.run(Slow(), evaluations=5)
    assert time.monotonic() - begin > 0.7
    assert told(study) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert all(record.seconds < 0.5 for record in study.history)


def test_jobs_in_this_process():
    study, calls = quick(ONE), []

    def work(params):
        calls.append(params)
        if params["x"] == 0.5:
            raise ValueError("the middle")
        return process_of(params)

    report = study.run(work, evaluations=at(study, 0.1, 0.5, 0.9), executor=cm.InProcess())
    assert (report.evaluations, report.failed) == (3, 1)
    assert told(study) == [os.getpid()] * 2
    assert [params["x"] for params in calls] == [0.1, 0.5, 0.9]
    assert study.jobs[1].reason == "ValueError: the middle"
    with pytest.raises(cm.ProblemError, match="is a command"):
        study.run(["true"], evaluations=9, executor=cm.InProcess())


def test_reuse_is_true_or_false():
    with pytest.raises(cm.ProblemError, match="reuse is 'yes'"):
        cm.Local(reuse="yes")


def test_a_job_that_closes_its_output_or_leaves_an_alarm_disturbs_no_other():
    def work(params):
        print("working")
        sys.stdout.close()
        sys.stderr.close()
        if params["x"] < 0.5:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
        else:
            time.sleep(0.4)  # the alarm of the job before would end the process
        return process_of(params)

    study = quick(ONE)
    count = at(study, 0.1, 0.9, 0.2)
    report = study.run(work, evaluations=count)
    assert report.failed == 0
    assert len(set(told(study))) == 1


def test_jobs_that_wait_in_this_process_can_be_cancelled():
    problem = cm.Problem(
        SQUARE, minimize="f", tasks={"run": cm.Task("f", ["here"])}, resources={"here": 3}
    )
    study, pressed = quick(problem), []

    def work(params):
        if not pressed:
            pressed.append(True)
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        return {"f": params["x"]}

    report = study.run(work, evaluations=20, executor=cm.InProcess())
    assert report.stopped == "interrupted"
    assert len(study.history) < 4
