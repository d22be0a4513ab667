"""What an attack on studies found, each as it was done: results that were dropped or blamed on an
input, jobs that were cancelled by others, and files that were not as private as promised."""

import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from tests.run.cases import SQUARE, quick
from tests.run.test_faults import ONE

import calamint as cm
from calamint.errors import StorageError
from calamint.run import Database, StudyView, patience
from calamint.run.execute import process
from calamint.run.execute.local import Local
from calamint.run.store import liveness


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'a.db'}"


def one_at_a_time():
    return ONE.changed(resources={"here": 1})


def spooled(tmp_path, study, job, said):
    """A result file as a worker leaves it."""
    folder = tmp_path / "a.db.jobs" / "study" / f"job-{job.number}-{job.attempt}"
    folder.mkdir(parents=True, mode=0o700)
    name = f"result-{study.replica().uid}-{job.number}-{job.attempt}.json"
    (folder / name).write_text(json.dumps(said))
    return folder / name


# -- results ---------------------------------------------------------------------------------------


def test_a_task_that_could_not_be_loaded_is_not_the_inputs_fault(tmp_path, url):
    study = quick(one_at_a_time(), url, pause=0.0)
    job = study.ask(lease=1e-6)
    spooled(tmp_path, study, job, {"unloadable": "ImportError: no module"})
    study.run(first, evaluations=1)
    assert [record.state for record in study.jobs] == ["done"]
    assert study.optimizer.observations.failed_at == ()


def first(params):
    return params["x"]


def test_a_result_is_taken_from_its_file_if_the_job_closed_the_pipe():
    def closes(params):
        os.closerange(3, 256)
        return params["x"]

    study = quick(ONE)
    assert study.run(closes, evaluations=2).failed == 0
    assert [record.state for record in study.jobs] == ["done", "done"]


def test_results_behind_links_are_not_taken(tmp_path, url):
    study = quick(one_at_a_time(), url, pause=0.0)
    job = study.ask(lease=1e-6)
    file = spooled(tmp_path, study, job, {"values": 666})
    elsewhere = tmp_path / "elsewhere"
    file.parent.rename(elsewhere)
    file.parent.symlink_to(elsewhere)
    study.run(first, evaluations=1)
    assert all(record.values["f"] != 666 for record in study.history)
    assert (elsewhere / file.name).exists()


def test_a_forgotten_return_stops_a_run():
    study = quick(ONE)
    with pytest.raises(cm.TaskError, match="alike at 5 inputs in a row: f is None"):
        study.run(lambda _: None, evaluations=20)
    assert len(study.jobs) < 10


def test_a_result_line_that_is_too_long_is_said_to_be(tmp_path):
    script = tmp_path / "long.py"
    script.write_text("print('{\"f\": [' + '0,' * 700_000 + '0]}')")
    study = quick(ONE)
    with pytest.raises(cm.TaskError, match="last line of its output has more than 1000000 bytes"):
        study.run([sys.executable, str(script)], evaluations=1)


def test_what_was_refused_is_said_in_sentences():
    study = quick(ONE)
    with pytest.raises(cm.TaskError) as error:
        study.run(lambda _: {"ff": 1.0}, evaluations=1)
    assert str(error.value).endswith("did you mean 'f'? Job 0 waits to be run again.")
    with pytest.raises(cm.TaskError, match=r"task 'run': its result cannot be read: 1j is not a"):
        quick(ONE).run(lambda _: 1j, evaluations=1)


# -- starting --------------------------------------------------------------------------------------


def test_a_task_that_was_added_meanwhile_cancels_nobody(url):
    study = quick(ONE, url)
    finished = []

    class Changes:
        """Adds a task while the first jobs run."""

        def __init__(self):
            self.changed = False

        def refresh(self, progress):
            if progress.running and not self.changed:
                self.changed = True
                other = quick(ONE, url)
                more = {**ONE.tasks, "more": cm.Task("f", runs_on="there")}
                other.change(ONE.changed(tasks=more, resources={"here": 3, "there": 1}))
                other.enqueue("more", {"x": 0.5, "y": 0.5})

        def started(self, progress, job):
            pass

        def ended(self, progress, result):
            finished.append(result.job.number)

        def message(self, sentence):
            pass

    def slow(params):
        time.sleep(1.0)
        return params["x"]

    with pytest.raises(cm.TaskError, match="task 'more' was added meanwhile"):
        study.run(slow, evaluations=6, watch=Changes())
    states = {record.task: record.state for record in study.jobs}
    assert states == {"run": "done", "more": "waiting"}
    assert len(finished) >= 3


