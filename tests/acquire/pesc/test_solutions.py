"""Drawing x*: what is drawn solves its path."""

import numpy as np
import pytest

from calamint import Choice, Integer, Model, Problem, Real
from calamint.acquire.candidates import space_filling
from calamint.acquire.pesc import solutions
from calamint.acquire.pesc.solutions import draw_solutions
from calamint.model import Belief, Data, believe

NONE = np.empty((0, 2))


def belief_of(
    problem: Problem, count: int = 8, seed: int = 0, lengthscale: float = 0.3, low: float = 0.0
) -> Belief:
    """Noisy data of unrelated normal values: only drawing is looked at."""
    rng = np.random.default_rng(seed)
    inputs = space_filling(problem.space, count, rng)
    data = {
        name: Data(inputs, low + rng.standard_normal(count), np.full(count, np.nan))
        for name in problem.measured
    }
    model = Model(hyperparameters="map", lengthscale=lengthscale, amplitude=1.0, noise=0.01)
    return believe(problem, model, data, rng)


@pytest.mark.parametrize(
    "limits", [(), ("c >= 0",), ("-0.5 <= c <= 0.5",), ("c >= 0", "d <= 0.3", "e >= -0.5")]
)
def test_solutions_are_feasible_and_as_good_as_a_dense_grid(limits):
    problem = Problem({"x": Real(0, 1), "y": Real(0, 1)}, minimize="f", constraints=list(limits))
    belief = belief_of(problem)
    found = draw_solutions(belief, 20, NONE, np.random.default_rng(1))
    axis = np.linspace(0, 1, 101)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    met = np.ones((20, len(grid)), dtype=bool)
    slack = np.zeros(20)
    for function in found.drawn[1:]:
        values, own = function.values(grid, 20), np.diag(function.values(found.points, 20))
        met &= (values >= function.low) & (values <= function.high)
        slack = np.maximum(slack, np.maximum(function.low - own, own - function.high))
    # Single precision in `values`: six digits.
    assert np.all(slack[found.feasible] < 2e-5)
    best = np.where(met, found.drawn[0].values(grid, 20), np.inf).min(1)
    own = np.diag(found.drawn[0].values(found.points, 20))
    solved = found.feasible & np.isfinite(best)
    assert solved.sum() >= 18
    # A local solver from two starts may miss a basin: one path in twenty does, so of twenty more
    # than four would be a surprise of 0.3 %.
    assert np.sum(own[solved] > best[solved] + 1e-4) <= 4


@pytest.mark.parametrize(("dimension", "limits"), [(1, 0), (1, 11), (12, 1), (12, 11)])
def test_any_number_of_parameters_and_constraints(dimension, limits):
    problem = Problem(
        {f"x{i}": Real(0, 1) for i in range(dimension)},
        minimize="f",
        constraints=[f"c{k} >= 0" for k in range(limits)],
    )
    belief = belief_of(problem, count=15, lengthscale=1.0, low=0.7)
    found = draw_solutions(belief, 6, np.empty((0, dimension)), np.random.default_rng(0))
    assert found.points.shape == (6, dimension)
    assert np.all((found.points >= 0) & (found.points <= 1))
    assert found.feasible.any()


def test_integers_and_choices_end_on_their_values():
    problem = Problem(
        {"x": Real(0, 1), "n": Integer(1, 5), "kind": Choice("a", "b", "c")},
        minimize="f",
        constraints=["c >= 0"],
    )
    belief = belief_of(problem)
    near = np.empty((0, problem.space.dimension))
    found = draw_solutions(belief, 10, near, np.random.default_rng(0))
    assert np.array_equal(problem.space.snap(found.points), found.points)


def test_a_known_limit_is_kept():
    problem = Problem(
        {"x": Real(0, 1), "y": Real(0, 1)},
        minimize="f",
        constraints=["s <= 0.5"],
        known={"s": lambda p: p["x"] + p["y"]},
    )
    found = draw_solutions(belief_of(problem), 10, NONE, np.random.default_rng(0))
    assert found.feasible.all()
    assert np.all(found.points.sum(1) <= 0.5 + 1e-5)


def test_paths_without_a_feasible_point_are_drawn_again(monkeypatch):
    problem = Problem({"x": Real(0, 1), "y": Real(0, 1)}, minimize="f", constraints=["c >= 1.0"])
    belief = belief_of(problem, count=4, seed=1, lengthscale=0.8, low=-0.5)
    monkeypatch.setattr(solutions, "_REDRAWS", 0)
    once = draw_solutions(belief, 40, NONE, np.random.default_rng(0))
    monkeypatch.undo()
    again = draw_solutions(belief, 40, NONE, np.random.default_rng(0))
    assert 0 < once.feasible.sum() < again.feasible.sum()
    assert np.array_equal(again.points[once.feasible], once.points[once.feasible])
    # The paths that are shown are those that were solved.
    for new in np.flatnonzero(again.feasible & ~once.feasible):
        assert (
            again.drawn[1].values(again.points[new][None], 40)[new, 0] > again.drawn[1].low - 1e-4
        )
