"""Drawing x*: what is drawn solves its path."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calamint import Choice, Integer, Model, Problem, Real
from calamint.acquire import PESC, Incumbent, optima, space_filling
from calamint.acquire.optima import balanced_rows, draw_solutions
from calamint.model import Data, Surrogate, fit

NONE = np.empty((0, 2))


def surrogate_of(
    problem: Problem, count: int = 8, seed: int = 0, lengthscale: float = 0.3, low: float = 0.0
) -> Surrogate:
    """Noisy data of unrelated normal values: only drawing is looked at."""
    rng = np.random.default_rng(seed)
    inputs = space_filling(problem.space, count, rng)
    data = {
        name: Data(inputs, low + rng.standard_normal(count), np.full(count, np.nan))
        for name in problem.measured
    }
    model = Model(
        hyperparameters="map", lengthscale=lengthscale, amplitude=1.0, noise_variance=0.01
    )
    return fit(problem, model, data, rng)


@pytest.mark.parametrize(
    "limits", [(), ("c >= 0",), ("-0.5 <= c <= 0.5",), ("c >= 0", "d <= 0.3", "e >= -0.5")]
)
def test_solutions_are_feasible_and_as_good_as_a_dense_grid(limits):
    problem = Problem({"x": Real(0, 1), "y": Real(0, 1)}, minimize="f", constraints=list(limits))
    surrogate = surrogate_of(problem)
    found = draw_solutions(surrogate, 20, NONE, np.random.default_rng(1))
    axis = np.linspace(0, 1, 101)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    met = np.ones((20, len(grid)), dtype=bool)
    slack = np.zeros(20)
    for function, paths in zip(surrogate.constraints, found.paths[1:], strict=True):
        values, own = paths.values(grid), np.diag(paths.values(found.points))
        met &= (values >= function.low) & (values <= function.high)
        slack = np.maximum(slack, np.maximum(function.low - own, own - function.high))
    assert np.all(slack[found.feasible] < 2e-5)
    best = np.where(met, found.paths[0].values(grid), np.inf).min(1)
    own = np.diag(found.paths[0].values(found.points))
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
    surrogate = surrogate_of(problem, count=15, lengthscale=1.0, low=0.7)
    found = draw_solutions(surrogate, 6, np.empty((0, dimension)), np.random.default_rng(0))
    assert found.points.shape == (6, dimension)
    assert np.all((found.points >= 0) & (found.points <= 1))
    assert found.feasible.any()


def test_integers_and_choices_end_on_their_values():
    problem = Problem(
        {"x": Real(0, 1), "n": Integer(1, 5), "kind": Choice("a", "b", "c")},
        minimize="f",
        constraints=["c >= 0"],
    )
    surrogate = surrogate_of(problem)
    near = np.empty((0, problem.space.dimension))
    found = draw_solutions(surrogate, 10, near, np.random.default_rng(0))
    assert np.array_equal(problem.space.snap(found.points), found.points)


def test_a_known_limit_is_kept():
    problem = Problem(
        {"x": Real(0, 1), "y": Real(0, 1)},
        minimize="f",
        constraints=["s <= 0.5"],
        known={"s": lambda p: p["x"] + p["y"]},
    )
    found = draw_solutions(surrogate_of(problem), 10, NONE, np.random.default_rng(0))
    assert found.feasible.all()
    assert np.all(found.points.sum(1) <= 0.5 + 1e-5)


def test_paths_without_a_feasible_point_are_drawn_again(monkeypatch):
    problem = Problem({"x": Real(0, 1), "y": Real(0, 1)}, minimize="f", constraints=["c >= 1.0"])
    surrogate = surrogate_of(problem, count=4, seed=1, lengthscale=0.8, low=-0.5)
    monkeypatch.setattr(optima, "_REDRAWS", 0)
    once = draw_solutions(surrogate, 40, NONE, np.random.default_rng(0))
    monkeypatch.undo()
    again = draw_solutions(surrogate, 40, NONE, np.random.default_rng(0))
    assert 0 < once.feasible.sum() < again.feasible.sum()
    assert np.array_equal(again.points[once.feasible], once.points[once.feasible])
    # The paths that are shown are those that were solved.
    for new in np.flatnonzero(again.feasible & ~once.feasible):
        assert (
            again.paths[1].values(again.points[new][None])[new, 0]
            > surrogate.constraints[0].low - 1e-4
        )


@given(st.integers(1, 12), st.integers(1, 6), st.integers(1, 80))
def test_solutions_are_balanced_over_samples_and_fantasies(samples, fantasies, count):
    rows = balanced_rows(samples, fantasies, count, np.random.default_rng(0))
    assert len(rows) == count
    fantasy, sample = np.divmod(rows, samples)
    for which, size in ((sample, samples), (fantasy, fantasies)):
        counts = np.bincount(which, minlength=size)
        assert counts.max() - counts.min() <= 1
    pairs = np.unique(rows, return_counts=True)[1]
    assert pairs.max() <= -(-count // (samples * fantasies))  # no pair twice before all were


def test_fewer_solutions_than_samples_are_not_always_of_the_same():
    """With five solutions, samples 5 to 9 of ten used to be ignored for good."""
    drawn = [balanced_rows(10, 1, 5, np.random.default_rng(seed)) for seed in range(40)]
    assert all(len(set(rows)) == 5 for rows in drawn)
    counts = np.bincount(np.concatenate(drawn), minlength=10)
    # Binomial, 40 times with probability one half: 20 ± 3.2.
    assert counts.min() > 20 - 4 * 3.2
    assert counts.max() < 20 + 4 * 3.2


def test_ten_solutions_of_pesc_belong_to_all_samples_and_all_fantasies():
    """With as many solutions as samples, only the first fantasy used to count."""
    problem = Problem({"x": Real(0, 1)}, minimize="f", constraints=["c >= 0"])
    inputs = np.random.default_rng(0).random((5, 1))
    data = {name: Data(inputs, np.sin(9 * inputs[:, 0]), np.full(5, np.nan)) for name in ("f", "c")}
    rng = np.random.default_rng(1)
    surrogate = fit(problem, Model(samples=10), data, rng).repeated(4)
    surrogate = surrogate.fantasize(np.array([0.7]), ["f", "c"], rng)
    information = PESC(solutions=10).build(surrogate, Incumbent(np.array([0.5]), None), rng)
    drawn = information.drawn
    assert sorted(drawn.sample) == list(range(10))
    assert sorted(np.bincount(drawn.fantasy)) == [2, 2, 3, 3]
    assert np.array_equal(drawn.row, drawn.sample + 10 * drawn.fantasy)
    # Each is conditioned under its own sample and fantasy, also after a partial update.
    assert np.array_equal(information.gains.conditioned.rows, drawn.row)
    again = PESC(solutions=10).update(information, surrogate, Incumbent(np.array([0.5]), None), rng)
    assert np.array_equal(again.gains.conditioned.rows, drawn.row)
