"""Faults of machines: full disks, no file handles, clocks that are set, containers, kills. Every
result is there exactly once, and nothing is learnt as a bad input that was not one."""

import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from tests.run.cases import SQUARE, check_books, quick
from tests.run.servers import new_database, restart_server
from tests.run.test_kill import Log, forked, url_of, workers_of

import calamint as cm
from calamint.run.store import liveness

ONE = cm.Problem(SQUARE, minimize="f", tasks={"run": cm.Task("f")}, resources={"here": 3})


class Counted:
    """A function that says when it ends, in a file."""

    def __init__(self, log, seconds=0.05):
        self.log, self.seconds = str(log.path), seconds

    def __call__(self, params):
        time.sleep(self.seconds)
        log = os.open(self.log, os.O_WRONLY | os.O_APPEND)
        os.write(log, f"end {params['x']!r} -\n".encode())
        os.close(log)
        return {"f": params["x"]}


class Slow:
    def __call__(self, params):
        time.sleep(0.5)
        return params["x"]


def complete(path, log, evaluations):
    """All results are stored, each that ended exactly once, and none failed."""
    found = check_books(path)
    states = [row["state"] for row in found["jobs"]]
    assert states.count("done") >= evaluations
    assert "failed" not in states
    assert {row["cause"] for row in found["attempts"]} <= {None, "lost", "infrastructure"}
    measured = sorted(json.loads(row["params"])["x"] for row in found["measurements"])
    assert len(measured) == len(set(measured)) == states.count("done")
    ended = {float(x) for _, x, _ in log.lines()}
    assert set(measured) <= ended
    return found


