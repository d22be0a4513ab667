"""Pass/fail constraints: gains against counting, derivatives, and whole optimisations."""

import math

import numpy as np
import pytest
from tests.acquire.cases import RNG, derivatives

import accuracy
import calamint as cm
from calamint.acquire import ACQUISITIONS, PESC, Incumbent
from calamint.acquire.rejection import grid_gains
from calamint.model import Data, fit


@pytest.mark.parametrize("name", ["5 and 12 outcomes", "5 and 12 firm outcomes"])
def test_gains_of_outcomes_agree_with_counting(name):
    found = []
    for seed in range(6):
        surrogate, grid = accuracy.surrogate_of(accuracy.CASES[name], seed)
        truth = grid_gains(surrogate, grid, 100_000, RNG(seed))
        solutions, weights = accuracy.exact_solutions(truth, grid)
        gains, converged = accuracy.gains_of(surrogate, solutions, weights, "witness", grid)
        total, alone, _, _, derivative = accuracy.compare(gains, truth)
        found.append([total, alone, derivative])
        assert converged > 0.95
        assert gains[:, 1].min() >= -1e-12
        assert gains[:, 1].max() < math.log(2)  # an outcome tells one bit at most
    total, alone, derivative = np.mean(found, axis=0)
    assert total > 0.97
    assert alone > 0.94  # where an outcome tells a hundredth of a nat, counting is not much better
    assert 0.8 < derivative < 1.25


@pytest.mark.parametrize("constraints", [["c"], ["c", "d >= 0"], ["d <= 0.5", "c", "e"]])
@pytest.mark.parametrize("hyperparameters", ["sampled", "map"])
@pytest.mark.parametrize("kl", [False, True])
def test_gradients_match_finite_differences(constraints, hyperparameters, kl):
    problem = cm.Problem(
        {"x": cm.Real(0, 1), "y": cm.Real(0, 1)}, minimize="f", constraints=constraints
    )
    inputs = RNG(0).random((9, 2))
    data = {}
    for i, name in enumerate(problem.functions):
        values = np.sin((3 + i) * inputs.sum(1) + i)
        if name in ("c", "e"):
            values = (values > 0).astype(float)
        data[name] = Data(inputs, values, np.full(9, np.nan))
    model = cm.Model(hyperparameters=hyperparameters, samples=3)
    surrogate = fit(problem, model, data, RNG(1))
    acq_function = PESC(12).build(surrogate, Incumbent(np.full(2, 0.5), None), RNG(2))
    acq_function = acq_function.by_kl() if kl else acq_function
    x = RNG(3).random((8, 2))
    value, gradient = acq_function.value_gradient(x)
    assert np.allclose(value, acq_function.value(x), rtol=1e-10, atol=1e-12)
    expected = derivatives(acq_function.value, x, 1e-5)
    assert np.allclose(gradient, expected, rtol=2e-4, atol=2e-5 * np.abs(expected).max())


def region(params):
    """A half of the square passes; the best input that does is at (0.5, 0)."""
    return params["x"] + 0.2 * params["y"] >= 0.5


@pytest.mark.parametrize("tasks", ["together", "apart"])
def test_an_optimum_behind_a_outcome_is_found(tasks):
    problem = cm.Problem(
        {"x": cm.Real(0, 1), "y": cm.Real(0, 1)},
        minimize="f",
        constraints=["works"],
        tasks=None
        if tasks == "together"
        else {"score": cm.Task(measures=["f"]), "try": cm.Task(measures=["works"])},
    )
    optimizer = cm.Optimizer(problem, model=cm.Model(hyperparameters="map"), seed=0)
    for _ in range(26 if tasks == "together" else 46):
        job = optimizer.ask()
        values = {"f": job.params["x"] + job.params["y"], "works": region(job.params)}
        measures = problem.tasks[job.task].measures
        optimizer.tell(job, {name: values[name] for name in measures})
    assert all(decision.update != "fallback" for decision in optimizer.decisions)
    found = optimizer.recommend(delta=0.2)
    assert 0.45 < found.params["x"] + 0.2 * found.params["y"] < 0.75
    assert found.params["y"] < 0.2
    predicted = optimizer.predict({"x": 0.9, "y": 0.5})["works"]
    assert predicted.mean > 0.8  # of an outcome, the probability of passing
    assert predicted.probability > 0.8
    assert optimizer.predict({"x": 0.05, "y": 0.1})["works"].mean < 0.2
    gains = optimizer.gains([{"x": 0.5, "y": 0.05}, {"x": 0.9, "y": 0.9}])
    assert gains["works"][0] > gains["works"][1]
    assert gains["works"].max() <= 1.0


@pytest.mark.parametrize("name", [n for n in ACQUISITIONS if n != "rs"])
def test_every_method_works_with_outcomes(name):
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["works", "c <= 1"])
    optimizer = cm.Optimizer(
        problem, name, cm.Model(hyperparameters="map"), seed=0, rationality="batch"
    )
    for _ in range(7):
        job = optimizer.ask()
        x = job.params["x"]
        optimizer.tell(job, {"f": x, "works": x > 0.4, "c": x**2})
    assert all(decision.update != "fallback" for decision in optimizer.decisions)
    assert all(decision.warnings == () for decision in optimizer.decisions)


def test_partial_updates_see_new_outcomes():
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["works"])
    optimizer = cm.Optimizer(problem, model=cm.Model(hyperparameters="map"), seed=0, rationality=0)
    for _ in range(12):
        job = optimizer.ask()
        optimizer.tell(job, {"f": job.params["x"], "works": job.params["x"] > 0.4})
    kinds = [decision.update for decision in optimizer.decisions]
    assert kinds[3] == "full"
    assert set(kinds[4:]) == {"partial"}
    late = [record.params["x"] for record in optimizer.history[6:]]
    assert min(abs(x - 0.4) for x in late) < 0.15


@pytest.mark.parametrize("value", [0.7, "yes", (True, 0.1), 2])
def test_a_outcome_is_true_or_false(value):
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["works"])
    optimizer = cm.Optimizer(problem)
    job = optimizer.ask()
    with pytest.raises(cm.ResultError, match="write True or False"):
        optimizer.tell(job, {"f": 1.0, "works": value})
    optimizer.tell(job, {"f": 1.0, "works": np.bool_(True)})
    assert optimizer.history[0].values["works"] == 1.0
