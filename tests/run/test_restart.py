"""A study that is closed and opened after every step suggests what one that is not suggests."""

import math
import sys

import pytest
from tests.run.cases import decoupled, values_of

import calamint as cm
from calamint.acquire import EICD, PESC, RS
from calamint.decide import VirtualClock
from calamint.testbed import toy

POINT = cm.Model(hyperparameters="map")
TWO = toy().problem.changed(
    tasks={name: cm.Task(name) for name in ("f", "c1", "c2")}, resources={"a": 1, "b": 1}
)


def jobs_of(storage, steps, restart, **settings):
    """Ask and tell on a virtual clock, two jobs at a time; with a new process's eyes each time."""
    jobs, pending = [], []

    def opened():
        clock = VirtualClock({"full": 3.0, "partial": 0.5})
        return cm.Study(settings["problem"], storage, seed=5, clock=clock, **settings["options"])

    study = opened()
    for step in range(steps):
        if restart and step:
            study.database.close()
            study = opened()
        study.clock.move(4.0 * step)
        if step % 4 < 2:
            job = study.ask()
            if job is not None:
                jobs.append((job.number, job.task, job.params, job.update))
                pending.append(job)
        elif pending:
            job = pending.pop(0)
            if settings["fails"](job):
                study.fail(job, "no")
            else:
                study.tell(job, settings["values"](job), seconds=2.0)
    best = study.recommend()
    study.database.close()
    return jobs, best


CASES = {
    "sampled": (TWO, {}, lambda job: False),
    "map, failing": (
        decoupled(),
        {"model": POINT},
        lambda job: job.task == "price" and job.params["x"] > 0.6,
    ),
    "partial": (
        TWO,
        {"rationality": 0.3, "model": cm.Model(samples=3)},
        lambda job: False,
    ),
    "batch": (
        TWO,
        {"rationality": "batch", "model": POINT, "fantasies": 2},
        lambda job: False,
    ),
    "eic": (toy().coupled().problem, {"acquisition": "eic", "model": POINT}, lambda job: False),
    "costs": (
        decoupled(
            tasks={
                "price": cm.Task("f", runs_on=["office"], cost="learn"),
                "weigh": cm.Task("c", runs_on=["hall", "office"], cost=2),
            }
        ),
        {"model": POINT},
        lambda job: False,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_restarts_change_nothing(case, tmp_path):
    problem, options, fails = CASES[case]
    solved = toy()

    def values(job):
        if "f" in problem.tasks or "evaluate" in problem.tasks:
            return solved.evaluate(job.params, None if job.task == "evaluate" else job.task)
        return values_of(job.task, job.params)

    settings = {"problem": problem, "options": options, "fails": fails, "values": values}
    steps = 40 if case != "sampled" else 30
    whole = jobs_of(f"sqlite:///{tmp_path / 'a.db'}", steps, restart=False, **settings)
    parts = jobs_of(f"sqlite:///{tmp_path / 'b.db'}", steps, restart=True, **settings)
    assert parts == whole
    kinds = {update for *_, update in whole[0]}
    assert "full" in kinds
    assert ("partial" in kinds) == (options.get("rationality", math.inf) != math.inf)


def test_a_study_suggests_what_an_optimizer_suggests():
    problem = toy().coupled().problem
    study, optimizer = cm.Study(problem, model=POINT), cm.Optimizer(problem, model=POINT)
    for _ in range(8):
        jobs = study.ask(), optimizer.ask()
        assert jobs[0].params == jobs[1].params
        assert jobs[0].bits == jobs[1].bits
        for asked, told in zip(jobs, (study, optimizer), strict=True):
            told.tell(asked, toy().evaluate(asked.params), seconds=1.0)
    assert study.recommend() == optimizer.recommend()
    assert study.predict({"x1": 0.5, "x2": 0.5}) == optimizer.predict({"x1": 0.5, "x2": 0.5})


@pytest.mark.parametrize(
    "acquisition",
    [
        PESC(20, "union"),
        EICD("monte carlo"),
        RS(cells=100, draws=500),
        "thompson",
    ],
)
def test_settings_are_restored(acquisition, tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    model = cm.Model("se", samples=4, noise_variance={"f": 0.1}, lengthscale=[0.1, 0.2])
    problem = decoupled() if not isinstance(acquisition, str) else toy().coupled().problem
    made = cm.Study(problem, url, acquisition=acquisition, model=model, delta=0.1, rationality=2.0)
    again = cm.Study.load(url)
    assert again.settings.to_json() == made.settings.to_json()
    assert again.settings.model == model
    assert vars(again.settings.acquisition).keys() == vars(made.settings.acquisition).keys()
    assert again.settings.rationality == 2.0
    assert again.problem == problem


def local_cost(params):
    return 1.0 + params["x"]


def test_opening_a_storage_imports_nothing_that_it_names(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    problem = decoupled(
        tasks={
            "price": cm.Task("f", runs_on=["office"], cost=lambda params: 2.0),
            "weigh": cm.Task("c", runs_on=["hall", "office"], cost=local_cost),
        }
    )
    study = cm.Study(problem, url, acquisition="random")
    study.tell(study.ask(task="price"), {"f": 1.0})
    with pytest.raises(cm.ProblemError, match="would have to be imported: pass the problem"):
        cm.Study.load(url)
    assert len(cm.Study.load(url, problem=problem).history) == 1
    with pytest.raises(cm.ProblemError, match="importing it failed"):
        cm.Study.load(url, trust=True)


def test_functions_of_a_storage_are_imported_if_it_is_trusted(tmp_path, monkeypatch):
    """And only then does a module run that somebody else wrote into it."""
    (tmp_path / "planted_module.py").write_text(
        "from pathlib import Path\n"
        "Path(__file__).with_name('it_ran').touch()\n"
        "def cost(params):\n    return 2.0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import planted_module

    url, mark = f"sqlite:///{tmp_path / 'a.db'}", tmp_path / "it_ran"
    tasks = {"price": cm.Task("f", cost=planted_module.cost), "weigh": cm.Task("c")}
    cm.Study(decoupled(tasks=tasks, resources=None), url).ask()
    del sys.modules["planted_module"]
    mark.unlink()
    with pytest.raises(cm.ProblemError, match="planted_module:cost"):
        cm.Study.load(url)
    assert not mark.exists()
    assert cm.Study.load(url, trust=True).problem.tasks["price"].cost({}) == 2.0
    assert mark.exists()
