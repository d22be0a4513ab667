"""Batched constrained minimisation against problems with known answers and against SciPy."""

import numpy as np
import pytest
from scipy.optimize import minimize

from calamint.acquire.sqp import LocalModel, minimise


def quadratic_problems(count: int, dimension: int, limits: int, seed: int):
    """Convex quadratics with linear limits and the cube: one answer each."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((count, dimension, dimension))
    hessian = root @ np.swapaxes(root, -1, -2) + 0.1 * np.eye(dimension)
    centre = rng.uniform(-0.5, 1.5, (count, dimension))
    derivatives = rng.standard_normal((count, limits, dimension))
    inside = rng.uniform(0.2, 0.8, (count, dimension))
    offset = -(derivatives @ inside[..., None])[..., 0] + rng.uniform(0, 0.3, (count, limits))

    def look(which, x):
        apart = x - centre[which]
        bent = (hessian[which] @ apart[..., None])[..., 0]
        slacks = (derivatives[which] @ x[..., None])[..., 0] + offset[which]
        return LocalModel(0.5 * (apart * bent).sum(-1), bent, slacks, derivatives[which])

    return look


@pytest.mark.parametrize(("dimension", "limits"), [(1, 0), (2, 1), (3, 2), (7, 11), (12, 3)])
def test_convex_problems_are_solved_as_scipy_solves_them(dimension, limits):
    count = 12
    look = quadratic_problems(count, dimension, limits, seed=dimension)
    starts = np.random.default_rng(0).random((count, dimension))
    found = minimise(look, starts, 1e-6)
    assert np.all((found.points >= 0) & (found.points <= 1))
    assert np.all(found.violation <= 1e-6)
    for index in range(count):
        row = np.array([index])

        def at(x, row=row):
            return look(row, x[None])

        constraint = {
            "type": "ineq",
            "fun": lambda x, at=at: at(x).slacks[0],
            "jac": lambda x, at=at: at(x).slack_gradients[0],
        }
        exact = minimize(
            lambda x, at=at: (at(x).value[0], at(x).derivative[0]),
            starts[index],
            jac=True,
            method="SLSQP",
            bounds=[(0, 1)] * dimension,
            constraints=constraint if limits else (),
            options={"maxiter": 500, "ftol": 1e-12},
        )
        assert found.value[index] <= exact.fun + 2e-4 * max(1.0, abs(exact.fun))


def test_a_curved_limit_holds_with_equality():
    """The lowest x + y in the disk of radius 0.3 around the middle lies on its rim."""

    def look(which, x):
        apart = x - 0.5
        slacks = 0.09 - (apart**2).sum(-1, keepdims=True)
        return LocalModel(x.sum(-1), np.ones_like(x), slacks, -2 * apart[:, None, :])

    starts = np.array([[0.5, 0.5], [0.9, 0.1], [0.0, 0.0], [1.0, 1.0]])
    found = minimise(look, starts, 1e-6)
    assert found.points == pytest.approx(np.full((4, 2), 0.5 - 0.3 / np.sqrt(2)), abs=2e-3)
    assert np.all(found.violation <= 1e-6)


def test_one_problem_does_not_change_another():
    look = quadratic_problems(6, 3, 2, seed=5)
    starts = np.random.default_rng(1).random((6, 3))
    together = minimise(look, starts, 1e-6)
    for index in range(6):
        alone = minimise(lambda _, x, i=index: look(np.array([i]), x), starts[index][None], 1e-6)
        # Quadratic models are solved until the last of them is exact enough.
        assert alone.points[0] == pytest.approx(together.points[index], abs=1e-5)


def test_where_nothing_is_feasible_the_least_violated_point_is_returned():
    def look(which, x):
        slacks = np.stack([x[:, 0] - 0.6, 0.4 - x[:, 0]], axis=1)
        derivatives = np.repeat(np.array([[[1.0], [-1.0]]]), len(x), axis=0)
        return LocalModel(x[:, 0], np.ones_like(x), slacks, derivatives)

    found = minimise(look, np.array([[0.0], [1.0]]), 1e-6)
    assert found.violation == pytest.approx([0.2, 0.2], abs=1e-6)


def test_values_that_are_not_numbers_end_a_problem_where_it_was():
    def look(which, x):
        value = np.where(x[:, 0] < 0.3, np.nan, x[:, 0])
        return LocalModel(value, np.ones_like(x), np.empty((len(x), 0)), np.empty((len(x), 0, 1)))

    found = minimise(look, np.array([[0.9]]), 1e-6)
    assert 0.3 <= found.points[0, 0] < 0.9
