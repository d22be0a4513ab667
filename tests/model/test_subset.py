"""A bounded number of measurements that stand for all of them."""

import numpy as np
import pytest

import calamint as cm
from calamint.model.data import Data
from calamint.model.subset import LEARNT, boundary_subset, relevant_subset

RNG = np.random.default_rng


def data(count, dimension=2, seed=0):
    inputs = RNG(seed).random((count, dimension))
    return Data(inputs, np.sin(3 * inputs).sum(1), np.full(count, np.nan))


def test_few_measurements_are_all_taken():
    few = data(20)
    assert relevant_subset(few, few.values, 20) is few
    assert boundary_subset(few, 20) is few


def test_the_most_relevant_half_is_kept_and_the_rest_fills_space():
    many = data(300)
    subset = relevant_subset(many, many.values, 60)
    assert len(subset) == 60
    assert set(np.sort(many.values)[:30]) <= set(subset.values)
    grid = np.stack(np.meshgrid([0.1, 0.5, 0.9], [0.1, 0.5, 0.9]), -1).reshape(-1, 2)
    farthest = np.linalg.norm(grid[:, None] - subset.inputs, axis=-1).min(1).max()
    assert farthest < 0.2  # half of a grid of 6 × 6 points has no larger holes


def test_outcomes_near_the_boundary_are_kept():
    inputs = RNG(0).random((400, 1))
    outcomes = Data(inputs, (inputs[:, 0] < 0.3).astype(float), np.full(400, np.nan))
    subset = boundary_subset(outcomes, 50)
    passed = subset.values > 0.5
    every = outcomes.values > 0.5
    assert inputs[every].max() == subset.inputs[passed].max()
    assert inputs[~every].min() == subset.inputs[~passed].min()


def test_the_only_failure_is_kept():
    many = data(300)
    outcomes = Data(many.inputs, np.ones(300), many.noise_variance)
    outcomes.values[17] = 0.0
    assert 0.0 in boundary_subset(outcomes, 50).values


@pytest.mark.parametrize("binary", [False, True])
def test_many_measurements_predict_as_well(binary):
    """All of them count in predictions of values; of outcomes those near the boundary do."""
    count = LEARNT + 60
    constraint = "c" if binary else "c <= 1"
    problem = cm.Problem(
        {"x": cm.Real(0, 1), "y": cm.Real(0, 1)}, minimize="f", constraints=[constraint]
    )
    optimizer = cm.Optimizer(problem, model=cm.Model(samples=4))
    for x, y in RNG(1).random((count, 2)):
        value = float(x + y)
        optimizer.add(
            {"x": float(x), "y": float(y)},
            {"f": float(np.sin(6 * x) * y), "c": value <= 1 if binary else value},
        )
    surrogate = optimizer.query().surrogate
    assert surrogate.samples == 3
    assert len(surrogate.objective.posterior.inputs) == count
    for x, y in RNG(2).random((20, 2)):
        found = optimizer.predict({"x": float(x), "y": float(y)})
        assert found["f"].mean == pytest.approx(np.sin(6 * x) * y, abs=5e-3)
        if abs(x + y - 1) > 0.1:
            assert (found["c"].probability > 0.5) == (x + y <= 1)


def test_a_decision_says_what_was_bounded():
    problem = cm.Problem({"x": cm.Real(0, 1), "y": cm.Real(0, 1)}, minimize="f")
    optimizer = cm.Optimizer(problem, initial=0)
    for x, y in RNG(0).random((18, 2)):
        optimizer.add({"x": x, "y": y}, {"f": np.sin(3 * x) + y})
    optimizer.cancel(optimizer.ask())
    assert optimizer.decisions[-1].bounded == ()
    for x, y in RNG(1).random((162, 2)):
        optimizer.add({"x": x, "y": y}, {"f": np.sin(3 * x) + y})
    optimizer.cancel(optimizer.ask())
    said = str(optimizer.decisions[-1])
    assert "4 of 10 hyper-parameter samples" in said  # ten measurements for each parameter, 1/√N
    assert "f learnt from 150 of 180 measurements" in said
    assert said.startswith("job 1: full, ")
    assert "(model " in said