# -- disks -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(folder, megabytes=3):
    """A file system of its own, if this user may mount one."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or shutil.which("mount") is None or subprocess.run(words).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder):
    """Until nothing can be written."""
    with (folder / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    with (folder / "filler2").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x")


def empty(folder):
    for name in ("filler", "filler2"):
        (folder / name).unlink(missing_ok=True)


def run_on(path, log, evaluations, seconds=0.05):
    study = quick(ONE, f"sqlite:///{path}", pause=0.05)
    report = study.run(Counted(log, seconds), evaluations=evaluations)
    assert report.stopped == "evaluations"


@pytest.mark.parametrize(
    "seconds", [1.0, *(pytest.param(s, marks=pytest.mark.slow) for s in (10.0, 60.0))]
)
def test_a_full_disk_delays_a_run_and_loses_nothing(tmp_path, seconds):
    log = Log(tmp_path / "log")
    with small_disk(tmp_path / "disk") as disk:
        path = disk / "a.db"
        pid = forked(run_on, path, log, 24)
        while len(log.lines()) < 5:
            time.sleep(0.02)
        fill(disk)
        before = len(log.lines())
        time.sleep(seconds)
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)  # it waits
        assert len(log.lines()) <= before + 4  # what ran, and nothing new
        empty(disk)
        assert os.waitpid(pid, 0)[1] == 0
        found = complete(path, log, 24)
        # Nothing was run twice.
        assert len(log.lines()) == len(found["measurements"])


def test_a_storage_that_cannot_be_written_for_a_moment(tmp_path, monkeypatch):
    """The same where nothing can be mounted: three results wait until it can."""
    log = Log(tmp_path / "log")
    study = quick(ONE, f"sqlite:///{tmp_path / 'a.db'}")
    write, until, said = study.database.write, [None], []

    def full(*given):
        if log.lines() and until[0] is None:
            until[0] = time.monotonic() + 2.0
        if until[0] is not None and time.monotonic() < until[0]:
            raise cm.StorageError("the disk is full.", transient=True)
        return write(*given)

    class Watch(cm.Live):
        def message(self, sentence):
            said.append(sentence)

    monkeypatch.setattr(study.database, "write", full)
    report = study.run(Counted(log), evaluations=9, watch=Watch())
    assert (report.evaluations, report.failed) == (9, 0)
    assert [s for s in said if "nothing was lost" in s]
    complete(tmp_path / "a.db", log, 9)


def dies(path, log):
    """The runner is killed when it is about to store the first result."""
    study = quick(ONE, f"sqlite:///{path}")
    study.tell = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)
    study.run(Counted(log), evaluations=1)


def test_a_result_that_was_not_stored_is_taken_by_the_next_run(tmp_path):
    """The runner dies between the end of a job and its storing."""
    path, log = tmp_path / "a.db", Log(tmp_path / "log")

    pid = forked(dies, path, log)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    assert len(log.lines()) >= 1
    ended = [float(x) for _, x, _ in log.lines()]
    study = quick(ONE, f"sqlite:///{path}")
    assert study.history == []
    study.run(Counted(log), evaluations=1)
    assert study.history[0].params["x"] in ended
    assert not list((tmp_path / "a.db.jobs").rglob("result-*"))
    complete(path, log, 1)


def test_results_of_another_study_are_not_taken(tmp_path):
    """A database that was deleted, and made again: its folder has results of the first."""
    path, log = tmp_path / "a.db", Log(tmp_path / "log")

    os.waitpid(forked(dies, path, log), 0)
    for file in tmp_path.glob("a.db*"):
        if file.is_file():
            file.unlink()
    study = quick(ONE, f"sqlite:///{path}", seed=7)
    before = len(log.lines())
    study.run(Counted(log), evaluations=1)
    assert len(log.lines()) > before


def run_commands(path, log, in_functions):
    """They are busy until they are killed."""
    command = ["sh", "-c", f"echo begin - - >> {log.path}; exec sleep 3600"]
    work = (lambda params: subprocess.check_call(command)) if in_functions else command
    quick(ONE, f"sqlite:///{path}", pause=0.0, retries=1000).run(work, evaluations=3)


@pytest.mark.parametrize("in_functions", [False, True])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_commands_that_end_with_their_runner_have_not_crashed(tmp_path, number, in_functions):
    path, log = tmp_path / "a.db", Log(tmp_path / "log")
    for again in range(1, 6):
        pid = forked(run_commands, path, log, in_functions)
        while len(log.lines()) < 3 * again:
            time.sleep(0.02)
        os.kill(pid, number)
        assert os.waitpid(pid, 0)[1] == number
        time.sleep(0.3)
        assert not list((tmp_path / "a.db.jobs").rglob("result-*"))
    study = quick(ONE, f"sqlite:///{path}", pause=0.0, retries=1000)
    study.run(lambda params: params["x"], evaluations=3)
    assert {row["cause"] for row in check_books(path)["attempts"]} == {None, "lost"}


@pytest.mark.parametrize("is_command", [True, False])
def test_a_job_that_is_told_to_end_from_outside_is_tried_again(tmp_path, is_command):
    """As by a queue or a service manager, which tell every process."""
    mark = tmp_path / "mark"

    def function(params):
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGTERM)
        return 1.0

    command = ["sh", "-c", f"[ -e {mark} ] && echo 1 || {{ touch {mark}; kill $$; }}"]
    study = quick(ONE.changed(resources={"here": 1}), pause=0.0)
    report = study.run(command if is_command else function, evaluations=1)
    assert (report.evaluations, report.failed) == (1, 0)
    outcomes = [row.outcome for row in study.attempts(running=False)]
    assert sorted(outcomes) == ["done", "lost"]


# -- rights ----------------------------------------------------------------------------------------


def test_a_user_who_may_not_read_is_told_what_to_ask_for():
    import psycopg

    url = new_database()
    quick(ONE, url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE reader LOGIN")
    with pytest.raises(cm.StorageError, match="ask for the right to read and write the tables"):
        cm.Study.load(re.sub("//.*@", "//reader@", url))


# -- file handles ----------------------------------------------------------------------------------


def run_without_handles(path, log, evaluations):
    """For a second no file can be opened."""
    study = quick(ONE, f"sqlite:///{path}", pause=0.05)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    class Watch(cm.Live):
        def ended(self, progress, result):
            if sum(progress.ended.values()) == 4:
                used = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 20
                resource.setrlimit(resource.RLIMIT_NOFILE, (used, hard))
                signal.setitimer(signal.ITIMER_REAL, 1.0)

    def again(*_):
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    signal.signal(signal.SIGALRM, again)
    study.run(Counted(log), evaluations=evaluations, watch=Watch())


def test_no_file_handles_for_a_while(tmp_path):
    path, log = tmp_path / "a.db", Log(tmp_path / "log")
    pid = forked(run_without_handles, path, log, 12)
    assert os.waitpid(pid, 0)[1] == 0
    complete(path, log, 12)


# -- clocks and owners -----------------------------------------------------------------------------


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_clock_that_is_set_takes_no_lease_away(tmp_path, monkeypatch, jump):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    study, other = quick(ONE, url), quick(ONE, url)
    job = study.ask(lease=60.0)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    assert other.reap() == 0
    assert other.ask().number != job.number
    assert study.renew([job], lease=60.0) == []
    assert study.tell(job, {"f": 1.0})


def test_a_clock_that_is_set_back_does_not_delay_a_retry(tmp_path, monkeypatch):
    problem = ONE.changed(tasks={"run": cm.Task("f", failures="retry")})
    study = quick(problem, f"sqlite:///{tmp_path / 'a.db'}", pause=0.2)
    job = study.ask()
    study.fail(job, "no")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600.0)
    time.sleep(0.25)
    assert study.ask().number == job.number


def test_a_run_in_seconds_is_not_ended_by_a_clock_that_is_set(monkeypatch):
    study = quick(ONE)
    real, begin = time.time, time.monotonic()
    monkeypatch.setattr(
        time, "time", lambda: real() + (3600.0 if time.monotonic() > begin + 0.3 else 0.0)
    )
    report = study.run(Slow(), evaluations=3, seconds=60)
    assert report.stopped == "evaluations"
    assert report.seconds < 60


def test_leases_of_another_machine_are_timed_here(tmp_path, monkeypatch):
    """Its clock and its process ids mean nothing here: only whether it goes on renewing."""
    study = quick(ONE, f"sqlite:///{tmp_path / 'a.db'}", pause=0.0)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(liveness, "boot_id", lambda: "another")
        elsewhere.setattr(liveness, "_owner", lambda pid: "other/1/1/another/pid:[1]")
        elsewhere.setattr(liveness, "boot_seconds", lambda: 1e9)
        remote = quick(ONE, f"sqlite:///{tmp_path / 'a.db'}", pause=0.0)
        job = remote.ask(lease=0.3)
    assert study.reap() == 0  # seen for the first time
    time.sleep(0.2)
    assert remote.renew([job], lease=0.3) == []
    assert study.reap() == 0  # it was renewed
    time.sleep(0.2)
    assert study.reap() == 0
    time.sleep(0.2)
    assert study.reap() == 1
    assert study.jobs[0].cause == "lost"


CONTAINER = """
    import sys, time
    from tests.run.cases import quick
    from tests.run.test_faults import ONE
    study = quick(ONE, sys.argv[1])
    job = study.ask(lease=60.0)
    print(job.number, flush=True)
    sys.stdin.readline()
    assert study.tell(job, {"f": 1.0})
