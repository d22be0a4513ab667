"""Full and partial updates on a clock that is handed in, and jobs on a virtual one."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

import calamint as cm
from calamint.acquire import PESC, Incumbent
from calamint.decide import Clock, VirtualClock, simulate
from calamint.model import Data, fit
from calamint.testbed import CLASSIC

POINT = cm.Model(hyperparameters="map")
RNG = np.random.default_rng


def run(rationality, jobs=24, deciding=None, durations=None, acquisition="pesc", seed=0):
    """The decoupled toy problem on a virtual clock."""
    solved = CLASSIC["toy"]()
    deciding = {"full": 5.0, "partial": 0.5} if deciding is None else deciding
    problem = solved.problem if acquisition == "pesc" else solved.coupled().problem
    optimizer = cm.Optimizer(
        problem,
        acquisition,
        POINT,
        seed=seed,
        rationality=rationality,
        clock=VirtualClock(deciding),
    )
    lasts = durations or dict.fromkeys(problem.tasks, 2.0)

    def measure(task, params):
        values = solved.evaluate(params)
        return {name: values[name] for name in problem.tasks[task].measures}

    return optimizer, list(simulate(optimizer, measure, lasts, jobs=jobs))


def kinds(optimizer):
    return [d.update for d in optimizer.decisions if d.update in ("full", "partial")]


def test_infinity_is_always_full_and_zero_never_again():
    assert set(kinds(run(math.inf)[0])) == {"full"}
    never = kinds(run(0.0)[0])
    assert never[0] == "full"
    assert set(never[1:]) == {"partial"}


def test_full_updates_take_the_share_of_time_that_was_asked_for():
    """A full decision of 5 s is due again once γ times the time since its end exceeds 5 s."""
    spent = []
    for rationality in (2.0, 0.5, 0.1):
        optimizer, ran = run(rationality, jobs=60)
        made = kinds(optimizer)
        share = 5.0 * made.count("full") / ran[-1].ended
        spent.append(made.count("full"))
        assert share < rationality / (1 + rationality) + 5.0 / ran[-1].ended
    assert spent[0] > spent[1] > spent[2] > 0


def test_the_rule_counts_from_the_end_of_the_last_full_update():
    optimizer, _ = run(1.0, jobs=9 + 4, deciding={"full": 5.0, "partial": 0.0})
    # Jobs of 2 s on one resource: 2, 4, 6 s after the first full update; the third is beyond 5 s.
    assert kinds(optimizer) == ["full", "partial", "partial", "full"]


def test_batches_are_filled_by_partial_updates():
    solved = CLASSIC["toy"]()
    problem = cm.Problem(
        dict(solved.problem.space.parameters),
        minimize="f",
        constraints=["c1 >= 0", "c2 >= 0"],
        tasks={name: cm.Task(measures=[name]) for name in ("f", "c1", "c2")},
        resources={"here": 3},
    )
    optimizer = cm.Optimizer(problem, model=POINT, rationality="batch", clock=VirtualClock({}))
    for _ in range(3):
        for job in optimizer.ask_all():
            optimizer.tell(job, {job.task: solved.evaluate(job.params)[job.task]})
    for _ in range(2):
        batch = optimizer.ask_all()
        assert [job.update for job in batch] == ["full", "partial", "partial"]
        for job in batch:
            optimizer.tell(job, {job.task: solved.evaluate(job.params)[job.task]})


@pytest.mark.parametrize("acquisition", ["eic", "pesc"])
def test_partial_updates_make_progress(acquisition):
    """With one full update only, the toy problem is solved, or its local minimum found."""
    solved = CLASSIC["toy"]()
    optimizer, _ = run(0.0, jobs=36 if acquisition == "eic" else 60, acquisition=acquisition)
    recommended = optimizer.recommend()
    assert solved.gap(recommended.params, tolerance=1e-3) < 0.3


def test_a_partial_update_sees_new_data():
    """Nothing is left to learn where the job whose result came in was, and more elsewhere."""
    optimizer, _ = run(0.0, jobs=14)
    acq_function = optimizer.state.update.acq_function
    record = optimizer.history[-2]  # the last one that the last decision knew of
    (name,) = record.values
    index = optimizer.problem.functions.index(name)
    gains = acq_function.contributions(np.vstack([record.point, RNG(0).random((200, 2))]))[:, index]
    assert abs(gains[0]) < 0.05
    assert gains.max() > 0.05


def test_a_partial_update_without_new_data_changes_little():
    surrogate, incumbent = toy_surrogate(10), Incumbent(np.array([0.2, 0.4]), None)
    method = PESC(20)
    full = method.build(surrogate, incumbent, RNG(0))
    again = method.update(full, surrogate, incumbent, RNG(1))
    x = RNG(2).random((100, 2))
    assert np.allclose(again.contributions(x), full.contributions(x), atol=2e-2)
    assert again.report.sites == full.report.sites


def test_a_partial_update_is_close_to_a_full_one_with_the_same_solutions():
    """Three more measurements, appended and conditioned on in a few sweeps."""
    before, after = toy_surrogate(10), toy_surrogate(13)
    incumbent = Incumbent(np.array([0.2, 0.4]), None)
    full = PESC(30).build(before, incumbent, RNG(0))
    extended = before.extended(toy_data(13))
    partial = PESC(30).update(full, extended, incumbent, RNG(1))
    x = RNG(2).random((300, 2))
    for name, function in extended.functions.items():
        mean, variance = function.posterior.mean_variance(x)
        exact = after.functions[name]
        scale = function.transform.scale / exact.transform.scale
        shift = (function.transform.offset - exact.transform.offset) / exact.transform.scale
        mean_after, variance_after = exact.posterior.mean_variance(x)
        assert np.allclose(mean * scale + shift, mean_after, atol=0.02)
        assert np.allclose(variance * scale**2, variance_after, atol=0.02)
    assert np.all(np.isfinite(partial.contributions(x)))
    assert partial.report.sites >= full.report.sites


def toy_data(count):
    solved = CLASSIC["toy"]()
    inputs = RNG(7).random((count, 2))
    values = [solved.evaluate(solved.problem.space.decode(point)) for point in inputs]
    return {
        name: Data(inputs, np.array([v[name] for v in values]), np.full(count, np.nan))
        for name in solved.problem.measured
    }


def toy_surrogate(count):
    model = cm.Model(
        hyperparameters="map",
        lengthscale=0.3,
        amplitude={"f": 1.0, "c1": 1.0, "c2": 1.0},
        noise_variance=1e-6,
    )
    return fit(CLASSIC["toy"]().problem, model, toy_data(count), RNG(0))


# -- pending jobs -------------------------------------------------------------------------------


@pytest.mark.parametrize("fantasies", [1, 4])
def test_a_pending_job_leaves_nothing_to_learn_at_its_point(fantasies):
    solved = CLASSIC["toy"]()
    optimizer = cm.Optimizer(
        cm.Problem(
            dict(solved.problem.space.parameters),
            minimize="f",
            constraints=["c1 >= 0", "c2 >= 0"],
            tasks={name: cm.Task(measures=[name]) for name in ("f", "c1", "c2")},
            resources={"here": 4},
        ),
        PESC(50),
        cm.Model(noise_variance=0),
        fantasies=fantasies,
        seed=1,
    )
    for params in ({"x1": a, "x2": b} for a in (0.1, 0.5, 0.9) for b in (0.2, 0.8)):
        optimizer.add(params, solved.evaluate(params))
    jobs = [optimizer.ask() for _ in range(3)]
    for job in jobs:
        gains = optimizer.gains([job.params])
        assert abs(gains[job.task][0]) < 0.05
    grid = [{"x1": a, "x2": b} for a in np.linspace(0, 1, 12) for b in np.linspace(0, 1, 12)]
    for values in optimizer.gains(grid).values():
        assert values.min() > -0.05
    # Recommendations do not believe in what was only fantasized.
    with_pending = optimizer.recommend()
    for job in jobs:
        optimizer.cancel(job)
    assert optimizer.recommend() == with_pending


# -- simulation ---------------------------------------------------------------------------------


def test_simulations_repeat_themselves_and_keep_time():
    durations = {"f": 1.0, "c1": 2.0, "c2": lambda params: 3.0 + params["x1"]}
    first, again = (
        [(r.job.task, r.job.params, r.started, r.ended) for r in run(0.5, durations=durations)[1]]
        for _ in range(2)
    )
    assert first == again
    for task, params, started, ended in first:
        lasts = durations[task]
        assert ended - started == pytest.approx(lasts(params) if callable(lasts) else lasts)
    # One resource of capacity one: jobs do not overlap, and thinking lies between them.
    for (_, _, _, ended), (_, _, started, _) in itertools.pairwise(first):
        assert started >= ended


def test_a_fast_resource_never_waits_for_a_slow_one():
    tasks = {
        "fast": cm.Task(measures=["f"], runs_on=["desk"]),
        "slow": cm.Task(measures=["c"], runs_on=["lab"]),
    }
    problem = cm.Problem(
        {"x": cm.Real(0, 1)},
        minimize="f",
        constraints=["c >= 0"],
        tasks=tasks,
        resources={"desk": 1, "lab": 1},
    )
    optimizer = cm.Optimizer(problem, model=POINT, clock=VirtualClock({}))
    ran = list(
        simulate(
            optimizer,
            lambda task, p: {"f": p["x"]} if task == "fast" else {"c": p["x"] - 0.3},
            {"fast": 1.0, "slow": 10.0},
            seconds=30.0,
        )
    )
    fast = sorted(r.started for r in ran if r.job.task == "fast")
    assert fast == pytest.approx(np.arange(30.0))
    assert Counter(r.job.task for r in ran)["slow"] == 3


def test_simulations_need_durations_and_a_virtual_clock():
    problem = CLASSIC["toy"]().problem
    with pytest.raises(cm.ProblemError, match="VirtualClock"):
        next(simulate(cm.Optimizer(problem), lambda task, p: {}, {}))
    optimizer = cm.Optimizer(problem, clock=VirtualClock())
    with pytest.raises(cm.ProblemError, match="durations has no entry"):
        next(simulate(optimizer, lambda task, p: {}, {}))


def test_results_that_came_while_thinking_are_told_before_the_next_decision():
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", resources={"here": 3})
    clock = VirtualClock({"random": 5.0})
    optimizer = cm.Optimizer(problem, "random", initial=0, clock=clock)
    durations = dict.fromkeys(problem.tasks, 1.0)
    ran = simulate(optimizer, lambda _, p: {"f": p["x"]}, durations, jobs=6)
    # Decisions take 5 s and jobs 1 s: no job is asked for while a result waits.
    for done in ran:
        assert len(optimizer.pending) <= 1, done


# -- what partial updates must not miss ----------------------------------------------------------


def test_a_failed_partial_update_is_followed_by_a_full_one():
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f")
    optimizer = cm.Optimizer(problem, model=POINT, rationality=0, initial=3)
    for _ in range(4):
        job = optimizer.ask()
        optimizer.tell(job, {"f": 1e-200 * job.params["x"]})
    optimizer.add({"x": 0.5}, {"f": 1e200})
    seen = []
    for _ in range(3):
        job = optimizer.ask()
        seen.append(job.update)
        optimizer.tell(job, {"f": job.params["x"]})
    assert "fallback" not in seen[1:]


def test_huge_values_with_standard_errors_are_appended():
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f")
    optimizer = cm.Optimizer(problem, model=POINT, rationality=0, initial=3)
    for _ in range(6):
        job = optimizer.ask()
        optimizer.tell(job, {"f": (job.params["x"] * 1e200, 1e150)})
    assert [d.update for d in optimizer.decisions][3:] == ["full", "partial", "partial"]


def test_partial_updates_learn_costs():
    tasks = {name: cm.Task(measures=["f"], cost="learn") for name in ("a", "b")}
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", tasks=tasks, resources={"here": 1})
    optimizer = cm.Optimizer(problem, model=POINT, rationality=0, initial=0)
    for x in (0.1, 0.4, 0.9):
        optimizer.add({"x": x}, {"f": math.sin(7 * x)})
    costs = []
    for _ in range(4):
        job = optimizer.ask(task="a")
        costs.append(job.cost)
        optimizer.tell(job, {"f": math.sin(7 * job.params["x"])}, seconds=1000.0)
    assert costs[0] == pytest.approx(1.0)
    assert costs[-1] > 100


def test_a_feasible_result_ends_the_search_for_feasibility_in_partial_updates():
    tasks = {name: cm.Task(measures=[name]) for name in ("f", "g")}
    problem = cm.Problem(
        {"x": cm.Real(0, 1)},
        minimize="f",
        constraints=["g >= 0"],
        tasks=tasks,
        resources={"here": 1},
    )
    optimizer = cm.Optimizer(problem, model=POINT, rationality=0, initial=0)
    for x in np.linspace(0, 1, 12):
        optimizer.add({"x": x}, {"f": x, "g": -3.0 + 0.01 * math.sin(9 * x)})
    job = optimizer.ask()
    assert optimizer.state.update.acq_function.report.feasible == 0
    optimizer.tell(job, {job.task: 0.0 if job.task == "f" else 2.0})
    for x in (0.75, 0.77, 0.79):
        optimizer.add({"x": x}, {"g": 2.0})
    optimizer.ask()
    assert optimizer.decisions[-1].update == "partial"
    assert optimizer.state.update.acq_function.report.feasible > 0


# -- how long a full update takes -----------------------------------------------------------------


class Ticking(Clock):
    """A clock that moves only when something says that it takes time."""

    def __init__(self):
        self.time = 0.0

    def now(self):
        return self.time

    stopwatch = now


@pytest.mark.parametrize("look_first", [False, True])
def test_a_full_update_counts_its_fit_whoever_made_it(look_first, monkeypatch):
    """Looking before asking must not make full updates seem cheaper than they are."""
    clock = Ticking()

    def slow(*arguments):
        clock.time += 10.0
        return fit(*arguments)

    monkeypatch.setattr("calamint.decide.update.fit", slow)
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f")
    optimizer = cm.Optimizer(problem, model=POINT, initial=0, rationality=1.0, clock=clock)
    for x in (0.1, 0.5, 0.9):
        optimizer.add({"x": x}, {"f": (x - 0.4) ** 2})
    if look_first:
        optimizer.recommend()
        optimizer.predict({"x": 0.2})
    job = optimizer.ask()
    assert optimizer.decisions[-1].stage_seconds["model"] == 10.0
    assert job.decision_seconds == 10.0
    assert optimizer.state.full.seconds == 10.0
    # So the rule waits as long, either way: γ (now − ended) > 10.
    optimizer.tell(job, {"f": 0.0})
    clock.time += 9.0
    job = optimizer.ask()
    assert job.update == "partial"
    optimizer.tell(job, {"f": 0.0})
    clock.time += 2.0
    assert optimizer.ask().update == "full"
