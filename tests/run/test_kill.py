"""SIGKILL at any moment: nothing that was acknowledged is lost, nothing starts twice."""

import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import pytest
from tests.run.cases import check_books, quick, tables, values_of
from tests.run.servers import new_database

import calamint as cm
from calamint.decide import VirtualClock

EVALUATIONS = 60
# Every process that is started says so, and which attempt it is.
PROGRAM = """
import json, os, sys, time
line = f"start {os.environ['CALAMINT_JOB']} {os.environ['CALAMINT_ATTEMPT']}\\n"
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(log, line.encode())
time.sleep(0.05)
p = json.loads(os.environ["CALAMINT_PARAMS"])
print(json.dumps({"f": p["x"] + p["y"]} if sys.argv[2] == "price" else {"c": p["x"] - 0.2}))
"""


class Log:
    """Lines that survive the process that wrote them."""

    def __init__(self, path):
        self.path = Path(path)
        self.path.touch()

    def write(self, *words):
        log = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        os.write(log, (" ".join(map(str, words)) + "\n").encode())
        os.close(log)

    def lines(self):
        return [line.split(" ", 2) for line in self.path.read_text().splitlines()]


def acknowledging(study, log):
    """Write down every result after `tell` has returned."""
    tell = study.tell

    def told(job, values, seconds=None):
        used = tell(job, values, seconds)
        log.write("told", job.number, json.dumps(values))
        return used

    study.tell = told
    return study


def simulated_child(path, log, seed):
    clock = VirtualClock({})
    study = acknowledging(
        quick(storage=url_of(path), clock=clock, seed=seed, pause=0.5, retries=49), log
    )
    executor = cm.Simulated({"price": 3.0, "weigh": 1.0}, clock)
    start = executor.start

    def started(job):
        log.write("start", job.number, job.attempt)
        start(job)

    executor.start = started
    works = {
        task: (lambda params, task=task: values_of(task, params)) for task in study.problem.tasks
    }
    study.run(works, evaluations=EVALUATIONS, executor=executor)


def real_child(path, log, seed):
    study = acknowledging(quick(storage=url_of(path), seed=seed, pause=0.01, retries=49), log)
    works = {
        task: [sys.executable, "-S", "-c", PROGRAM, str(log.path), task]
        for task in study.problem.tasks
    }
    study.run(works, evaluations=EVALUATIONS)


def forked(work, *arguments):
    """A child process; our own is not touched by what it does."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work(*arguments)
        code = 0
    except BaseException:
        # Not sys.stderr, which pytest may hold in this process's memory.
        traceback.print_exc(file=sys.__stderr__)
        sys.__stderr__.flush()
    finally:
        os._exit(code)


def check(path, log):
    """The tables are sound, and say all that was acknowledged, exactly once."""
    found = check_books(path)
    starts = Counter(tuple(words) for kind, *words in log.lines() if kind == "start")
    assert all(count == 1 for count in starts.values())
    numbers = {row["id"]: row["number"] for row in found["jobs"]}
    measured = {
        (numbers[row["job_id"]], row["function"]): row["value"]
        for row in found["measurements"]
        if row["used"]
    }
    assert len(measured) == sum(1 for row in found["measurements"] if row["used"])
    for kind, number, rest in log.lines():
        if kind == "told":
            for name, value in json.loads(rest).items():
                assert measured[int(number), name] == value
    return found


def url_of(path):
    return path if str(path).startswith("postgresql:") else f"sqlite:///{path}"


def kill_at_random(tmp_path, child, kills, longest, seed, new_place=None):
    """Run, kill, look, and run again; whenever a study is complete, begin another."""
    rng = random.Random(seed)
    killed = completed = 0
    new_place = new_place or (lambda: tmp_path / f"{completed}.db")
    path, begun = new_place(), 0
    while killed < kills:
        if completed > begun:
            path, begun = new_place(), completed
        log = Log(tmp_path / f"{completed}.log")
        pid = forked(child, path, log, seed + completed)
        time.sleep(rng.uniform(0.0, longest))
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0
            found = check(path, log)
            assert sum(row["state"] in ("done", "failed") for row in found["jobs"]) == EVALUATIONS
            completed += 1
            continue
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        killed += 1
        if (not isinstance(path, Path) or path.exists()) and tables(path).get("studies"):
            check(path, log)
    # What the last kill left can be completed.
    pid = forked(child, path, log, seed + completed)
    assert os.waitpid(pid, 0)[1] == 0
    check(path, log)
    return completed


@pytest.mark.parametrize("kills", [12, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("new_place", [None, new_database], ids=["sqlite", "postgresql"])
def test_a_simulated_run_survives_kills(tmp_path, kills, new_place):
    kill_at_random(tmp_path, simulated_child, kills, 0.6, kills, new_place)


@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_a_real_run_survives_kills(tmp_path, kills):
    kill_at_random(tmp_path, real_child, kills, longest=4.0, seed=kills)


def workers_of(pid):
    """Processes that a process started itself."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                after_name = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(after_name[1]) == pid:
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_a_run_survives_the_death_of_its_workers(tmp_path, kills):
    """A worker that is killed fails its job, which is tried again or not as its task says."""
    rng = random.Random(kills)
    path, log = tmp_path / "a.db", Log(tmp_path / "a.log")
    killed, finished, round_ = 0, True, 0
    while killed < kills or not finished:
        if finished:
            path, log = tmp_path / f"{round_}.db", Log(tmp_path / f"{round_}.log")
            pid, finished, round_ = forked(real_child, path, log, round_), False, round_ + 1
        time.sleep(rng.uniform(0.05, 0.5))
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0
            found = check(path, log)
            ended = sum(row["state"] in ("done", "failed") for row in found["jobs"])
            assert ended == EVALUATIONS
            finished = True
            continue
        workers = workers_of(pid)
        if workers and killed < kills:
            try:
                os.kill(rng.choice(workers), signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed += 1
    reasons = [row["reason"] for row in found["attempts"] if row["outcome"] == "failed"]
    assert all("SIGKILL" in reason for reason in reasons)
