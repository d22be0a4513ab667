"""Rejection sampling: against a case that can be worked out by hand, and as an acquisition."""

import math

import numpy as np
import pytest

import calamint as cm
from calamint.acquire import RS, RSDG, Incumbent
from calamint.acquire.rejection import grid_gains, regular_grid
from calamint.model import Data, fit
from calamint.problem import Space
from calamint.testbed import toy

RNG = np.random.default_rng


def test_two_independent_cells_can_be_worked_out():
    """f at two far points is N(0, 1) each; given that one is lower, its variance is 1 − 1/π."""
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f")
    model = cm.Model(kernel="se", lengthscale=0.01, amplitude=1.0, noise_variance=0.01)
    surrogate = fit(problem, model, {"f": Data.empty(1)}, RNG(0))
    draws = 200_000
    truth = grid_gains(surrogate, np.array([[0.1], [0.9]]), draws, RNG(1))
    expected = 0.5 * math.log(1.01) - 0.5 * math.log(1 - 1 / math.pi + 0.01)
    # A variance from n draws has a relative error of about √(2/n); here two cells of n/2.
    assert np.allclose(truth.gains[:, 0], expected, atol=4 * math.sqrt(2 / draws))
    assert np.allclose(truth.cells, 0.5, atol=4 * math.sqrt(0.25 / draws))
    assert truth.infeasible == 0


def test_draws_without_a_feasible_cell_are_left_out():
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["c >= 0"])
    model = cm.Model(kernel="se", lengthscale=0.01, amplitude=1.0, noise_variance=0.01)
    data = {"f": Data.empty(1), "c": Data.empty(1)}
    surrogate = fit(problem, model, data, RNG(0))
    draws = 100_000
    truth = grid_gains(surrogate, np.array([[0.1], [0.9]]), draws, RNG(1))
    assert abs(truth.infeasible - 0.25) < 4 * math.sqrt(0.25 * 0.75 / draws)
    assert truth.gains[0, 1] > 0.05  # the constraint tells where the solution is


def test_grids_cover_the_space_and_refuse_more_than_two_columns():
    assert regular_grid(Space({"x": cm.Real(0, 1)}), 100).shape == (100, 1)
    assert regular_grid(Space({"x": cm.Real(0, 1), "y": cm.Real(0, 1)}), 100).shape == (100, 2)
    assert regular_grid(Space({"n": cm.Integer(1, 3)}), 100).shape == (3, 1)
    with pytest.raises(cm.ProblemError, match="3 columns"):
        regular_grid(Space({name: cm.Real(0, 1) for name in "xyz"}), 100)


@pytest.mark.parametrize("method", [RS(100, 4000), RSDG(40, 4000)])
def test_as_acquisitions_they_make_progress(method):
    solved = toy().coupled()
    optimizer = cm.Optimizer(solved.problem, method, cm.Model(hyperparameters="map"), seed=0)
    for _ in range(14):
        job = optimizer.ask()
        optimizer.tell(job, solved.evaluate(job.params))
    assert {decision.update for decision in optimizer.decisions} == {"initial", "full"}
    assert solved.gap(optimizer.recommend().params, tolerance=1e-6) < 0.2


def test_they_choose_points_of_their_grid():
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["c >= 0"])
    inputs = RNG(0).random((5, 1))
    unknown = np.full(5, np.nan)
    data = {name: Data(inputs, RNG(1).standard_normal(5), unknown) for name in "fc"}
    surrogate = fit(problem, cm.Model(hyperparameters="map"), data, RNG(0))
    acq_function = RS(50, 4000).build(surrogate, Incumbent(np.array([0.5]), None), RNG(1))
    assert acq_function.finite_set.shape == (50, 1)
    assert np.array_equal(
        acq_function.value(acq_function.finite_set + 1e-4),
        acq_function.value(acq_function.finite_set),
    )