def test_no_more_threads_is_a_matter_of_waiting(monkeypatch):
    start, left = threading.Thread.start, [2]

    def started(thread):
        if thread._target is not None and thread._target.__name__ == "_listen" and left[0]:
            left[0] -= 1
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", started)
    study = quick(ONE)
    assert study.run(first, evaluations=4).failed == 0
    assert {record.state for record in study.jobs} == {"done"}
    assert left == [0]


def test_a_job_whose_listener_fails_does_not_run_on(monkeypatch, tmp_path):
    mark = tmp_path / "mark"

    def busy(_):
        while True:
            mark.write_text(str(time.time()))
            time.sleep(0.02)

    class Broken:
        def __init__(self):
            while not mark.exists():
                time.sleep(0.01)
            raise OSError(24, "Too many open files")

    monkeypatch.setattr(process.selectors, "DefaultSelector", Broken)
    study = quick(ONE, retries=0)
    with pytest.raises(cm.TaskError, match="is held"):
        study.run(busy, evaluations=1)
    time.sleep(0.2)
    last = mark.read_text()
    time.sleep(0.3)
    assert mark.read_text() == last


def test_a_program_that_cannot_be_run_leaves_its_job_waiting(tmp_path):
    script = tmp_path / "program"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    study = quick(ONE)
    number = study.enqueue("run", {"x": 0.5, "y": 0.5})
    with pytest.raises(cm.TaskError, match="cannot be started"):
        study.run([str(script)], evaluations=1)
    assert study.jobs[number].state == "waiting"


