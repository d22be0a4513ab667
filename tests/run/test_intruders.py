"""What others may have left in a folder, a database or a table does not run, nor leak."""

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.run.cases import SQUARE, quick, values_of

import calamint as cm
from calamint.run import StudyView

ONE = cm.Problem(SQUARE, minimize="f", tasks={"run": cm.Task("f")})


def run(*words, cwd, **variables):
    environment = {**os.environ, "COLUMNS": "200", **variables}
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)


def told(path, **settings):
    """A study with two results."""
    study = quick(ONE, f"sqlite:///{path}", **settings)
    for _ in range(2):
        job = study.ask()
        study.tell(job, values_of("price", job.params))
    return study


@pytest.mark.parametrize("words", [["calamint"], [sys.executable, "-m", "calamint"]])
def test_modules_in_the_working_directory_are_not_imported(tmp_path, words):
    """A file named like one of ours, or like any that is imported."""
    told(tmp_path / "calamint.db").database.close()
    mark = tmp_path / "it_ran"
    for name in ("sqlalchemy", "numpy", "rich", "typer", "json"):
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    if words[0] == "calamint":
        words = [str(Path(sys.executable).with_name("calamint"))]
    done = run(*words, "history", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not mark.exists()


def test_a_module_here_is_named_by_its_file(tmp_path):
    (tmp_path / "work.py").write_text("tasks = {'run': lambda params: params['x']}\n")
    told(tmp_path / "calamint.db").database.close()
    calamint = str(Path(sys.executable).with_name("calamint"))
    done = run(calamint, "run", "--tasks", "work:tasks", "--evaluations", "3", cwd=tmp_path)
    assert done.returncode == 1
    assert "write 'work.py:...'" in done.stderr
    done = run(calamint, "run", "--tasks", "work.py:tasks", "--evaluations", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(calamint, "run", "--tasks", "none.py:tasks", "--evaluations", "3", cwd=tmp_path)
    assert "there is no file" in done.stderr


def test_arguments_of_commands_are_not_rewritten(tmp_path, monkeypatch):
    """A word that happens to be the name of a file is a word."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fast").touch()
    script = "import sys; print('{\"f\": %d}' % len(sys.argv[1]))"
    study = quick(ONE)
    study.run([sys.executable, "-c", script, "fast"], evaluations=1)
    assert study.history[0].values == {"f": 4.0}


def test_passwords_are_in_no_message():
    for url in (
        "postgresql://me:secret@host/db",
        "nonsense://me:secret@host/db",
        "sqlite:///a\x00b://me:secret@host",
        "mysql+nothing://me:secret@host:x/db",
    ):
        with pytest.raises(cm.StorageError) as caught:
            cm.Study(ONE, url)
        error = caught.value
        while error is not None:
            assert "secret" not in str(error)
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_files_are_private(tmp_path):
    previous = os.umask(0o022)
    try:
        study = told(tmp_path / "a.db")
        study.run(lambda params: (print("hello"), params["x"])[1], evaluations=3)
    finally:
        os.umask(previous)
    for file in tmp_path.rglob("*"):
        allowed = 0o700 if file.is_dir() else 0o600
        assert stat.S_IMODE(file.stat().st_mode) == allowed, file


def test_links_are_not_followed(tmp_path):
    """A folder for jobs that somebody else put there as a link."""
    study = told(tmp_path / "a.db")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a.db.jobs").mkdir()
    (tmp_path / "a.db.jobs" / "study").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(cm.StorageError, match="is a link"):
        study.run(lambda params: params["x"], evaluations=3)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    # A link in the place of a job's own folder is passed over.
    (tmp_path / "a.db.jobs" / "study").unlink()
    (tmp_path / "a.db.jobs" / "study").mkdir()
    (tmp_path / "a.db.jobs" / "study" / "job-2-1").symlink_to(tmp_path / "elsewhere")
    study.run(lambda params: (print("hello"), params["x"])[1], evaluations=3)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_cells_that_a_spreadsheet_would_compute_are_escaped(tmp_path):
    options = ("=cmd", "+1 more", "-x", "@here", "plain", "-3")
    problem = cm.Problem({"kind": cm.Choice(*options)}, minimize="f")
    study = cm.Study(problem, acquisition="random")
    for value, option in enumerate(options):
        study.add({"kind": option}, {"f": -float(value)})
    study.to_csv(tmp_path / "a.csv")
    cells = [line.split(",")[1] for line in (tmp_path / "a.csv").read_text().splitlines()[1:]]
    assert cells == ["'=cmd", "'+1 more", "'-x", "'@here", "plain", "-3"]
    again = cm.Study(problem, acquisition="random")
    again.add_table(tmp_path / "a.csv")
    assert [record.params for record in again.history] == [r.params for r in study.history]
    assert [record.values for record in again.history] == [r.values for r in study.history]


def test_words_of_users_are_never_markup(tmp_path):
    study = told(tmp_path / "calamint.db")
    study.fail(study.ask(), "[/usr/lib] [bold]not bold[/bold]")
    calamint = str(Path(sys.executable).with_name("calamint"))
    done = run(calamint, "jobs", "--storage", f"sqlite:///{tmp_path}/calamint.db", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "[/usr/lib]" in done.stdout
    assert "[bold]not" in done.stdout


def test_names_are_limited_in_bytes():
    with pytest.raises(cm.ProblemError, match="at most 200"):
        cm.Study(ONE, name="ä" * 101)
    with pytest.raises(cm.ProblemError, match="202 bytes"):
        cm.Problem({"ä" * 101: cm.Real(0, 1)}, minimize="f")
    assert cm.Study(ONE, name="ä" * 100).name == "ä" * 100


@contextlib.contextmanager
def read_only(folder):
    """A folder on a file system that cannot be written, if this user may make one."""
    words = ["mount", "--bind", str(folder), str(folder)]
    if os.geteuid() != 0 or shutil.which("mount") is None or subprocess.run(words).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("closed", [True, False])
def test_read_only_media_can_be_read(tmp_path, closed):
    """Also with results that SQLite had not moved from its log into the file."""
    folder = tmp_path / "media"
    folder.mkdir()
    study = told(folder / "calamint.db")
    if closed:
        study.database.close()
    calamint = str(Path(sys.executable).with_name("calamint"))
    storage = f"sqlite:///{folder}/calamint.db"
    with read_only(folder):
        for words in (
            ["status"],
            ["history"],
            ["jobs"],
            ["studies"],
            ["export", str(tmp_path / "out.csv")],
            ["recommend"],
        ):
            done = run(calamint, *words, "--storage", storage, cwd=tmp_path)
            assert done.returncode == 0, (words, done.stderr)
        done = run(calamint, "ask", "--storage", storage, cwd=tmp_path)
        assert done.returncode == 4
        assert "cannot be written" in done.stderr or "may you write" in done.stderr
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3


def test_looking_at_a_study_writes_nothing(tmp_path):
    told(tmp_path / "a.db").database.close()
    before = (tmp_path / "a.db").read_bytes()
    view = StudyView.of(f"sqlite:///{tmp_path / 'a.db'}")
    assert len(view.history) == 2
    assert view.summary().evaluations == {"run": 2}
    assert view.recommend().params
    view.database.close()
    assert (tmp_path / "a.db").read_bytes() == before
    with pytest.raises(cm.StorageError, match="no such file"):
        StudyView.of(f"sqlite:///{tmp_path / 'none.db'}")
    assert not (tmp_path / "none.db").exists()


def test_threads_may_share_an_optimizer():
    problem = cm.Problem(SQUARE, minimize="f", tasks={"run": cm.Task("f")}, resources={"here": 64})
    optimizer = cm.Optimizer(problem, "random", seed=0)
    errors = []

    def work():
        try:
            for _ in range(50):
                job = optimizer.ask()
                optimizer.tell(job, {"f": job.params["x"]})
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    assert len(optimizer.history) == 400
    assert optimizer.pending == ()
