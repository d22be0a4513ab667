"""Many programs over HTTP at once: they are killed at random, and so is their server."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from tests.run.cases import check_books, decoupled, quick, values_of
from tests.run.clusters import free_port
from tests.run.servers import new_storage
from tests.run.test_kill import Log, forked

import calamint as cm


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request, tmp_path):
    return new_storage(request.param, tmp_path)


SETTINGS = {"retries": 1000, "pause": 0.01}


def program(server, log):
    """Ask and tell until it is killed; every result is written down before and after it is told."""
    study = cm.connect(server)
    while True:
        job = study.ask(lease=3.0, wait=1.0)
        if job is None:
            continue
        log.write("telling", job.number, job.attempt)
        if study.tell(job, values_of(job.task, job.params)):
            log.write("told", job.number, job.attempt)


@contextlib.contextmanager
def mortal_server(url, port, folder):
    """Begins a server; the next call ends it by SIGKILL and begins another one."""
    words = [sys.executable, "-m", "calamint", "serve", "--port", str(port), "--rate", "10000"]
    running = []

    def begin():
        for process in running:
            process.kill()
            process.wait()
        running[:] = [
            subprocess.Popen([*words, "--storage", url], cwd=folder, stdout=subprocess.DEVNULL)
        ]

    begin()
    try:
        yield begin
        assert running[0].poll() is None
    finally:
        running[0].terminate()
        running[0].wait(30)


@pytest.mark.parametrize(
    ("programs", "seconds"), [(6, 8), pytest.param(16, 60, marks=pytest.mark.slow)]
)
def test_programs_and_their_server_are_killed_at_random(
    storage, tmp_path, programs, seconds, capsys
):
    (url, path), log, rng = storage, Log(tmp_path / "a.log"), random.Random(programs)
    quick(decoupled(resources={"office": 3, "hall": 6}), url, **SETTINGS)
    port, killed, ended = free_port(), 0, 0
    server = f"http://127.0.0.1:{port}"
    with mortal_server(url, port, tmp_path) as begin_again:
        pids = [forked(program, server, log) for _ in range(programs)]
        start = time.monotonic()
        until, next_end = start + seconds, start + 3.0
        while time.monotonic() < until or (
            len(log.lines()) <= 4 * programs and time.monotonic() < until + 60  # a busy machine
        ):
            time.sleep(rng.uniform(0.0, 6.0 / programs))
            victim = rng.randrange(programs)
            os.kill(pids[victim], signal.SIGKILL)
            assert os.WTERMSIG(os.waitpid(pids[victim], 0)[1]) == signal.SIGKILL  # did not fail
            pids[victim] = forked(program, server, log)
            killed += 1
            if time.monotonic() > next_end:
                begin_again()
                ended, next_end = ended + 1, time.monotonic() + rng.uniform(4.0, 8.0)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    found = check_books(path)
    told = [int(number) for kind, number, _ in log.lines() if kind == "told"]
    telling = {int(number) for kind, number, _ in log.lines() if kind == "telling"}
    done = {row["number"] for row in found["jobs"] if row["state"] == "done"}
    assert len(told) == len(set(told))
    assert set(told) <= done <= telling
    # What was told after its lease had run out is kept, and not used.
    assert sum(bool(row["used"]) for row in found["measurements"]) == len(done)
    # Whose answer was lost was killed itself.
    assert len(done) - len(told) <= killed + programs
    with capsys.disabled():
        print(
            f"\n{programs} programs, {killed} kills, {ended} of the server:"
            f" {len(done)} results, all there once"
        )
    assert ended >= 1
    assert len(done) > programs
