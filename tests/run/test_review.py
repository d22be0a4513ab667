"""Things that went wrong once: odd inputs, shared things, jobs that end strangely."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from tests.run.cases import SQUARE, decoupled, quick
from tests.run.tasks import first_of_square

import calamint as cm
from calamint.decide import Clock, VirtualClock
from calamint.run import Database, names
from calamint.run.spool import folder_name

LINE = {"x": cm.Real(0, 1)}
ONE = cm.Problem(LINE, minimize="cost")
TWO = cm.Problem(
    LINE,
    minimize="cost",
    tasks={"t": cm.Task("cost", runs_on=["r"]), "u": cm.Task("cost", runs_on=["q"])},
    resources={"r": 1, "q": 1},
)


def test_a_new_task_may_need_a_new_resource(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    before = cm.Problem(
        LINE, minimize="cost", tasks={"t": cm.Task("cost", runs_on=["r"])}, resources={"r": 1}
    )
    study = quick(before, url)
    study.tell(study.ask(), {"cost": 1.0})
    study.change(TWO)
    assert len(study.history) == 1
    assert cm.Study.load(url).ask(task="u").resources == ("q",)


def test_true_is_not_one(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    numbers = cm.Problem({"c": cm.Choice(0, 1)}, minimize="f")
    study = quick(numbers, url)
    job = study.ask()
    study.tell(job, {"f": 1.0})
    changes = study.change(cm.Problem({"c": cm.Choice(False, True, "z")}, minimize="f"))
    assert any("former" in change for change in changes)
    assert repr(study.problem.space.parameters["c"].former) == repr((job.params["c"],))
    study.change(numbers)
    with pytest.raises(cm.ProblemError, match="about another problem"):
        quick(cm.Problem({"c": cm.Choice(False, True)}, minimize="f"), url)


def test_a_job_of_another_study_is_refused():
    first, second = quick(ONE, name="a"), quick(ONE, name="b", seed=7)
    job, _ = first.ask(), second.ask()
    for wrong in (lambda: second.tell(job, {"cost": 1.0}), lambda: second.fail(job, "no")):
        with pytest.raises(cm.ResultError, match="does not belong"):
            wrong()
    with pytest.raises(cm.ResultError, match="does not belong"):
        second.cancel(job)


def test_files_of_an_earlier_study_are_not_its_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quick(ONE, "sqlite:///a.db").run(["sh", "-c", "echo 777 > $CALAMINT_RESULT"], evaluations=1)
    for path in tmp_path.glob("a.db*"):
        if path.is_file():
            path.unlink()
    study = quick(ONE, "sqlite:///a.db")
    study.run(["sh", "-c", "echo 1"], evaluations=1)
    assert study.history[0].values == {"cost": 1.0}


def test_studies_do_not_share_folders():
    studies = [quick(ONE, name=name) for name in ("a/b", "a b", "..", "ok", "a_b")]
    database = studies[0].database
    names = [
        folder_name(s.name, quick(ONE, database, name=s.name).replica().study) for s in studies
    ]
    assert len(set(names)) == 5
    assert all("/" not in name and name != ".." for name in names)


def test_an_executor_can_be_used_again():
    executor = cm.Local()
    with pytest.raises(cm.TaskError, match="not found"):
        quick(TWO).run(
            {"t": first_of_square, "u": ["/nonexistent"]}, evaluations=5, executor=executor
        )
    study = quick(TWO, name="other")
    report = study.run(
        {"t": lambda p: p["x"], "u": lambda p: p["x"]}, evaluations=2, executor=executor
    )
    assert report.failed == 0


def real_time_signal(params):
    os.kill(os.getpid(), 40)


def leaves_a_thread(params):
    threading.Thread(target=time.sleep, args=(500,)).start()
    return 1.0


def closes_its_output(params):
    import sys

    sys.stdout.close()
    return 2.0


@pytest.mark.parametrize(
    ("work", "value"),
    [(real_time_signal, None), (leaves_a_thread, 1.0), (closes_its_output, 2.0)],
)
def test_jobs_that_end_strangely_end(work, value):
    study = quick(ONE)

    def grad_value(params, work=work):
        return work(params)

    report = study.run(grad_value, evaluations=1, executor=cm.Local(timeout=60))
    assert report.seconds < 30
    if value is None:
        assert "signal 40" in study.jobs[0].reason
    else:
        assert study.history[0].values == {"cost": value}


def test_a_simulation_can_be_interrupted_twice():
    clock = VirtualClock({})
    study = quick(TWO, clock=clock)

    def interrupts(params):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        return 1.0

    executor = cm.Simulated({"t": 1.0, "u": 5.0}, clock)
    report = study.run({"t": interrupts, "u": interrupts}, evaluations=9, executor=executor)
    assert report.stopped == "interrupted"
    assert "cancelled" in {job.state for job in study.jobs}


def test_budgets_count_enqueued_jobs():
    study = quick(ONE)
    for i in range(6):
        study.enqueue("evaluate", {"x": i / 10})
    work = {"evaluate": lambda params: params["x"]}
    assert study.run(work, evaluations=2).evaluations == 2
    assert study.run(work, evaluations=2).evaluations == 0
    assert study.run(work, evaluations=6).evaluations == 4
    assert [record.params["x"] for record in study.history] == [i / 10 for i in range(6)]


def test_a_run_does_not_wait_for_what_others_hold_for_ever():
    study = quick(ONE)
    study.ask()  # by hand, and never told
    study.enqueue("evaluate", {"x": 0.5})
    assert study.run(lambda params: 1.0, evaluations=2).evaluations == 0


@pytest.mark.parametrize("value", [float("nan"), None])
def test_no_number_is_tried_again_if_the_task_says_so(value):
    problem = ONE.changed(tasks={"run": cm.Task("cost", failures="retry")})
    study = quick(problem, pause=0.0)
    study.run({"run": lambda params: value}, evaluations=1)
    assert study.jobs[0].attempts == 3
    assert study.jobs[0].state == "failed"


def test_a_failed_booking_leaves_no_trace_in_decisions(monkeypatch):
    """As if it had never been decided, whether others were faster or the disk was full."""

    def jobs(disturb):
        clock = VirtualClock({"full": 1.0})
        model = cm.Model(hyperparameters="map")
        study = cm.Study(TWO, seed=1, model=model, rationality="batch", clock=clock)
        found = []
        for step in range(8):
            if disturb and step == 5:
                book = study._store.book
                monkeypatch.setattr(study._store, "book", raise_full)
                with pytest.raises(cm.StorageError):
                    study.ask()
                monkeypatch.setattr(study._store, "book", book)
            job = study.ask()
            found.append((job.params, job.update))
            if step % 2:
                study.tell(job, {"cost": job.params["x"]}, seconds=1.0)
            else:
                study.tell(job, {"cost": 1 - job.params["x"]}, seconds=1.0)
        return found

    def raise_full(*arguments):
        raise cm.StorageError("the disk is full")

    assert jobs(True) == jobs(False)


def test_threads_may_share_a_study_and_make_their_own(tmp_path):
    study = quick(TWO, f"sqlite:///{tmp_path / 'a.db'}")
    errors = []

    def work(mine):
        try:
            for _ in range(8):
                job = mine.ask()
                if job is not None:
                    mine.tell(job, {"cost": 1.0})
        except Exception as error:
            errors.append(error)

    def own():
        work(quick(TWO))

    threads = [threading.Thread(target=work, args=(study,)) for _ in range(3)]
    threads += [threading.Thread(target=own) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_reasons_are_kept_short_and_readable():
    study = quick(ONE)
    study.fail(study.ask(), "bad \udcff " + "x" * 5000)
    assert study.jobs[0].reason.startswith("bad ? xxx")
    assert len(study.jobs[0].reason) < 1100
    with pytest.raises(cm.ResultError) as caught:
        study.tell(study.ask(), {"cost": list(range(300_000))})
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "call",
    [
        lambda study, job: study.tell(job, {"cost": 10**5000}),
        lambda study, job: study.tell(job, {"cost": (1.0, 2.0, 3.0)}),
        lambda study, job: study.cancel(10**30),
        lambda study, job: study.ask(task=["evaluate"]),
        lambda study, job: study.ask(resource=["local"]),
        lambda study, job: study.enqueue(["evaluate"], {"x": 0.5}),
        lambda study, job: study.ask(lease="x"),
        lambda study, job: study.ask(lease=float("nan")),
        lambda study, job: study.renew([job], "x"),
        lambda study, job: study.renew([1], 3),
        lambda study, job: study.renew(None, 3),
        lambda study, job: study.add_all(None),
        lambda study, job: study.add_all([1]),
        lambda study, job: study.add_all([(1, 2, 3)]),
        lambda study, job: study.add_table(b"abc"),
        lambda study, job: study.add_table([{"x": np.zeros(2)}]),
        lambda study, job: study.to_csv("/no/such/folder/x.csv"),
        lambda study, job: study.to_csv(None),
        lambda study, job: study.change(None),
        lambda study, job: study.run(first_of_square, evaluations=1, executor="x"),
        lambda study, job: study.run(first_of_square, evaluations=1, lease=0),
        lambda study, job: study.run(first_of_square, evaluations=1, lease=None),
        lambda study, job: cm.Local(folder=5),
        lambda study, job: cm.Local(timeout="long"),
        lambda study, job: quick(ONE, name="\ud800"),
        lambda study, job: quick(ONE, name=""),
        lambda study, job: quick(ONE, clock="x"),
        lambda study, job: cm.Study.load("sqlite://", 5),
        lambda study, job: quick(ONE, "postgresql://h:abc/x"),
        lambda study, job: quick(ONE, "mysql://h/x"),
        lambda study, job: quick(ONE, "sqlite:///a\x00b"),
        lambda study, job: cm.Simulated({}, "clock"),
    ],
)
def test_odd_arguments_get_a_sentence(call):
    study = quick(ONE)
    job = study.ask()
    before = study.jobs
    with pytest.raises(cm.CalamintError) as caught:
        call(study, job)
    assert len(str(caught.value)) < 400
    assert study.jobs == before
    assert study.history == []


def test_numbers_of_other_kinds_are_numbers():
    study = cm.Study(
        cm.Problem(SQUARE, minimize="f"),
        acquisition="random",
        seed=np.int64(3),
        initial=np.int32(2),
        delta=np.float32(0.1),
        pause=np.float64(2),
    )
    study.add({"x": np.float64(0.5), "y": 1}, {"f": np.float32(0.5)})
    study.tell(study.ask(), {"f": np.int64(3)})
    study.tell(study.ask(), {"f": (1, None)})
    assert [record.values["f"] for record in study.history] == [0.5, 3.0, 1.0]


def test_looking_for_a_study_makes_no_file(tmp_path):
    with pytest.raises(cm.StorageError, match="no such file"):
        cm.Study.load(f"sqlite:///{tmp_path / 'none.db'}")
    assert list(tmp_path.iterdir()) == []


def test_the_log_says_of_each_job_how_it_ended(caplog):
    study = quick(ONE)
    for x in (0.25, 0.75):
        study.enqueue("evaluate", {"x": x})

    def fails_at_first(params):
        if params["x"] < 0.5:
            raise ValueError("too low")
        return params["x"]

    with caplog.at_level("INFO", "calamint"):
        study.run(fails_at_first, evaluations=2)
    assert "job 0 ended: ValueError: too low" in caplog.text
    assert "job 1 ended: 0.75" in caplog.text


class Hooked(Clock):
    """A clock that lets something happen while a decision is made."""

    def __init__(self):
        self.hook = None

    def decided(self, update):
        hook, self.hook = self.hook, None
        if hook is not None:
            hook()


@pytest.mark.parametrize("rationality", [0.0, "batch"])
def test_a_first_crash_that_is_told_while_another_process_decides(tmp_path, rationality):
    """The decision does not know of the constraint that the crash adds; what it leaves is no
    beginning for partial updates that do."""
    url, clock = f"sqlite:///{tmp_path / 'a.db'}", Hooked()
    problem = cm.Problem(
        {"x": cm.Real(0, 1)},
        minimize="f",
        constraints=["g >= 0"],
        tasks={"F": cm.Task("f"), "G": cm.Task("g")},
        resources={"cpu": 4},
    )
    settings = {
        "rationality": rationality,
        "model": cm.Model(hyperparameters="map"),
        "initial": 2,
        "seed": 1,
    }
    ours = cm.Study(problem, url, clock=clock, **settings)
    theirs = cm.Study(problem, url, **settings)
    for x in (0.1, 0.4, 0.6, 0.8):
        ours.add({"x": x}, {"f": (x - 0.3) ** 2, "g": x - 0.2})
    ours.enqueue("G", {"x": 0.9})
    crashing = ours.ask()
    clock.hook = lambda: theirs.fail(crashing.number, "crash")
    assert ours.ask().update == "full"
    theirs.ask()
    for _ in range(3):
        job = ours.ask() or ours.ask()
        if job is not None:
            assert job.warnings == ()
            ours.tell(job, {"f": 0.5} if job.task == "F" else {"g": 0.5})
    assert "G_works" in ours.predict({"x": 0.5})
    assert ours.recommend() == cm.Study.load(url).recommend()


def test_loading_a_study_that_does_not_exist_creates_none(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    quick(ONE, url, name="real")
    with pytest.raises(cm.StorageError, match="did you mean 'real'"):
        cm.Study.load(url, "rael", problem=ONE)
    assert names(Database(url)) == ["real"]


def test_a_coupled_study_is_opened_with_its_own_acquisition(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    cm.Study(decoupled(), url, acquisition="eic", couple=True)
    assert cm.Study(decoupled(), url, acquisition="eic").settings.couple


def test_numbers_of_numpy_can_be_stored(tmp_path):
    model = cm.Model(noise_variance=np.float32(0.25), lengthscale=np.array([0.5]))
    study = cm.Study(ONE, f"sqlite:///{tmp_path / 'a.db'}", model=model, couple=np.False_)
    assert study.settings.model.noise_variance == 0.25


@pytest.mark.parametrize("name", ["seed", "delta", "acquisition", "rationality", "fantasies"])
def test_none_is_no_setting_of_an_optimizer(name):
    with pytest.raises(cm.ProblemError, match=f"{name} is None"):
        cm.Optimizer(ONE, **{name: None})


def test_a_prediction_is_a_collection_of_functions():
    prediction = quick(ONE).predict({"x": 0.5})
    assert list(prediction) == ["cost"]
    assert len(prediction) == 1
    assert "cost" in prediction
    with pytest.raises(cm.ProblemError, match="did you mean 'cost'"):
        prediction["cots"]


def test_attempts_are_typed():
    study = quick(ONE)
    job = study.ask(lease=60.0)
    (attempt,) = study.attempts()
    assert (attempt.job, attempt.number, attempt.resources) == (job.number, 1, job.resources)
    assert attempt.lease == 60.0


def test_a_summary_computes_nothing():
    study = quick(ONE)
    for _ in range(4):
        job = study.ask()
        study.tell(job, {"cost": job.params["x"]})
    assert study.summary().recommendation is None
    best = study.recommend()
    study.fail(study.ask(), "it burnt")
    study.ask()
    found = study.summary()
    assert found.recommendation == best
    assert found.results_since == 1
    assert found.evaluations == {"evaluate": 5}
    assert found.states == {
        "waiting": 0,
        "running": 1,
        "held": 0,
        "failed": 1,
        "cancelled": 0,
        "withdrawn": 0,
        "partial": 0,
    }
