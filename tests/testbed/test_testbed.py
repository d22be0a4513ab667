"""The problems are what the literature says, and their answers are answers."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import qmc

from calamint.testbed import CLASSIC, SolvedProblem, gp_prior

# From the literature, recomputed: optimum, feasible share of the box, active constraints.
FACTS = {
    "toy": (0.599788, 0.458, {"c1"}),
    "gardner1": (-1.888751, 0.333, {"c"}),
    "gardner2": (0.253236, 0.0176, {"c"}),
    "branin": (0.397887, 0.698, set()),
    "hartmann6": (-3.322368, 0.081, set()),
    "spring": (0.01266523, 0.0076, {"deflection", "stress"}),
    "speed_reducer": (2996.34816, 0.0019, {"c5", "c6", "c8"}),
    "welded_beam": (1.724852, 0.0010, {"shear", "bending", "side", "buckling"}),
    "pressure_vessel": (5885.333, 0.168, {"shell", "head", "volume"}),
    "mystery": (-1.174274, 0.483, {"c"}),
    "sasena2": (0.12128713, 0.177, {"c2"}),
    "ackley10": (0.0, 2e-5, {"c1"}),
    "goldstein_price": (16.6704, 0.637, {"total"}),
    "rosenbrock4": (0.0313373, 0.175, {"ball"}),
}


def box(solved: SolvedProblem):
    parameters = solved.problem.space.parameters.values()
    return np.array([p.low for p in parameters]), np.array([p.high for p in parameters])


def inputs(solved: SolvedProblem, unit):
    low, high = box(solved)
    return low + unit * (high - low)


def slacks(solved: SolvedProblem, x):
    """(..., K) how far inside its limits each constraint is."""
    values = [(limit, solved.functions[limit.name](x)) for limit in solved.problem.constraints]
    return np.stack([np.minimum(v - limit.low, limit.high - v) for limit, v in values], -1)


@pytest.fixture(scope="module", params=FACTS)
def solved(request):
    return CLASSIC[request.param]()


def test_the_optimum_is_the_known_one(solved):
    optimum, _, active = FACTS[solved.name]
    assert solved.optimum == pytest.approx(optimum, rel=1e-6)
    values = solved.evaluate(solved.solution)
    assert values[solved.problem.objective.name] == pytest.approx(
        solved.optimum, rel=1e-8, abs=1e-8
    )
    assert solved.feasible(solved.solution)
    assert solved.gap(solved.solution) < 1e-7 * max(1, abs(optimum))
    point = np.array(list(solved.solution.values()))
    found = slacks(solved, point)
    names = [limit.name for limit in solved.problem.constraints]
    limits = [
        limit.low if np.isfinite(limit.low) else limit.high for limit in solved.problem.constraints
    ]
    scale = np.maximum(1.0, np.abs(limits))
    assert {n for n, slack in zip(names, found / scale, strict=True) if slack < 1e-8} == active


def test_the_feasible_share_is_the_known_one(solved):
    _, share, _ = FACTS[solved.name]
    count = 2**17
    unit = np.random.default_rng(1).random((count, len(solved.problem.space)))
    measured = np.mean(np.all(slacks(solved, inputs(solved, unit)) >= 0, axis=-1))
    std = np.sqrt(share * (1 - share) / count)
    rounding = 10.0 ** np.floor(np.log10(share)) / 100 if share < 0.01 else 0.0005
    assert abs(measured - share) < 4 * std + max(rounding, 0.0005 * (share > 0.01), 5e-5)


def test_the_optimum_is_locally_optimal(solved):
    """No feasible point near the solution is better, nor does a solver leave it."""
    rng = np.random.default_rng(2)
    low, high = box(solved)
    at = (np.array(list(solved.solution.values())) - low) / (high - low)
    objective = solved.functions[solved.problem.objective.name]
    scale = abs(solved.worst - solved.optimum)
    for radius in (1e-1, 1e-2, 1e-3, 1e-4):
        near = np.clip(at + radius * rng.uniform(-1, 1, (20_000, len(at))), 0, 1)
        x = inputs(solved, near)
        good = np.all(slacks(solved, x) >= 0, axis=-1)
        assert np.all(objective(x[good]) >= solved.optimum - 1e-9 * scale)
    found = minimize(
        lambda u: objective(inputs(solved, u)) / scale,
        at,
        method="SLSQP",
        bounds=[(0, 1)] * len(at),
        constraints={"type": "ineq", "fun": lambda u: slacks(solved, inputs(solved, u))},
    )
    if np.all(slacks(solved, inputs(solved, found.x)) >= -1e-9):
        assert found.fun >= solved.optimum / scale - 1e-7


def test_no_point_of_a_dense_search_is_better_nor_worse_than_the_worst(solved):
    unit = qmc.Sobol(len(solved.problem.space), rng=np.random.default_rng(3)).random(2**16)
    x = inputs(solved, unit)
    values = solved.functions[solved.problem.objective.name](x)
    good = np.all(slacks(solved, x) >= 0, axis=-1)
    assert good.any()
    assert values[good].min() >= solved.optimum
    assert values.max() <= solved.worst + 1e-6


def test_infeasible_points_have_the_worst_utility():
    solved = CLASSIC["toy"]()
    assert solved.gap({"x1": 0.0, "x2": 0.0}) == pytest.approx(2.0 - 0.599788, abs=1e-6)
    assert solved.gap({"x1": 0.5, "x2": 0.9}) == pytest.approx(1.4 - 0.599788, abs=1e-6)


def test_points_outside_the_box_are_refused():
    with pytest.raises(ValueError, match=r"x1 is -0\.5"):
        CLASSIC["toy"]().gap({"x1": -0.5, "x2": 1.05})


def test_tasks_measure_their_own_functions():
    solved = CLASSIC["spring"]()
    assert set(solved.evaluate(solved.solution, "draw")) == {"weight"}
    assert len(solved.evaluate(solved.solution, "simulate")) == 4
    assert set(solved.coupled().evaluate(solved.solution, "evaluate")) == set(
        solved.problem.functions
    )


@pytest.mark.parametrize(("dimension", "constraints"), [(1, 1), (2, 2)])
def test_gp_prior_draws_are_solved(dimension, constraints):
    solved = gp_prior(dimension, seed=5, constraints=constraints, centres=400)
    point = np.array(list(solved.solution.values()))
    assert np.all(slacks(solved, point) >= 0)
    dense = qmc.Sobol(dimension, rng=np.random.default_rng(0)).random(2**14)
    good = np.all(slacks(solved, dense) >= 0, axis=-1)
    values = solved.functions["f"](dense)
    assert values[good].min() >= solved.optimum - 1e-9
    assert values.max() <= solved.worst + 1e-9
    again = gp_prior(dimension, seed=5, constraints=constraints, centres=400)
    assert again.solution == solved.solution
    other = gp_prior(dimension, seed=6, constraints=constraints, centres=400)
    assert other.solution != solved.solution


def test_gp_prior_draws_have_the_prior_covariance():
    """Variance 1 and correlation exp(-½ (d/ℓ)²) between points, over many draws."""
    draws, distance = 400, 0.1
    pair = np.array([[0.5], [0.5 + distance]])
    values = np.array(
        [gp_prior(1, seed, constraints=0, centres=60).functions["f"](pair) for seed in range(draws)]
    )
    std = np.sqrt(2 / draws)
    assert np.all(np.abs(values.var(axis=0) - 1) < 4 * std)
    covariance = np.mean(values[:, 0] * values[:, 1])
    assert abs(covariance - np.exp(-0.5)) < 4 * np.sqrt((1 + np.exp(-1)) / draws)


def test_gp_prior_gradient_matches_finite_differences():
    draw = gp_prior(2, seed=0, centres=100).functions["f"]
    x, step = np.array([0.3, 0.6]), 1e-6
    for i, direction in enumerate(np.eye(2)):
        derivative = (draw(x + step * direction) - draw(x - step * direction)) / (2 * step)
        assert draw.gradient(x)[i] == pytest.approx(float(derivative), rel=1e-6)


def test_measurements_are_noisy_around_the_truth():
    solved = gp_prior(1, seed=0, centres=100, noise_std=0.5)
    rng = np.random.default_rng(0)
    values = np.array([solved.measure(solved.solution, rng)["f"] for _ in range(2000)])
    assert abs(values.mean() - solved.optimum) < 4 * 0.5 / np.sqrt(2000)
    assert abs(values.std() - 0.5) < 4 * 0.5 / np.sqrt(2 * 2000)
