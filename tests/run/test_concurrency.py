"""Many processes ask and tell one study at once."""

import os
import random
import signal
import time

import pytest
from tests.run.cases import SQUARE, check_books, quick, values_of
from tests.run.servers import new_storage
from tests.run.test_kill import Log, forked

import calamint as cm


def busy(url, log, seconds):
    study = quick(storage=url)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        job = study.ask()
        if job is None:
            time.sleep(0.001)
            continue
        values = values_of(job.task, job.params)
        assert study.tell(job, values)
        log.write("told", job.number, "")


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request, tmp_path):
    return new_storage(request.param, tmp_path)


@pytest.mark.parametrize(
    ("processes", "seconds"), [(4, 4), pytest.param(8, 60, marks=pytest.mark.slow)]
)
def test_many_processes_share_a_study(storage, tmp_path, processes, seconds, capsys):
    (url, path), log = storage, Log(tmp_path / "a.log")
    # They also create it at the same moment.
    pids = [forked(busy, url, log, seconds) for _ in range(processes)]
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * processes
    found = check_books(path)
    told = [int(number) for _, number, *_ in log.lines()]
    assert len(told) == len(set(told))
    done = {row["number"] for row in found["jobs"] if row["state"] == "done"}
    assert set(told) == done
    assert len(found["measurements"]) == len(told)
    # Everybody sees the same.
    study = quick(storage=url)
    assert len(study.history) == len(told)
    with capsys.disabled():
        rate = len(told) / seconds
        print(f"\n{processes} processes: {rate:.0f} ask/tell pairs a second, all there once")
    assert len(told) > seconds


def mortal(url, log):
    """Ask and tell until it is killed; every result is written down before and after it is told."""
    study = quick(storage=url, retries=1000, pause=0.01)
    while True:
        job = study.ask(lease=60.0)
        if job is None:
            time.sleep(0.001)
            continue
        values = values_of(job.task, job.params)
        log.write("telling", job.number, job.attempt)
        study.tell(job, values)
        log.write("told", job.number, job.attempt)


@pytest.mark.parametrize(
    ("processes", "seconds"), [(6, 6), pytest.param(16, 60, marks=pytest.mark.slow)]
)
def test_processes_that_are_killed_at_random(storage, tmp_path, processes, seconds, capsys):
    (url, path), log, rng = storage, Log(tmp_path / "a.log"), random.Random(processes)
    quick(storage=url, retries=1000, pause=0.01)
    pids, killed = [forked(mortal, url, log) for _ in range(processes)], 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(rng.uniform(0.0, 4.0 / processes))
        victim = rng.randrange(processes)
        os.kill(pids[victim], signal.SIGKILL)
        assert os.WTERMSIG(os.waitpid(pids[victim], 0)[1]) == signal.SIGKILL  # it did not fail
        pids[victim] = forked(mortal, url, log)
        killed += 1
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    found = check_books(path)
    told = [int(number) for kind, number, _ in log.lines() if kind == "told"]
    telling = {int(number) for kind, number, _ in log.lines() if kind == "telling"}
    done = {row["number"] for row in found["jobs"] if row["state"] == "done"}
    assert len(told) == len(set(told))
    assert set(told) <= done <= telling
    assert len(found["measurements"]) == len(done)
    assert len(quick(storage=url, retries=1000, pause=0.01).history) == len(done)
    with capsys.disabled():
        print(f"\n{processes} processes, {killed} kills: {len(done)} results, all there once")
    assert len(done) > seconds


def asker(url, log, jobs):
    """Ask and tell with the default method, and say how often it decided and waited."""
    study = cm.Study(EIGHT, url, seed=0, initial=3)
    decide = cm.Optimizer.decide

    def counted(self, *arguments):
        log.write("decided", "-", "-")
        return decide(self, *arguments)

    cm.Optimizer.decide = counted
    while sum(study.replica().ended.values()) < jobs:
        begin = time.monotonic()
        job = study.ask()
        if job is None:
            time.sleep(0.01)
            continue
        log.write("waited", f"{time.monotonic() - begin:.4f}", "-")
        time.sleep(0.2)
        study.tell(job, values_of("all", job.params))


EIGHT = cm.Problem(
    SQUARE,
    minimize="f",
    constraints=["c >= 0"],
    tasks={"all": cm.Task(["f", "c"], runs_on="here")},
    resources={"here": 8},
)


@pytest.mark.parametrize(
    ("processes", "jobs"), [(4, 12), pytest.param(8, 48, marks=pytest.mark.slow)]
)
def test_askers_do_not_compute_in_vain(tmp_path, processes, jobs, capsys):
    """One decides at a time; the others wait, and decide for what is left."""
    rates, longest = {}, {}
    for count in (1, processes):
        log = Log(tmp_path / f"{count}.log")
        url = f"sqlite:///{tmp_path / f'{count}.db'}"
        begin = time.monotonic()
        pids = [forked(asker, url, log, jobs) for _ in range(count)]
        assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * count
        seconds = time.monotonic() - begin
        made = len(check_books(tmp_path / f"{count}.db")["jobs"])
        decided = sum(kind == "decided" for kind, *_ in log.lines())
        waits = [float(words[0]) for kind, *words in log.lines() if kind == "waited"]
        assert decided <= 1.2 * made
        rates[count], longest[count] = made / seconds, max(waits)
    with capsys.disabled():
        print(
            f"\n{processes} askers: {decided} decisions for {made} jobs,"
            f" {rates[processes]:.1f} jobs a second (one asker {rates[1]:.1f}),"
            f" longest wait {longest[processes]:.2f} s (one asker {longest[1]:.2f} s)"
        )
