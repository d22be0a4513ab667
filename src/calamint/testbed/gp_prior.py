"""Random problems: smooth functions drawn from a Gaussian process prior, solved by dense search."""

import numpy as np

from calamint.arrays import Array
from calamint.problem import Problem, Real, Task
from calamint.testbed.solved import Function, SolvedProblem

_JITTER = 1e-8  # relative to the prior variance; keeps 1000 close points factorisable
_MOST_DRAWS = 1000


def gp_prior(
    dimension: int,
    seed: int,
    constraints: int = 1,
    lengthscale: float = 0.1,
    amplitude: float = 1.0,
    noise_std: float = 0.1,
    centres: int = 1000,
) -> SolvedProblem:
    """A draw with squared exponential covariance, as in Hernández-Lobato et al. 2016, 6.1 and 6.2.

    Each function is the posterior mean of a draw at `centres` Halton points of the unit cube;
    constraints are c >= 0. Draws without a feasible point are drawn again. `noise_std` is that
    of a measurement.
    """
    from scipy.stats import qmc

    points = qmc.Halton(dimension, scramble=False).random(centres)
    root = np.linalg.cholesky(_kernel(points, points, lengthscale) + _JITTER * np.eye(centres))
    grid = np.vstack([points, qmc.Halton(dimension, rng=np.random.default_rng(0)).random(20_000)])
    names = ["f", *_constraint_names(constraints)]
    rng = np.random.default_rng(seed)
    for _ in range(_MOST_DRAWS):
        draws = {}
        for name in names:
            # With K = L Lᵀ and values L z, the weights K⁻¹ L z are L⁻ᵀ z.
            weights = np.linalg.solve(root.T, rng.standard_normal(centres))
            draws[name] = _Draw(points, amplitude * weights, lengthscale)
        solution = _solve(draws, grid)
        if solution is not None:
            break
    else:
        raise RuntimeError(
            f"none of {_MOST_DRAWS} draws with {constraints} constraints is feasible"
        )
    functions: dict[str, Function] = dict(draws)
    return SolvedProblem(
        f"gp_prior_{dimension}d",
        Problem(
            space={f"x{i + 1}": Real(0, 1) for i in range(dimension)},
            minimize="f",
            constraints=[f"{name} >= 0" for name in names[1:]],
            tasks={name: Task(name) for name in names},
        ),
        functions,
        solution={f"x{i + 1}": float(value) for i, value in enumerate(solution)},
        optimum=float(draws["f"](solution)),
        worst=float(_highest(draws["f"], grid)),
        noise_std=noise_std,
    )


def _constraint_names(count: int) -> list[str]:
    return ["c"] if count == 1 else [f"c{i + 1}" for i in range(count)]


def _kernel(a: Array, b: Array, lengthscale: float) -> Array:
    """(N, d), (M, d) -> (N, M)"""
    squared = (a**2).sum(-1)[:, None] + (b**2).sum(-1) - 2 * a @ b.T
    return np.exp(-0.5 * np.maximum(squared, 0.0) / lengthscale**2)


class _Draw:
    """x -> Σ_i w_i k(x, z_i), with its gradient."""

    def __init__(self, centres: Array, weights: Array, lengthscale: float) -> None:
        self.centres, self.weights, self.lengthscale = centres, weights, lengthscale

    def __call__(self, x: Array) -> Array:
        flat = np.asarray(x, dtype=float).reshape(-1, self.centres.shape[1])
        values: Array = _kernel(flat, self.centres, self.lengthscale) @ self.weights
        return values.reshape(np.shape(x)[:-1])

    def gradient(self, x: Array) -> Array:
        """(d,) -> (d,)"""
        terms = _kernel(x[None], self.centres, self.lengthscale)[0] * self.weights
        return terms @ (self.centres - x) / self.lengthscale**2


def _solve(draws: dict[str, _Draw], grid: Array, starts: int = 10) -> Array | None:
    """The best feasible point of a dense search, polished; None when no grid point is feasible."""
    from scipy.optimize import minimize

    objective, *limits = draws.values()
    feasible = np.all([limit(grid) >= 0 for limit in limits], axis=0) if limits else slice(None)
    candidates = grid[feasible]
    if len(candidates) == 0:
        return None
    values = objective(candidates)
    best: Array = candidates[np.argmin(values)]
    best_value = values.min()
    conditions = [{"type": "ineq", "fun": c, "jac": c.gradient} for c in limits]
    for start in candidates[np.argsort(values)[:starts]]:
        found = minimize(
            objective,
            start,
            jac=objective.gradient,
            method="SLSQP",
            bounds=[(0, 1)] * grid.shape[1],
            constraints=conditions,
            options={"ftol": 1e-12, "maxiter": 200},
        ).x.clip(0, 1)
        # The polished point must itself be feasible: step back towards the start if it is not.
        for share in (0.0, 1e-9, 1e-6, 1e-4):
            point = found + share * (start - found)
            if all(c(point) >= 0 for c in limits) and objective(point) < best_value:
                best, best_value = point, objective(point)
                break
    return best


def _highest(objective: _Draw, grid: Array, starts: int = 5) -> float:
    from scipy.optimize import minimize

    values = objective(grid)
    found = [
        minimize(
            lambda x: -objective(x),
            start,
            jac=lambda x: -objective.gradient(x),
            method="L-BFGS-B",
            bounds=[(0, 1)] * grid.shape[1],
        ).fun
        for start in grid[np.argsort(-values)[:starts]]
    ]
    return float(max(values.max(), -min(found)))
