"""Recommendations: against a dense grid, with one and several constraints, and without hope."""

import math

import numpy as np
import pytest

import calamint as cm
from calamint.decide.recommend import best_likely, constrained_optimum
from calamint.model import Data, feasibility, fit
from calamint.testbed import toy

RNG = np.random.default_rng


def toy_surrogate(count, seed=0, hyperparameters="sampled", **settings):
    solved = toy().coupled()
    inputs = RNG(seed).random((count, 2))
    data = {
        name: Data(inputs, solved.functions[name](inputs), np.full(count, np.nan))
        for name in solved.problem.functions
    }
    model = cm.Model(hyperparameters=hyperparameters, **settings)
    return solved, inputs, fit(solved.problem, model, data, RNG(1))


def grid(side=201):
    axis = np.linspace(0, 1, side)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("count", [8, 15, 30])
def test_no_grid_point_is_better(count, delta):
    _, inputs, surrogate = toy_surrogate(count)
    found = constrained_optimum(surrogate, inputs, delta, RNG(2))
    points = grid()
    probability = feasibility.probability(surrogate, points)
    if found.confident:
        assert found.probability >= 1 - delta
        assert found.probability == pytest.approx(
            feasibility.probability(surrogate, found.point[None])[0]
        )
        feasible = points[probability >= 1 - delta]
        assert found.objective <= surrogate.expected_objective(feasible).min() + 1e-6
    else:
        assert probability.max() < 1 - delta
        assert found.probability >= probability.max() - 1e-6


def test_the_best_likely_input_is_the_lowest_of_those_that_are_feasible():
    objective = np.array([3.0, 1.0, 2.0, 0.0])
    assert best_likely(objective, np.array([1.0, 0.97, 1.0, 0.4]), 0.05) == 1
    assert best_likely(objective, np.array([0.1, 0.2, 0.3, 0.4]), 0.05) is None


def test_a_doubtful_input_has_to_be_better_by_more():
    probability = np.array([1.0, 1.0, 0.5])  # worth 0.5 / 0.95 of its advantage over 3
    assert best_likely(np.array([3.0, 1.0, -0.7]), probability, 0.05) == 1
    assert best_likely(np.array([3.0, 1.0, -0.9]), probability, 0.05) == 2


def test_advantages_are_over_a_typical_input():
    """A safer input that is no better than most is worth nothing; if all are worse, the least."""
    objective, probability = np.array([9.0, 2.0, 1.0]), np.array([0.9, 0.8, 0.6])
    assert best_likely(objective, probability, 0.05) == 1  # the worst has 9
    assert best_likely(objective, probability, 0.05, typical=3.0) == 2
    assert best_likely(objective, probability, 0.05, typical=0.5) == 1


def test_if_no_input_is_feasible_enough_it_is_not_the_safest_at_any_price():
    """A limit that noise leaves open everywhere: the safest corner has the worst objective."""
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["c <= 1"])
    optimizer = cm.Optimizer(problem, seed=0, initial=0)
    rng = RNG(3)
    for x in np.repeat(np.linspace(0, 1, 12), 2):  # twice, or noise would look like roughness
        noisy = 0.92 + 0.06 * x + 0.3 * rng.standard_normal()
        optimizer.add({"x": float(x)}, {"f": 100 * (1 - x), "c": float(noisy)})
    believed = optimizer.recommend()
    assert not believed.confident
    assert believed.probability >= 0.5
    assert believed.objective < 50  # the median


def test_the_probability_is_used_up_when_it_binds():
    _, inputs, surrogate = toy_surrogate(12)
    found = constrained_optimum(surrogate, inputs, 0.1, RNG(2))
    assert found.confident
    assert found.probability < 0.95  # the limit binds: no caution for nothing


def test_without_constraints_it_is_the_lowest_mean():
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f")
    inputs = RNG(0).random((6, 1))
    data = {"f": Data(inputs, np.cos(5 * inputs[:, 0]), np.full(6, np.nan))}
    surrogate = fit(problem, cm.Model(samples=4), data, RNG(1))
    found = constrained_optimum(surrogate, inputs, 0.05, RNG(2))
    points = np.linspace(0, 1, 2001)[:, None]
    assert found.confident
    assert found.probability == 1
    assert found.objective <= surrogate.expected_objective(points).min() + 1e-8


def test_mixed_spaces_end_on_exact_values():
    space = {"x": cm.Real(0, 1), "n": cm.Integer(1, 6), "k": cm.Choice("a", "b")}
    problem = cm.Problem(space, minimize="f", constraints=["c <= 1"])
    inputs = problem.space.snap(RNG(0).random((25, 4)))
    values = (inputs[:, 0] - 0.3) ** 2 + (inputs[:, 1] - 0.4) ** 2 + 0.3 * inputs[:, 2]
    unknown = np.full(25, np.nan)
    data = {"f": Data(inputs, values, unknown), "c": Data(inputs, 2 * inputs[:, 0], unknown)}
    surrogate = fit(problem, cm.Model(samples=4), data, RNG(1))
    found = constrained_optimum(surrogate, inputs, 0.05, RNG(2))
    assert np.array_equal(problem.space.snap(found.point), found.point)
    every = problem.space.encode_all(
        {"x": x, "n": n, "k": k} for x in np.linspace(0, 1, 101) for n in range(1, 7) for k in "ab"
    )
    feasible = every[feasibility.probability(surrogate, every) >= 0.95]
    assert found.objective <= surrogate.expected_objective(feasible).min() + 1e-6


def test_known_constraints_are_respected_exactly():
    problem = cm.Problem(
        {"x": cm.Real(0, 1)},
        minimize="f",
        constraints=["c >= 0"],
        known={"c": lambda params: params["x"] - 0.625},
    )
    inputs = np.linspace(0, 1, 9)[:, None]
    data = {"f": Data(inputs, inputs[:, 0], np.full(9, np.nan))}
    surrogate = fit(problem, cm.Model(samples=4), data, RNG(1))
    found = constrained_optimum(surrogate, inputs, 0.05, RNG(2))
    assert found.confident
    assert 0.625 - 1e-9 <= found.point[0] < 0.6251


def test_nothing_feasible_gives_the_most_probable_and_says_so():
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["c >= 10"])
    inputs = np.linspace(0, 1, 12)[:, None]
    unknown = np.full(12, np.nan)
    data = {
        "f": Data(inputs, inputs[:, 0], unknown),
        "c": Data(inputs, np.sin(6 * inputs[:, 0]), unknown),
    }
    surrogate = fit(problem, cm.Model(samples=4), data, RNG(1))
    found = constrained_optimum(surrogate, inputs, 0.05, RNG(2))
    assert not found.confident
    points = np.linspace(0, 1, 500)[:, None]
    assert (
        math.log(found.probability + 1e-300)
        >= feasibility.log_probability(surrogate, points).max() - 1e-3
    )
