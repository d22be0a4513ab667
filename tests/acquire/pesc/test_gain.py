"""Gains: against rejection sampling, gradients against finite differences, and their limits."""

import math

import numpy as np
import pytest

import accuracy
import calamint as cm
from calamint.acquire import PESC, Incumbent
from calamint.acquire.pesc.conditioning import blocks_of, limits_of
from calamint.acquire.pesc.ep import propagate
from calamint.acquire.rejection import grid_gains
from calamint.model import Data, fit

RNG = np.random.default_rng


@pytest.mark.parametrize("regime", ["5 joint", "7 and 3", "3 and 10"])
def test_gains_agree_with_rejection_sampling(regime):
    """A small version of `benchmarks/accuracy.py`."""
    results, converged = [], []
    for seed in range(4):
        surrogate, grid = accuracy.surrogate_of(accuracy.CASES[regime], seed)
        truth = grid_gains(surrogate, grid, 60_000, RNG(seed))
        solutions, weights = accuracy.exact_solutions(truth, grid)
        gains, share = accuracy.gains_of(surrogate, solutions, weights, "witness", grid)
        results.append(accuracy.compare(gains, truth))
        converged.append(share)
        assert gains.min() > -0.05 * math.log(2)
    correlation, _, best, objective, constraint = np.transpose(results)
    assert np.mean(correlation) > 0.95
    assert np.min(correlation) > 0.85
    assert np.mean(best) > 0.93
    assert 0.7 < np.mean(objective) / np.mean(constraint) < 1.4
    assert np.mean(converged) > 0.95


def test_an_interval_constraint_agrees_with_rejection_sampling():
    correlations = []
    for seed in range(3):
        surrogate, grid = accuracy.surrogate_of(accuracy.CASES["interval"], seed)
        truth = grid_gains(surrogate, grid, 60_000, RNG(seed))
        solutions, weights = accuracy.exact_solutions(truth, grid)
        gains, _ = accuracy.gains_of(surrogate, solutions, weights, "witness", grid)
        correlations.append(accuracy.compare(gains, truth)[0])
    assert np.mean(correlations) > 0.93


def information(constraints=("c >= 0", "-1 <= d <= 1"), count=8, samples=3, solutions=12, **model):
    problem = cm.Problem(
        {"x": cm.Real(0, 1), "y": cm.Real(0, 1)}, minimize="f", constraints=list(constraints)
    )
    inputs = RNG(0).random((count, 2))
    data = {
        name: Data(inputs, np.sin((3 + i) * inputs.sum(1) + i), np.full(count, np.nan))
        for i, name in enumerate(problem.functions)
    }
    surrogate = fit(problem, cm.Model(samples=samples, **model), data, RNG(1))
    return PESC(solutions).build(surrogate, Incumbent(np.full(2, 0.5), None), RNG(2)), inputs


@pytest.mark.parametrize("constraints", [(), ("c >= 0",), ("c >= 0", "-1 <= d <= 1")])
@pytest.mark.parametrize("hyperparameters", ["sampled", "map"])
def test_gradients_match_finite_differences(constraints, hyperparameters):
    acq_function, _ = information(constraints, hyperparameters=hyperparameters)
    x = RNG(3).random((8, 2))
    value, gradient = acq_function.value_gradient(x)
    assert np.allclose(value, acq_function.value(x), rtol=1e-10, atol=1e-12)
    step = 1e-5
    for d in range(2):
        shift = step * np.eye(2)[d]
        difference = (acq_function.value(x + shift) - acq_function.value(x - shift)) / (2 * step)
        assert np.allclose(gradient[:, d], difference, rtol=1e-3, atol=1e-4)


def test_gradients_of_single_functions_match_finite_differences():
    acq_function, _ = information()
    x = RNG(3).random((4, 2))
    for i in range(3):
        wanted = np.eye(3)[i]
        _, gradient = acq_function.gains.values_gradient(x, wanted)
        step = 1e-5
        for d in range(2):
            shift = step * np.eye(2)[d]
            above, below = (acq_function.gains.values(x + s)[:, i] for s in (shift, -shift))
            assert np.allclose(gradient[:, d], (above - below) / (2 * step), rtol=1e-3, atol=1e-4)


def test_gains_do_not_depend_on_the_batch():
    acq_function, _ = information()
    x = RNG(3).random((30, 2))
    alone = np.array([acq_function.contributions(point[None])[0] for point in x])
    assert np.allclose(acq_function.contributions(x), alone, rtol=1e-7, atol=1e-9)


def test_gains_are_finite_everywhere_also_at_solutions_and_data():
    acq_function, inputs = information(noise_variance=0, solutions=50, samples=10)
    x = np.vstack(
        [RNG(3).random((200, 2)), inputs, acq_function.solutions, acq_function.solutions + 1e-7]
    )
    gains = acq_function.contributions(x.clip(0, 1))
    assert np.all(np.isfinite(gains))
    assert gains.min() > -0.05 * math.log(2)
    assert np.all(np.isfinite(acq_function.value_gradient(x.clip(0, 1))[1]))


