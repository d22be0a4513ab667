"""The most probable hyper-parameters: several starts, analytic gradients.

| symbol | code | shape | meaning |
|---|---|---|---|
| θ | `theta` | (m, P + 3) | hyper-parameters |
| log p(y given θ) + log p(θ) | `log_posterior` | (m,) | up to a constant |
| (θ − centre) / spread | `scaled` | (F,) | coordinates in which it is maximised |
"""

import math
from collections.abc import Callable

import numpy as np

from calamint.arrays import Array
from calamint.model.hyperparameters import NOISE, Prior
from calamint.model.likelihood import Likelihood

_DECIDED = 50


def log_posterior(likelihood: Likelihood, prior: Prior, theta: Array) -> Array:
    """(m, P + 3) -> (m,) log likelihood plus log prior, up to a constant."""
    density = prior.log_density(theta)
    inside = np.isfinite(density)
    if inside.any():
        density[inside] += likelihood.log_likelihood(theta[inside])
    return density


def _loss(
    likelihood: Likelihood, prior: Prior, use_prior: bool
) -> Callable[[Array], tuple[float, Array]]:
    """−log posterior and its gradient, of free entries in units of the prior's spread (F,)."""
    centre, spread = prior.centre[prior.free], prior.spread[prior.free]

    def loss(scaled: Array) -> tuple[float, Array]:
        theta = prior.complete(centre + spread * scaled)
        value, gradient = likelihood.log_likelihood_gradient(theta)
        derivative = spread * gradient[prior.free]
        if use_prior:
            value -= 0.5 * float(scaled @ scaled)
            derivative -= scaled
        return -value, -derivative

    return loss


def _bounds(prior: Prior) -> Array:
    """(F, 2) of the free entries, in units of the prior's spread."""
    ends = np.stack([prior.low, prior.high], axis=-1)[prior.free]
    return (ends - prior.centre[prior.free][:, None]) / prior.spread[prior.free][:, None]


def refined(
    likelihood: Likelihood, prior: Prior, theta: Array, evaluations: int
) -> tuple[float, Array]:
    """The log posterior after a few steps uphill from θ (P + 3,), and where they led."""
    from scipy.optimize import minimize

    centre, spread = prior.centre[prior.free], prior.spread[prior.free]
    if not prior.free.any():
        return float(log_posterior(likelihood, prior, theta[None])[0]), theta
    result = minimize(
        _loss(likelihood, prior, use_prior=True),
        (theta[prior.free] - centre) / spread,
        jac=True,
        method="L-BFGS-B",
        bounds=_bounds(prior),
        options={"maxfun": evaluations, "ftol": 1e-4},
    )
    return -float(result.fun), prior.complete(centre + spread * result.x)


def most_probable(
    likelihood: Likelihood,
    prior: Prior,
    rng: np.random.Generator,
    warm: Array | None = None,
    use_prior: bool = True,
) -> Array:
    """(P + 3,) the θ of highest posterior density, or of highest likelihood without the prior."""
    best: Array = local_optima(likelihood, prior, rng, warm, use_prior)[0]
    return best


def local_optima(
    likelihood: Likelihood,
    prior: Prior,
    rng: np.random.Generator,
    warm: Array | None = None,
    use_prior: bool = True,
    screened: int = 16,
) -> Array:
    """(k, P + 3) different local optima over θ, the best first.

    There are two starts, because data can be explained as signal or as noise: the best of
    `screened` prior draws, the prior's centre and `warm` (m, P + 3), the answers of earlier fits,
    on either side of a noise variance of a thousandth.
    """
    from scipy.optimize import minimize

    if not prior.free.any():
        return prior.fixed[None]
    candidates = [prior.complete(prior.centre[prior.free])[None], prior.draw(screened, rng)]
    if warm is not None and len(warm):
        candidates.append(warm)
    pool = np.clip(np.vstack(candidates), prior.low, prior.high)
    pool = np.where(prior.free, pool, prior.fixed)
    if len(likelihood.data) == 0:
        return pool[:1]
    scores = (
        log_posterior(likelihood, prior, pool) if use_prior else likelihood.log_likelihood(pool)
    )
    # In units of the prior's spread all directions matter alike: fewer steps than in θ itself.
    centre, spread = prior.centre[prior.free], prior.spread[prior.free]
    bounds = _bounds(prior)

    loss = _loss(likelihood, prior, use_prior)
    found = []
    noisy = pool[:, NOISE] > math.log(1e-3)
    if warm is not None and len(warm) >= 5 and len(likelihood.data) >= _DECIDED:
        # After this much data, chains that all agree have settled which side it is.
        agreed = noisy[-len(warm) :]
        if agreed.all() or not agreed.any():
            pool, scores, noisy = pool[-len(warm) :], scores[-len(warm) :], agreed
    sides = [np.flatnonzero(side) for side in (noisy, ~noisy) if side.any()]
    for index in (side[np.argmax(scores[side])] for side in sides):
        result = minimize(
            loss,
            (pool[index][prior.free] - centre) / spread,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxfun": 60, "ftol": 1e-6},
        )
        if np.all(np.isfinite(result.x)):
            found.append((float(result.fun), result.x))
    found.sort(key=lambda pair: pair[0])
    if not found:
        return pool[np.argsort(-scores)[:1]]
    distinct = [found[0][1]]
    distinct += [x for _, x in found[1:] if np.max(np.abs(x - distinct[0])) > 0.1]
    return prior.complete(centre + spread * np.array(distinct))
