"""Studies move between storages with everything that happened."""

import os
import signal

import pytest
from tests.run.cases import SQUARE, check_books, decoupled, quick, tables, values_of
from tests.run.servers import new_database
from tests.run.tasks import first_of_square
from tests.run.test_kill import forked
from typer.testing import CliRunner

import calamint as cm
from calamint.run import Database, copy_study
from calamint.show.cli import main as command_line


def lived_in(url):
    """A study in which most things have happened."""
    study = cm.Study(
        decoupled(), url, "lived in", seed=2, initial=2, model=cm.Model(hyperparameters="map")
    )
    study.add({"x": 0.9, "y": 0.1}, {"f": 1.0, "c": (0.75, 0.1)})
    for _ in range(7):
        job = study.ask()
        study.tell(job, values_of(job.task, job.params))
    study.amend(1, values_of(study.jobs[1].task, study.jobs[1].params), reason="read again")
    study.withdraw(2, "spilt")
    study.fail(study.ask(task="weigh"), "dropped")
    study.enqueue("price", {"x": 0.3, "y": 0.3})
    study.change(decoupled(resources={"office": 2, "hall": 2}))
    study.recommend()
    study.ask()
    return study


def without_ids(found):
    """Rows of every table, without what belongs to the storage."""
    own = ("id", "uid", "study_id", "job_id", "decider", "decider_boot", "decider_until")
    return {
        name: sorted(repr({key: row[key] for key in row if key not in own}) for row in rows)
        for name, rows in found.items()
    }


def test_a_study_is_the_same_there_and_back(tmp_path):
    first, second = f"sqlite:///{tmp_path / 'a.db'}", f"sqlite:///{tmp_path / 'b.db'}"
    study, server = lived_in(first), new_database()
    # Ids of the copy are others.
    job = quick(storage=server).ask()
    assert copy_study(Database(first), Database(server)) == "lived in"
    assert copy_study(Database(server), Database(second), "lived in") == "lived in"
    assert without_ids(tables(tmp_path / "a.db")) == without_ids(tables(tmp_path / "b.db"))
    check_books(tmp_path / "b.db")
    for url in (server, second):
        copied = cm.Study.load(url, "lived in")
        assert copied.history == study.history
        assert copied.jobs == study.jobs
        assert copied.problem == study.problem
        assert copied.changes == study.changes
        assert copied.optimizer.ask().params == study.optimizer.ask().params
    assert quick(storage=server).jobs[0].params == job.params  # the other study is as it was


def test_results_of_the_original_are_not_taken_for_the_copy(tmp_path):
    """A job of the original ends after the copy is made, where jobs of the copy run, too."""
    first, second = f"sqlite:///{tmp_path / 'a.db'}", f"sqlite:///{tmp_path / 'b.db'}"
    problem = cm.Problem(
        SQUARE, minimize="f", tasks={"run": cm.Task("f", ["here"])}, resources={"here": 2}
    )
    executor, study = cm.Local(folder=tmp_path / "files"), quick(problem, first)
    copy_study(Database(first), Database(second))
    copied = cm.Study.load(second)
    for x in (0.8, 0.9):
        copied.enqueue("run", {"x": x, "y": 0.1})
    job = copied.ask()

    def dies():
        study.tell = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
        study.run(first_of_square, evaluations=1, executor=executor)

    assert os.waitpid(forked(dies), 0)[1] == signal.SIGKILL
    assert len(list(tmp_path.rglob("result-*"))) == 1
    copied.run(first_of_square, evaluations=2, executor=executor)
    assert [record.values for record in copied.history] == [{"f": 0.9}]
    copied.tell(job, {"f": 0.8})
    assert len(list(tmp_path.rglob("result-*"))) == 1


def test_a_study_that_is_there_is_not_written_over(tmp_path):
    first, second = f"sqlite:///{tmp_path / 'a.db'}", f"sqlite:///{tmp_path / 'b.db'}"
    lived_in(first)
    copy_study(Database(first), Database(second))
    before = tables(tmp_path / "b.db")
    with pytest.raises(cm.ProblemError, match="has a study 'lived in' already: nothing was copied"):
        copy_study(Database(first), Database(second))
    assert tables(tmp_path / "b.db") == before


def test_all_studies_are_copied_from_the_command_line(tmp_path):
    first, second = f"sqlite:///{tmp_path / 'a.db'}", f"sqlite:///{tmp_path / 'b.db'}"
    for name in ("one", "two"):
        quick(storage=first, name=name).ask()
    done = CliRunner().invoke(command_line.app, ["copy", first, second])
    assert done.exit_code == 0, done.output
    assert "Study 'one' is copied" in done.output
    assert [row["name"] for row in tables(tmp_path / "b.db")["studies"]] == ["one", "two"]


def test_copying_is_refused_before_anything_is_copied(tmp_path):
    first, second = f"sqlite:///{tmp_path / 'a.db'}", f"sqlite:///{tmp_path / 'b.db'}"
    Database(first)
    with pytest.raises(cm.ProblemError, match="has no study: there is nothing to copy"):
        CliRunner().invoke(command_line.app, ["copy", first, second], catch_exceptions=False)
    assert not (tmp_path / "b.db").exists()
    for name in ("one", "two"):
        quick(storage=first, name=name).ask()
    quick(storage=second, name="two").ask()
    with pytest.raises(cm.ProblemError, match="has a study 'two' already: nothing was copied"):
        CliRunner().invoke(command_line.app, ["copy", first, second], catch_exceptions=False)
    assert [row["name"] for row in tables(tmp_path / "b.db")["studies"]] == ["two"]