def test_options_that_name_files_are_not_checked():
    study = quick(ONE)
    words = ["-c", "print('{\"f\": 1.0}')", "--config=foo.py"]
    assert study.run([sys.executable, *words], evaluations=1).failed == 0


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are found on Linux")
def test_processes_in_another_session_without_an_environment_end_with_their_job(tmp_path):
    file = tmp_path / "pid"

    def leaves(params):
        words = f"echo $$ > {file}; exec sleep 7773"
        subprocess.Popen(["setsid", "env", "-i", "/bin/sh", "-c", words])
        while not file.exists() or not file.read_text():
            time.sleep(0.01)
        return params["x"]

    quick(ONE).run(leaves, evaluations=1)
    pid = int(file.read_text())
    deadline = time.monotonic() + 5
    while _lives(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _lives(pid)


def _lives(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


# -- leases and owners -----------------------------------------------------------------------------


def test_a_former_owner_cannot_cancel_a_job_that_waits_to_be_tried_again(url):
    study = quick(one_at_a_time(), url, pause=30.0)
    job = study.ask(lease=1e-6)
    assert quick(one_at_a_time(), url, pause=30.0).reap() == 1
    with pytest.raises(cm.ResultError, match="attempt 1 at job 0 is over"):
        study.cancel(job)
    assert study.jobs[0].state == "waiting"
    study.cancel(0)  # the user may
    assert study.jobs[0].state == "cancelled"


def test_a_job_of_another_study_is_not_renewed(tmp_path):
    mine = quick(ONE, f"sqlite:///{tmp_path / 'a.db'}")
    theirs = quick(ONE, f"sqlite:///{tmp_path / 'b.db'}")
    mine.ask(lease=60)
    with pytest.raises(cm.ResultError, match="does not belong to this study"):
        mine.renew([theirs.ask(lease=60)], 1e6)


def test_renewing_says_that_another_attempt_has_ended_the_job(url):
    study = quick(one_at_a_time(), url, pause=0.0)
    early = study.ask(lease=1e-6)
    late = study.ask(lease=60)
    assert (late.number, late.attempt) == (early.number, 2)
    assert study.tell(early, {"f": 1.0})
    assert study.renew([late], 60) == [late]


@pytest.mark.parametrize(("pause", "most"), [(1.0, 10.0), (600.0, 600.0), (1e6, 1e6)])
def test_pauses_are_bounded(pause, most):
    study = quick(one_at_a_time(), pause=pause, clock=cm.VirtualClock({}))
    study.fail(study.ask(), "no machine", "infrastructure")
    with study.database.read() as connection:
        not_before = connection.exec_driver_sql("SELECT not_before FROM jobs").scalar_one()
    assert not_before - study.now() == pytest.approx(most)


def test_a_released_job_has_all_its_attempts_again():
    study = quick(one_at_a_time(), pause=0.0, retries=2)
    for _ in range(2):
        for _ in range(3):
            assert study.jobs == [] or study.jobs[0].state == "waiting"
            study.fail(study.ask(), "gone", "lost")
        assert study.jobs[0].state == "held"
        study.release(0)


def test_a_clock_in_another_namespace_is_another_clock(monkeypatch, url):
    study = quick(one_at_a_time(), url)
    study.ask(lease=600)
    monkeypatch.setattr(liveness, "clock_id", lambda: f"{liveness.boot_id()}/time:[1]")
    monkeypatch.setattr(liveness, "boot_seconds", lambda: 1e9)
    assert quick(one_at_a_time(), url).reap() == 0


def test_patience_begins_anew_after_the_storage_worked(monkeypatch, url):
    """A second hiccup, long after the first one passed."""
    monkeypatch.setattr(patience, "PATIENCE", 0.5)
    monkeypatch.setattr(patience, "PAUSE", 0.4)
    monkeypatch.setattr(patience, "AGAIN", 0.05)
    study = quick(one_at_a_time(), url)
    real_request, real_tell, hiccups = cm.Study.request, cm.Study.tell, {"request": 1, "tell": 1}

    def failing(name, real):
        def call(self, *given, **named):
            if hiccups[name]:
                hiccups[name] -= 1
                raise StorageError("the disk is full.", True)
            return real(self, *given, **named)

        return call

    monkeypatch.setattr(cm.Study, "request", failing("request", real_request))
    monkeypatch.setattr(cm.Study, "tell", failing("tell", real_tell))

    def slow(params):
        time.sleep(1.5)
        return params["x"]

    assert study.run(slow, evaluations=1).evaluations == 1


def test_a_second_interrupt_does_not_wait_for_the_storage(tmp_path):
    path = tmp_path / "a.db"
    script = f"""
        import time, sys
        from tests.run.cases import quick
        from tests.run.test_faults import ONE

        def slow(params):
            time.sleep(0.5)
            return params["x"]

        class Says:
            def __getattr__(self, name): return lambda *given: None
            def started(self, progress, job): print("started", flush=True)
            def message(self, sentence): print(sentence, flush=True)

        from calamint.run.store import sqlite
        sqlite.BUSY_TIMEOUT = 0.2
        report = quick(ONE, "sqlite:///{path}").run(slow, evaluations=3, watch=Says())
        print("stopped:", report.stopped, flush=True)
    """
    quick(ONE, f"sqlite:///{path}").database.close()
    run = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    lines = []
    with run:
        for line in run.stdout:
            lines.append(line)
            if len([each for each in lines if each == "started\n"]) == 3:
                break
        lock = sqlite3.connect(path, isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")
        try:
            for line in run.stdout:
                lines.append(line)
                if "Trying again" in line:
                    break
            time.sleep(1.0)  # all three have ended, and wait
            for _ in range(2):
                run.send_signal(signal.SIGINT)
                time.sleep(0.3)
            run.wait(20)
        finally:
            lock.execute("ROLLBACK")
            lock.close()
        lines += run.stdout.readlines()
    assert any("for the next run" in line for line in lines), lines
    report = quick(ONE, f"sqlite:///{path}").run(first, evaluations=3)
    assert report.stopped == "evaluations"
    assert check_done(path) >= 3


def check_done(path):
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT COUNT(*) FROM jobs WHERE state = 'done'").fetchone()[0]


# -- intruders -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "mysqlx://u:pa/SECRET@h/db",
        "postgresql://h/db?password=SECRET",
        "postgresql:/u:SECRET@h/db",
        "postgresql://u:SECRET@h/db",
        "sqlite://u:SECRET@/f.db",
        "u:SECRET@h",
        "oracle://h/db?user=x&password=a@SECRET",
    ],
)
def test_passwords_are_shown_however_they_are_written_nowhere(url):
    with pytest.raises(cm.StorageError) as error:
        Database(url)
    assert "SECRET" not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_password_in_a_query_is_not_shown(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'a.db'}?timeout=5&check_same_thread=0")
    assert database.where.endswith("a.db")


@pytest.mark.parametrize("how", ["link", "uri"])
def test_databases_are_private_however_they_are_named(tmp_path, how, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old = os.umask(0o022)
    try:
        if how == "link":
            Path("a.db").symlink_to(tmp_path / "target.db")
            quick(ONE, "sqlite:///a.db").ask()
        else:
            quick(ONE, "sqlite:///file:target.db?uri=true").ask()
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "target.db").stat().st_mode) == 0o600


