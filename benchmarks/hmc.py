"""Hamiltonian Monte Carlo for a logistic regression, and diagnostics of what it draws.

The data are scikit-learn's breast cancer data, four features of which are standardised; the prior
of every coefficient is normal with standard deviation one. A run has a budget of gradients, not of
seconds, so it does not depend on the machine. Diagnostics follow Geyer (1992), Gelman and Rubin
(1992) and Geweke (1992).
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calamint import Integer, Real
from calamint.problem import Parameter

Array = NDArray[np.float64]
SPACE: dict[str, Parameter] = {
    "leapfrog_steps": Integer(1, 100, log=True),
    "step_size": Real(1e-3, 1.0, log=True),
    "mass": Real(0.1, 10.0, log=True),
    "burn_in": Real(0.02, 0.8),
}
GRADIENTS = 10_000  # of each chain
CHAINS = 2
# Mean radius, texture, smoothness and symmetry. The worst of many |z| is above two even if all
# draws are independent: of these five coefficients in two chains it is not.
FEATURES = [0, 1, 4, 8]
DIVERGED = 1000.0  # a step whose energy is wrong by so much


@cache
def data() -> tuple[Array, Array]:
    """Features (n, D), the first constant, and outcomes (n,) of −1 and 1."""
    from sklearn.datasets import load_breast_cancer

    features, outcomes = load_breast_cancer(return_X_y=True)
    features = features[:, FEATURES]
    features = (features - features.mean(0)) / features.std(0)
    return np.column_stack([np.ones(len(features)), features]), 2.0 * outcomes - 1.0


def energy_gradient(coefficients: Array) -> tuple[Array, Array]:
    """The negative log posterior (k,) of coefficients (k, D), and its gradient (k, D)."""
    features, outcomes = data()
    margins = outcomes[:, None] * (features @ coefficients.T)
    energy = np.logaddexp(0, -margins).sum(0) + 0.5 * (coefficients**2).sum(1)
    pull = outcomes[:, None] / (1 + np.exp(np.clip(margins, -500, 500)))
    return energy, coefficients - pull.T @ features


class DivergenceError(ArithmeticError):
    """The integrator became unstable."""


def chains(params: Mapping[str, Any], seed: int, gradients: int = GRADIENTS) -> Array:
    """(chains, draws, D) after the burn-in.

    Raises:
        DivergenceError: If a trajectory's energy changed by more than 1,000.
    """
    rng = np.random.default_rng(seed)
    dimension = data()[0].shape[1]
    steps, size, mass = params["leapfrog_steps"], params["step_size"], params["mass"]
    position = 1e-3 * rng.standard_normal((CHAINS, dimension))
    energy, slope = energy_gradient(position)
    draws = []
    for _ in range(gradients // steps):
        momentum = np.sqrt(mass) * rng.standard_normal(position.shape)
        before = energy + 0.5 * (momentum**2).sum(1) / mass
        moved, moved_slope = position, slope
        moving = momentum - 0.5 * size * moved_slope
        for step in range(steps):
            moved = moved + size * moving / mass
            moved_energy, moved_slope = energy_gradient(moved)
            moving = moving - (1.0 if step < steps - 1 else 0.5) * size * moved_slope
        after = moved_energy + 0.5 * (moving**2).sum(1) / mass
        if not np.all(np.abs(after - before) < DIVERGED):
            raise DivergenceError(f"the energy changed by {np.abs(after - before).max():.3g}")
        accepted = np.log(rng.random(CHAINS)) < before - after
        position = np.where(accepted[:, None], moved, position)
        slope = np.where(accepted[:, None], moved_slope, slope)
        energy = np.where(accepted, moved_energy, energy)
        draws.append(position)
    return np.stack(draws[int(params["burn_in"] * len(draws)) :], axis=1)


def effective_sample_size(draws: Array) -> float:
    """Of chains (m, n): how many independent draws know the mean as well.

    Each chain is split in two; autocorrelations are summed in pairs while these are positive, and
    made to decrease (Geyer's initial monotone sequence).
    """
    half = draws.shape[1] // 2
    draws = np.concatenate([draws[:, :half], draws[:, -half:]])
    count, length = draws.shape
    if length < 4 or np.ptp(draws) == 0:
        return float(count * length)
    covariances = np.stack([_autocovariance(chain) for chain in draws])
    within = covariances[:, 0].mean() * length / (length - 1)
    variance = within * (length - 1) / length
    if count > 1:
        variance += draws.mean(1).var(ddof=1)
    correlations = 1 - (within - covariances.mean(0)) / variance
    correlations[0] = 1.0
    pairs = correlations[: 2 * ((length - 1) // 2)].reshape(-1, 2).sum(1)
    stops = np.flatnonzero(pairs <= 0)
    last = stops[0] if len(stops) else len(pairs) - 1
    # Half of the pair at which it stops, if that is positive, makes up for stopping early.
    rest = max(correlations[2 * last], 0.0)
    pairs = np.minimum.accumulate(pairs[:last])
    time = max(-1 + 2 * pairs.sum() + rest, 1 / np.log10(count * length))
    return float(count * length / time)


def _autocovariance(chain: Array) -> Array:
    length = len(chain)
    padded = np.fft.rfft(chain - chain.mean(), 2 * length)
    return np.asarray(np.fft.irfft(padded * padded.conj())[:length] / length)


def gelman_rubin(draws: Array) -> float:
    """R̂ of chains (m, n)."""
    length = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean()
    between = draws.mean(1).var(ddof=1)
    if within == 0:
        return 1.0 if between == 0 else np.inf
    return float(np.sqrt((length - 1) / length + between / within))


def geweke(chain: Array) -> float:
    """How many standard errors the means of the first tenth and the last half of (n,) differ by."""
    first, last = chain[: len(chain) // 10], chain[-(len(chain) // 2) :]
    variance = sum(part.var() / effective_sample_size(part[None]) for part in (first, last))
    difference = first.mean() - last.mean()
    if variance == 0:
        return 0.0 if difference == 0 else np.inf
    return float(difference / np.sqrt(variance))


def diagnose(params: Mapping[str, Any], seed: int) -> dict[str, float]:
    """The least effective sample size, the worst |z| of Geweke and the worst R̂ of a run."""
    drawn = chains(params, seed)
    names = range(drawn.shape[2])
    if drawn.shape[1] < 20:
        return {"ess": 1.0, "geweke": 10.0, "r_hat": 10.0}
    scores = [geweke(chain[:, name]) for chain in drawn for name in names]
    return {
        "ess": min(effective_sample_size(drawn[:, :, name]) for name in names),
        "geweke": min(10.0, max(abs(score) for score in scores)),
        "r_hat": min(10.0, max(gelman_rubin(drawn[:, :, name]) for name in names)),
    }