"""


def test_two_containers_with_one_hostname_leave_each_other_alone(tmp_path):
    """Process ids of one mean others in the other."""
    words = ["unshare", "--pid", "--fork", "--mount-proc"]
    if shutil.which("unshare") is None or subprocess.run([*words, "true"]).returncode:
        pytest.skip("no process namespace can be made here")
    url = f"sqlite:///{tmp_path / 'a.db'}"
    study = quick(ONE, url)
    script = textwrap.dedent(CONTAINER)
    container = subprocess.Popen(
        [*words, sys.executable, "-c", script, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    with container:
        number = int(container.stdout.readline())
        (attempt,) = study.attempts()
        assert attempt.owner.split("/")[0] == socket.gethostname()
        assert study.reap() == 0
        assert study.jobs[number].state == "running"
        container.stdin.write("\n")
        container.stdin.flush()
        assert container.wait(30) == 0
    assert [record.values for record in study.history] == [{"f": 1.0}]


def test_a_dead_owner_is_noticed_at_once(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    os.waitpid(forked(lambda: quick(ONE, url, pause=0.0).ask(lease=1e6)), 0)
    study = quick(ONE, url, pause=0.0)
    assert study.reap() == 1
    assert study.ask().attempt == 2


# -- many faults -----------------------------------------------------------------------------------


class Disk:
    """A study in a file, on a disk that is full at times."""

    def __init__(self, folder, stack):
        mountable = os.geteuid() == 0 and shutil.which("mount") is not None
        self.kinds = ("runner", "worker", *(("disk",) if mountable else ()))
        self.folder = stack.enter_context(small_disk(folder, 40)) if mountable else folder
        self.folder.mkdir(exist_ok=True)

    def new_place(self, number):
        return self.folder / f"{number}.db"

    def strike(self, rng):
        fill(self.folder)
        time.sleep(rng.uniform(0.05, 0.5))
        empty(self.folder)

    def clear(self, path):
        for file in self.folder.glob(f"{path.name}*"):
            shutil.rmtree(file) if file.is_dir() else file.unlink()


class Server:
    """A study on a server that drops connections, is restarted, or loses power."""

    kinds = ("runner", "worker", "server")

    def __init__(self, folder, stack):
        pass

    def new_place(self, number):
        return new_database()

    def strike(self, rng):
        restart_server(kill=rng.random() < 0.5)

    def clear(self, path):
        pass


@pytest.mark.parametrize("faults", [12, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind_of_storage", [Disk, Server])
def test_many_faults(tmp_path, monkeypatch, kind_of_storage, faults, capsys):
    """Runners and workers killed, disks full, servers restarted: at random, one after the other."""
    monkeypatch.chdir(tmp_path)  # where the files of jobs are, if the storage is a server
    rng, studies = random.Random(faults), 0
    with contextlib.ExitStack() as stack:
        storage = kind_of_storage(tmp_path / "disk", stack)
        counts = dict.fromkeys(storage.kinds, 0)
        while sum(counts.values()) < faults:
            studies += 1
            path, log = storage.new_place(studies), Log(tmp_path / f"{studies}.log")
            pid = forked(tough, path, log)
            while sum(counts.values()) < faults:
                time.sleep(rng.uniform(0.1, 0.6))
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    assert status == 0
                    pid = None
                    break
                kind = rng.choice(storage.kinds)
                if kind == "runner":
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    pid = forked(tough, path, log)
                elif kind == "worker":
                    workers = workers_of(pid)
                    if not workers:
                        continue
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(rng.choice(workers), signal.SIGKILL)
                else:
                    storage.strike(rng)
                counts[kind] += 1
            if pid is not None:
                assert os.waitpid(pid, 0)[1] == 0
            found = check_books(path)
            causes = [row["cause"] for row in found["attempts"] if row["cause"] is not None]
            assert set(causes) <= {"lost", "infrastructure", "crashed"}
            crashed = [row["reason"] for row in found["attempts"] if row["cause"] == "crashed"]
            assert all("SIGKILL" in reason for reason in crashed)  # workers, which we killed
            measured = [json.loads(row["params"])["x"] for row in found["measurements"]]
            assert len(measured) == len(set(measured)) == EACH
            assert set(measured) <= {float(x) for _, x, _ in log.lines()}
            storage.clear(path)
    with capsys.disabled():
        said = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        print(f"\n{sum(counts.values())} faults ({said}) in {studies} studies: nothing lost")


EACH = 40


def tough(path, log):
    """Run until all is done, whatever happens to this machine."""
    problem = ONE.changed(tasks={"run": cm.Task("f", failures="retry")})
    while True:
        try:
            study = quick(problem, url_of(path), pause=0.01, retries=1000)
            break
        except cm.StorageError as error:  # it cannot be opened, as the disk is full
            if not error.transient:
                raise
            time.sleep(0.05)
    study.run(Counted(log, 0.1), evaluations=EACH)