def test_options_that_differ_by_an_apostrophe_come_back(tmp_path):
    options = ("=a", "'=a", "''=a", "-1", "'-1", "'a", "a")
    problem = cm.Problem({"kind": cm.Choice(*options)}, minimize="f")
    study = quick(problem)
    study.add_all([({"kind": option}, {"f": 1.0}) for option in options])
    study.to_csv(tmp_path / "a.csv")
    again = quick(problem)
    again.add_table(tmp_path / "a.csv")
    assert [record.params["kind"] for record in again.history] == list(options)


def test_readers_leave_no_files(tmp_path, url):
    study = quick(ONE, url)
    study.tell(study.ask(), {"f": 1.0})
    study.database.close()
    assert os.listdir(tmp_path) == ["a.db"]
    view = StudyView.of(url)
    assert len(view.history) == 1
    assert view.summary().evaluations == {"run": 1}
    assert os.listdir(tmp_path) == ["a.db"]
    # It sees what others write later, nevertheless.
    other = quick(ONE, url)
    other.tell(other.ask(), {"f": 2.0})
    assert len(view.history) == 2
    other.database.close()
    other = quick(ONE, url)
    other.tell(other.ask(), {"f": 3.0})
    other.database.close()
    assert len(view.history) == 3


def test_what_was_not_merged_is_read_from_media_that_cannot_be_written(tmp_path):
    """The files of a killed process, copied."""
    path = tmp_path / "a.db"
    study = quick(ONE, f"sqlite:///{path}")
    study.tell(study.ask(), {"f": 1.0})
    medium = tmp_path / "medium"
    medium.mkdir()
    for name in ("a.db", "a.db-wal"):
        shutil.copy(tmp_path / name, medium)
    assert (medium / "a.db-wal").stat().st_size > 0
    mounted = os.geteuid() == 0 and _mount_read_only(medium)
    if not mounted:
        medium.chmod(0o500)
    if os.access(medium, os.W_OK):
        pytest.skip("this user can write everywhere, and nothing can be mounted")
    try:
        assert len(StudyView.of(f"sqlite:///{medium / 'a.db'}").history) == 1
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(medium)], check=True)
        medium.chmod(0o700)


def _mount_read_only(folder):
    bind = ["mount", "--bind", str(folder), str(folder)]
    again = ["mount", "-o", "remount,ro,bind", str(folder)]
    return subprocess.run(bind).returncode == 0 and subprocess.run(again).returncode == 0


def test_a_reason_cannot_command_a_terminal():
    study = quick(cm.Problem(SQUARE, minimize="f"))
    study.fail(study.ask(), "\x1b[2Jgone\x07\nbecause")
    assert study.jobs[0].reason == "\ufffd[2Jgone\ufffd\nbecause"


def test_folders_of_jobs_of_one_name_are_not_shared(tmp_path, url):
    executor = Local(folder=tmp_path / "jobs")
    quick(ONE, url).run(first, evaluations=1, executor=executor)
    assert (tmp_path / "jobs" / "study").stat().st_mode & 0o777 == 0o700