def test_gradients_close_to_a_solution():
    """Right beyond 0.01 length-scales of an x*; inside, where the gain jumps, only bounded."""
    acq_function, _ = information(hyperparameters="map", lengthscale=0.3, solutions=6)
    angles = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    centres = acq_function.solutions[np.all(np.abs(acq_function.solutions - 0.5) < 0.45, axis=1)]
    assert len(centres) >= 2
    outside = (centres[:, None] + 0.02 * 0.3 * ring).reshape(-1, 2)
    _, gradient = acq_function.value_gradient(outside)
    step = 1e-6
    for d in range(2):
        shift = step * np.eye(2)[d]
        difference = (acq_function.value(outside + shift) - acq_function.value(outside - shift)) / (
            2 * step
        )
        assert np.allclose(gradient[:, d], difference, rtol=1e-3, atol=1e-3)
    for radius in (1e-3, 1e-5, 1e-8, 0.0):
        _, gradient = acq_function.value_gradient((centres[:, None] + radius * ring).reshape(-1, 2))
        assert np.all(np.abs(gradient) < 1e6)


def test_nothing_is_left_to_learn_at_noise_free_measurements():
    acq_function, inputs = information(noise_variance=0)
    assert np.all(np.abs(acq_function.contributions(inputs)) < 0.05)
    assert acq_function.contributions(RNG(3).random((200, 2))).max() > 0.2


def test_the_report_counts_what_happened():
    acq_function, _ = information(solutions=20)
    report = acq_function.report
    assert report.solutions == 20
    assert 0 < report.feasible <= 20
    assert report.converged >= 19
    assert report.sites > 0


def test_one_solution_does_not_change_another():
    """Conditioning on ten solutions gives each the sites that it has alone."""
    surrogate, grid = accuracy.surrogate_of(accuracy.CASES["5 joint"], 0)
    truth = grid_gains(surrogate, grid, 20_000, RNG(0))
    cells = np.argsort(-truth.cells)[:10]
    solutions, limits = grid[cells] + 1e-6, limits_of(surrogate)
    z = np.linspace(0.03, 0.97, 9)[:, None]

    def sites_of(points):
        everything = np.vstack([z, points])
        functions = [f.posterior.joint(everything) for f in surrogate.functions.values()]
        return propagate(blocks_of(functions, limits, len(z), np.zeros(len(points), dtype=int)))

    together = sites_of(solutions)
    for j, point in enumerate(solutions):
        alone = sites_of(point[None])
        assert np.allclose(alone.precision[0], together.precision[j], rtol=1e-6, atol=1e-8)
        assert alone.converged[0] == together.converged[j]


def test_no_feasible_path_falls_back_to_feasibility():
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["c >= 50"])
    inputs = np.linspace(0, 1, 6)[:, None]
    unknown = np.full(6, np.nan)
    data = {
        "f": Data(inputs, inputs[:, 0], unknown),
        "c": Data(inputs, np.sin(6 * inputs[:, 0]), unknown),
    }
    surrogate = fit(problem, cm.Model(samples=3), data, RNG(0))
    acq_function = PESC().build(surrogate, Incumbent(np.full(1, 0.5), None), RNG(1))
    assert acq_function.report.feasible == 0
    gains = acq_function.contributions(np.linspace(0, 1, 50)[:, None])
    assert np.all(np.isfinite(gains))
    assert gains[:, 1].max() > 0


def test_known_functions_take_part_and_have_no_gain():
    problem = cm.Problem(
        {"x": cm.Real(0, 1)},
        minimize="f",
        constraints=["c >= 0"],
        known={"f": lambda params: params["x"]},
    )
    inputs = np.array([[0.1], [0.4], [0.9]])
    data = {"c": Data(inputs, np.array([-1.0, -0.3, 1.0]), np.full(3, np.nan))}
    surrogate = fit(problem, cm.Model(samples=4), data, RNG(0))
    acq_function = PESC().build(surrogate, Incumbent(np.full(1, 0.5), None), RNG(1))
    x = np.linspace(0.01, 0.99, 99)[:, None]
    gains = acq_function.contributions(x)
    assert np.all(gains[:, 0] == 0)
    assert np.all(np.isfinite(gains))
    # The constraint is worth most where it may become feasible, between 0.4 and 0.9.
    assert 0.35 < x[np.argmax(gains[:, 1]), 0] < 0.9
    value, gradient = acq_function.value_gradient(x)
    step = 1e-5
    difference = (acq_function.value(x + step) - acq_function.value(x - step)) / (2 * step)
    apart = np.min(np.abs(x - acq_function.solutions[:, 0]), axis=1) > 0.01
    # A known objective makes the factor at x a step where f(x) crosses f(x*).
    close = np.isclose(gradient[apart, 0], difference[apart], rtol=1e-2, atol=1e-2)
    assert close.mean() > 0.95
    assert np.all(np.isfinite(value))


@pytest.mark.parametrize("settings", [{"sites": "papers"}, {"solutions": 0}])
def test_bad_settings_get_one_sentence(settings):
    with pytest.raises(cm.ProblemError, match=r"write|did you mean"):
        PESC(**settings)
