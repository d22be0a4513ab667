"""The methods that the paper compares with, each against an independent brute-force computation."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm
from tests.acquire.cases import RNG, derivatives, surrogate_of

import calamint as cm
from calamint.acquire import (
    EICD,
    EV,
    IECI,
    RS,
    RSDG,
    AcquisitionFunction,
    AugmentedLagrangian,
    Incumbent,
    Thompson,
)
from calamint.acquire.auglag import PenaltyState, multipliers_after, slacks_of
from calamint.acquire.entropy import EntropyReduction, MonteCarloEntropy
from calamint.acquire.ev import ExpectedVolume
from calamint.acquire.ieci import ConditionalImprovement
from calamint.acquire.quadrature import normal_mixture
from calamint.acquire.rejection import grid_gains
from calamint.decide.select import Competitor, maximise
from calamint.model import Data, FixedCost, feasibility, fit
from calamint.model.bivariate import bivariate_cdf, bivariate_interval_probability
from calamint.problem import Space
from calamint.testbed import toy

LINE = {"x": cm.Real(0, 1)}


# -- what they stand on -----------------------------------------------------------------------


def test_two_normals_at_once():
    rng = RNG(0)
    for _ in range(30):
        h, k = 2 * rng.standard_normal(2)
        rho = rng.uniform(-0.999, 0.999)
        value, grad_h, grad_k, grad_rho = bivariate_cdf(*(np.array([v]) for v in (h, k, rho)))
        expected = multivariate_normal.cdf([h, k], cov=[[1, rho], [rho, 1]])
        assert value[0] == pytest.approx(expected, abs=1e-12)
        step = 1e-6
        for derivative, move in ((grad_h, (1, 0, 0)), (grad_k, (0, 1, 0)), (grad_rho, (0, 0, 1))):
            there, here = (
                bivariate_cdf(
                    *(np.array([v + s * step * m]) for v, m in zip((h, k, rho), move, strict=True))
                )[0]
                for s in (1, -1)
            )
            assert derivative[0] == pytest.approx((there - here)[0] / (2 * step), abs=1e-6)


def test_two_normals_far_out_and_tied_together():
    inf = math.inf
    h = np.array([inf, -inf, 0.0, 50.0, -50.0, 1.0, 1.0, 0.0, 1e-200])
    k = np.array([0.3, 0.3, 0.0, -40.0, -40.0, 2.0, -2.0, -1e-30, -1e-200])
    rho = np.array([0.5, 0.5, 0.0, 1.0, -1.0, 1.0, -1.0, 0.0, 0.0])
    parts = bivariate_cdf(h, k, rho)
    assert all(np.all(np.isfinite(part)) for part in parts)
    expected = [norm.cdf(0.3), 0, 0.25, 0, 0, norm.cdf(1), 0, 0.25, 0.25]
    assert np.allclose(parts[0], expected, atol=1e-7)


def test_both_within_an_interval():
    draws = RNG(1).standard_normal((400_000, 2))
    rho, means, stds = 0.6, (0.2, -0.3), (0.7, 1.1)
    x = means[0] + stds[0] * draws[:, 0]
    y = means[1] + stds[1] * (rho * draws[:, 0] + math.sqrt(1 - rho**2) * draws[:, 1])
    for low, high in ((-0.5, 0.9), (0.0, math.inf), (-math.inf, 0.4)):
        within = (low <= x) & (x <= high) & (low <= y) & (y <= high)
        value = bivariate_interval_probability(
            low,
            high,
            tuple(np.array([m]) for m in means),
            tuple(np.array([d]) for d in stds),
            np.array([rho]),
        )[0]
        assert abs(value[0] - within.mean()) < 4 * math.sqrt(0.25 / len(x))


@pytest.mark.parametrize("centre", [(0.3, 0.8), (0.0, 1.0)])
def test_integration_points_integrate_wide_and_narrow_functions(centre):
    space = Space({"x": cm.Real(0, 1), "y": cm.Real(0, 1)})
    centre = np.array(centre)
    wide, narrow = [], []
    for seed in range(30):
        points, weights = normal_mixture(space, np.vstack([centre, [0.6, 0.1]]), 200, RNG(seed))
        wide.append((weights * points[:, 0] * points[:, 1]).sum())
        width = 0.005
        peak = np.exp(-0.5 * ((points - centre) ** 2).sum(-1) / width**2)
        narrow.append((weights * peak).sum() / (2 * math.pi * width**2))
    inside = 1.0 if centre[0] > 0 else 0.25
    for estimates, truth in ((wide, 0.25), (narrow, inside)):
        error = np.std(estimates, ddof=1) / math.sqrt(len(estimates))
        assert abs(np.mean(estimates) - truth) < 4 * error
        assert np.std(estimates) < 0.15 * truth


def test_integration_points_keep_to_values_that_exist():
    space = Space({"n": cm.Integer(1, 4), "o": cm.Choice("a", "b"), "x": cm.Real(0, 1)})
    points, weights = normal_mixture(space, space.snap(RNG(0).random((2, 4))), 400, RNG(1))
    assert np.array_equal(space.snap(points), points)
    two = np.array([space.decode(point)["n"] == 2 for point in points])
    assert (weights * two).sum() == pytest.approx(0.25, abs=0.05)


# -- integrated expected conditional improvement ----------------------------------------------


def expected_improvement(best, mean, std):
    return quad(lambda y: (best - y) * norm.pdf(y, mean, std), mean - 12 * std, best)[0]


def test_ieci_is_the_fall_of_improvement_that_the_belief_sees():
    """Against believing in a measurement at x, and quadrature at every point of a grid."""
    surrogate = surrogate_of(["c >= 0"], samples=2, space=LINE)
    grid = np.linspace(0.025, 0.975, 20)[:, None]
    best = np.array([-0.4, 0.1])
    feasible = np.exp(feasibility.log_probability_by_sample(surrogate, grid))
    acq_function = ConditionalImprovement(
        surrogate, surrogate.objective.posterior.joint(grid, covariance=False), feasible / 20, best
    )
    for x in (0.11, 0.52, 0.9):
        after = surrogate.fantasize_expected([(np.array([x]), ["f"])])
        total = 0.0
        for j in range(2):
            for g in range(20):
                each = []
                for believed in (surrogate, after):
                    mean, variance = believed.objective.posterior.mean_variance(grid[g][None])
                    each.append(
                        expected_improvement(best[j], mean[j, 0], math.sqrt(variance[j, 0]))
                    )
                total += (each[0] - each[1]) * feasible[j, g] / 40
        assert acq_function.value(np.array([[x]]))[0] == pytest.approx(total, rel=1e-3, abs=1e-9)


# -- expected volume --------------------------------------------------------------------------


@pytest.mark.parametrize("best", [-0.3, math.inf])
def test_ev_is_the_volume_that_draws_rule_out(best):
    surrogate = surrogate_of(["c >= 0", "-1 <= d <= 1"], samples=1, space=LINE)
    grid = np.linspace(0.05, 0.95, 8)[:, None]
    functions = [surrogate.objective, *surrogate.constraints]
    joint = [function.posterior.joint(grid, covariance=False) for function in functions]
    acq_function = ExpectedVolume(surrogate, joint, np.full(8, 1 / 8), best)
    draws = 200_000
    for x in (0.33, 0.77):
        places = np.vstack([grid, [[x]]])
        ruled_out = np.ones((draws, 8), dtype=bool)
        for i, function in enumerate(functions):
            posterior = function.posterior
            mean = posterior.mean_variance(places)[0][0]
            covariance = posterior.covariance(places, places)[0]
            drawn = RNG(i).multivariate_normal(mean, covariance, size=draws, method="eigh")
            there, here = drawn[:, :-1], drawn[:, -1:]
            if i == 0:
                ruled_out &= (here < there) & (there <= best)
            else:
                ruled_out &= (there >= function.low) & (there <= function.high)
                ruled_out &= (here >= function.low) & (here <= function.high)
        expected = ruled_out.mean(axis=1)
        error = expected.std() / math.sqrt(draws)
        assert abs(acq_function.value(np.array([[x]]))[0] - expected.mean()) < 4 * error + 1e-6


# -- augmented Lagrangian ---------------------------------------------------------------------


def test_multipliers_follow_a_sequence_worked_out_by_hand():
    objective, slacks = np.array([1.0, 0.0, 2.0]), np.array([[-1.0], [-0.5], [0.5]])
    # p starts at half the squared violation. L = 1 + 1/(2·½) = 2: λ = 0 + 1/½, p halves.
    first = multipliers_after(objective[:1], slacks[:1], initial=1)
    assert (first.multipliers[0], first.penalty) == (2.0, 0.25)
    # L = (5, 1.5), so the second: λ = 2 + ½/¼, p halves.
    second = multipliers_after(objective[:2], slacks[:2], initial=1)
    assert (second.multipliers[0], second.penalty) == (4.0, 0.125)
    # L = (9, 3, 0), so the third, which is feasible: λ = max(0, 4 − ½/⅛), p stays.
    third = multipliers_after(objective, slacks, initial=1)
    assert (third.multipliers[0], third.penalty) == (0.0, 0.125)
    assert third.lagrangian(objective, slacks).tolist() == [5.0, 1.0, 2.0]


@pytest.mark.parametrize("known", [False, True])
def test_lagrangian_improvement_agrees_with_monte_carlo(known):
    """With a modelled objective, and with a known one as in the paper."""
    problem = cm.Problem(
        LINE,
        minimize="f",
        constraints=["c >= 0", "-1 <= d <= 1"],
        known={"f": lambda params: params["x"] ** 2} if known else {},
    )
    inputs = RNG(0).random((5, 1))
    data = {
        name: Data(inputs, np.sin(4 * (i + 1) * inputs[:, 0]), np.full(5, np.nan))
        for i, name in enumerate(problem.measured)
    }
    surrogate = fit(problem, cm.Model(samples=2), data, RNG(1))
    acq_function = AugmentedLagrangian(draws=8192).build(
        surrogate, Incumbent(inputs[0], None), RNG(2)
    )
    assert isinstance(acq_function.multipliers, PenaltyState)
    functions = [surrogate.objective, *surrogate.constraints]
    draws = 200_000
    for x in (0.2, 0.55, 0.93):
        values = []
        for j in range(2):
            drawn = []
            for i, function in enumerate(functions):
                mean, variance = function.posterior.mean_variance(np.array([[x]]))
                noise = RNG([i, j]).standard_normal(draws)
                drawn.append(mean[j, 0] + math.sqrt(variance[j, 0]) * noise)
            lagrangian = acq_function.multipliers.lagrangian(drawn[0], slacks_of(surrogate, drawn))
            values.append(np.maximum(acq_function.best - lagrangian, 0.0))
        expected, error = np.mean(values), np.std(values) / math.sqrt(2 * draws)
        # Softening adds at most 1e-3 · log 2.
        found = math.exp(acq_function.value(np.array([[x]]))[0])
        assert (
            -4 * error - 1e-3 * expected <= found - expected <= 4 * error + 0.01 * expected + 7e-4
        )


# -- derivatives of all of them --------------------------------------------------------------------


@pytest.mark.parametrize("method", [IECI(60), EV(40), AugmentedLagrangian()])
@pytest.mark.parametrize("constraints", [[], ["c >= 0"], ["c >= 0", "-1 <= d <= 1"]])
def test_gradients_match_finite_differences(method, constraints):
    surrogate = surrogate_of(constraints, samples=3)
    for objective in (-0.2, None):
        acq_function = method.build(surrogate, Incumbent(np.array([0.3, 0.6]), objective), RNG(3))
        x = RNG(4).uniform(0.05, 0.95, (12, 2))
        value, gradient = acq_function.value_gradient(x)
        assert np.allclose(value, acq_function.value(x), rtol=1e-9, atol=1e-15)
        expected = derivatives(acq_function.value, x)
        size = np.abs(expected).max()
        assert np.allclose(gradient, expected, rtol=1e-4, atol=1e-5 * size)


# -- entropy by Monte Carlo, and the two stages -----------------------------------------------


def test_entropy_of_two_independent_places_can_be_worked_out():
    """Finding y at one of two places leaves a coin with chance Φ(y): on average ½ nat."""
    problem = cm.Problem(LINE, minimize="f")
    model = cm.Model(kernel="se", lengthscale=0.01, amplitude=1.0, noise_variance=1e-9)
    surrogate = fit(problem, model, {"f": Data.empty(1)}, RNG(0))
    places = np.array([[0.1], [0.9]])
    nodes, chances = np.polynomial.hermite_e.hermegauss(40)
    draws = 20_000
    acq_function = EntropyReduction(
        surrogate, places, RNG(1).standard_normal((draws, 1, 4)), nodes, chances / chances.sum()
    )
    assert acq_function.contributions(places[:1])[0, 0] == pytest.approx(
        math.log(2) - 0.5, abs=0.01
    )
    assert acq_function.contributions(np.array([[0.5]]))[0, 0] == pytest.approx(0.0, abs=1e-6)


def test_monte_carlo_entropy_agrees_with_rejection_sampling():
    """The same information seen from the other side: H[y] − H[y | x*] on a grid."""
    surrogate = surrogate_of(["c >= 0"], samples=1, space=LINE, count=3)
    grid = np.linspace(0.05, 0.95, 10)[:, None]
    truth = grid_gains(surrogate, grid, 200_000, RNG(0)).gains
    nodes, chances = np.polynomial.hermite_e.hermegauss(15)
    normals = RNG(1).standard_normal((4000, 2, 12))
    acq_function = EntropyReduction(surrogate, grid, normals, nodes, chances / chances.sum())
    found = acq_function.contributions(grid)
    # Rejection sampling takes what is left for normal, which overstates its entropy.
    assert np.corrcoef(found.ravel(), truth.ravel())[0, 1] > 0.97
    assert np.all(found > truth - 0.03)
    assert np.all(found < 1.4 * truth + 0.03)


@pytest.mark.parametrize("entropy", ["pesc", "monte carlo"])
def test_expected_improvement_chooses_the_input_and_information_the_task(entropy):
    surrogate = surrogate_of(["c >= 0"], samples=2, space=LINE)
    incumbent = Incumbent(np.array([0.4]), -0.2)
    acq_function = EICD(entropy).build(surrogate, incumbent, RNG(0))
    contenders = [
        Competitor("f", np.array([1.0, 0.0]), FixedCost(1.0)),
        Competitor("c", np.array([0.0, 1.0]), FixedCost(2.0)),
    ]
    near = incumbent.point[None]
    found = maximise(acq_function, contenders, surrogate.problem.space, near, RNG(1))
    everything = [Competitor("all", np.ones(1), FixedCost(1.0))]
    (best,) = maximise(
        acq_function.input_chooser, everything, surrogate.problem.space, near, RNG(1)
    )
    gains = acq_function.task_chooser.contributions(best.point[None])[0]
    for each, gain, cost in zip(found, gains, (1.0, 2.0), strict=True):
        assert np.array_equal(each.point, best.point)
        assert each.score == pytest.approx(gain / cost)


def test_unknown_entropies_are_refused():
    with pytest.raises(cm.ProblemError, match="'monte carlo'"):
        EICD("montecarlo")


# -- Thompson sampling ------------------------------------------------------------------------


def test_thompson_points_are_where_the_optimum_may_be():
    """As often in each third of the line as draws on a grid have their optimum there."""
    surrogate = surrogate_of(["c >= 0"], samples=2, space=LINE, count=4)
    grid = np.linspace(0.0, 1.0, 61)[:, None]
    cells = np.mean(
        [grid_gains(surrogate, grid, 40_000, RNG(0), j).cells for j in range(2)], axis=0
    )
    draws = 300
    rng = RNG(5)
    incumbent = Incumbent(np.array([0.5]), None)
    points = [Thompson().build(surrogate, incumbent, rng).finite_set[0, 0] for _ in range(draws)]
    edges = [0, 1 / 3, 2 / 3, 1.000001]
    found = np.histogram(points, edges)[0] / draws
    expected = np.histogram(grid[:, 0], edges, weights=cells)[0]
    assert np.all(np.abs(found - expected) < 4 * np.sqrt(expected * (1 - expected) / draws) + 0.03)


# -- what a review found ----------------------------------------------------------------------


def hidden_bump(method, tasks):
    """Feasible only in a narrow bump that no early input meets."""
    problem = cm.Problem(LINE, minimize="f", constraints=["c >= 0"], tasks=tasks)
    model = cm.Model(hyperparameters="map", noise_variance=1e-8)
    optimizer = cm.Optimizer(problem, method, model, seed=1)
    jobs = []
    for _ in range(14):
        jobs.append(optimizer.ask())
        x = jobs[-1].params["x"]
        values = {"f": x, "c": -0.4 + math.exp(-(((x - 0.93) / 0.03) ** 2)) + 0.05 * x}
        measures = problem.tasks[jobs[-1].task].measures
        optimizer.tell(jobs[-1], {name: values[name] for name in measures})
    return jobs


def test_original_entropy_looks_for_feasible_inputs():
    """Where nothing seems to tell anything, the task that is known least is chosen."""
    tasks = {name: cm.Task(measures=[name]) for name in ("f", "c")}
    jobs = hidden_bump(EICD(MonteCarloEntropy(20, 200, 5)), tasks)
    assert sum(job.task == "c" for job in jobs[-8:]) >= 3
    assert len({job.params["x"] for job in jobs[-8:]}) >= 3


@pytest.mark.parametrize("method", [RS(60, 2000), RSDG(30, 2000), EV(), IECI()])
def test_without_feasible_draws_the_search_goes_on(method):
    problem = cm.Problem(
        {"x": cm.Real(0, 1), "y": cm.Real(0, 1)}, minimize="f", constraints=["c >= 0"]
    )
    model = cm.Model(hyperparameters="map", noise_variance=1e-8)
    optimizer = cm.Optimizer(problem, method, model, seed=0)
    for _ in range(8):
        job = optimizer.ask()
        x, y = job.params["x"], job.params["y"]
        optimizer.tell(job, {"f": x, "c": -5 - 0.3 * math.sin(3 * x) + y})
    chosen = [tuple(record.params.values()) for record in optimizer.history[-5:]]
    assert len(set(chosen)) == 5
    assert all(decision.warnings == () for decision in optimizer.decisions)


@pytest.mark.parametrize("name", ["pesc", "eic", "ieci", "ev", "auglag", "thompson"])
def test_of_two_tasks_that_tell_the_same_the_cheaper_wins(name):
    tasks = {
        "dear": cm.Task(measures=["f", "c"], cost=100),
        "cheap": cm.Task(measures=["f", "c"], cost=1),
    }
    assert {job.task for job in hidden_bump(name, tasks)[4:]} == {"cheap"}


def test_ieci_refuses_a_known_objective():
    problem = cm.Problem(
        LINE, minimize="f", constraints=["c >= 0"], known={"f": lambda params: params["x"]}
    )
    with pytest.raises(cm.ProblemError, match="'f' is known"):
        cm.Optimizer(problem, "ieci")


def test_an_acquisition_function_has_the_incumbent_of_its_own_method():
    optimizers = [cm.Optimizer(toy().coupled().problem, name, seed=0) for name in ("pesc", "eic")]
    for optimizer in optimizers:
        for point in RNG(0).random((12, 2)):
            params = {"x1": float(point[0]), "x2": float(point[1])}
            optimizer.add(params, toy().evaluate(params))
    one, other = (optimizer.acquisition_function("eic") for optimizer in optimizers)
    assert one.incumbent.objective == pytest.approx(other.incumbent.objective, abs=1e-6)
    # Also for problems whose functions are measured separately.
    assert np.isfinite(
        cm.Optimizer(toy().problem).acquisition_function("ev").value(np.full((1, 2), 0.5))
    )


def test_problems_that_are_coupled_keep_their_costs_and_capacities():
    problem = cm.Problem(
        LINE,
        minimize="f",
        tasks={"all": cm.Task(measures=["f"], cost=7)},
        resources={"gpu": 4},
    )
    assert cm.Optimizer(problem, "eic", couple=True).problem == problem


def test_more_cost_is_no_excuse_for_less_than_nothing():
    class Worse(AcquisitionFunction):
        def value(self, x):
            return np.full(len(x), -0.1)

        def value_gradient(self, x):
            return self.value(x), np.zeros_like(x)

    contenders = [Competitor(str(cost), np.ones(1), FixedCost(cost)) for cost in (1.0, 100.0)]
    found = maximise(Worse(), contenders, Space(LINE), np.full((1, 1), 0.5), RNG(0))
    assert max(found, key=lambda each: each.score).task == "1.0"
