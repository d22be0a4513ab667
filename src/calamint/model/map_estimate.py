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

from calamint.arrays import Array, Mask
from calamint.model.hyperparameters import NOISE, Prior
from calamint.model.likelihood import Likelihood

_SCREENED = 16
_DECIDED = 50
_FEW = 3
_EXACTLY = {"maxfun": 60, "ftol": 1e-6}
_ROUGHLY = {"maxfun": 15, "ftol": 1e-3}


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
    roughly: bool = False,
) -> Array:
    """(k, P + 3) different local optima over θ, the best first.

    There are two starts, because data can be explained as signal or as noise: the best of some
    prior draws, the prior's centre and `warm` (m, P + 3), the answers of earlier fits, on either
    side of a noise variance of a thousandth. If earlier answers have settled which side it is, only
    they are started from; with `roughly`, a point close to the optimum will do then.
    """
    from scipy.optimize import minimize

    if not prior.free.any():
        return prior.fixed[None]
    candidates = [prior.complete(prior.centre[prior.free])[None], prior.draw(_SCREENED, rng)]
    settled = warm is not None and _agree(likelihood, warm)
    if warm is not None and len(warm):
        candidates = [warm] if settled else [*candidates, warm]
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
    noisy = _is_noise(pool)
    sides = [np.flatnonzero(side) for side in (noisy, ~noisy) if side.any()]
    for index in (side[np.argmax(scores[side])] for side in sides):
        result = minimize(
            loss,
            (pool[index][prior.free] - centre) / spread,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options=_ROUGHLY if roughly and settled else _EXACTLY,
        )
        if np.all(np.isfinite(result.x)):
            found.append((float(result.fun), result.x))
    found.sort(key=lambda pair: pair[0])
    if not found:
        return pool[np.argsort(-scores)[:1]]
    distinct = [found[0][1]]
    distinct += [x for _, x in found[1:] if np.max(np.abs(x - distinct[0])) > 0.1]
    return prior.complete(centre + spread * np.array(distinct))


def _is_noise(theta: Array) -> Mask:
    """(m, P + 3) -> (m,) whether data are explained as noise, more than as signal."""
    return theta[:, NOISE] > math.log(1e-3)


def _agree(likelihood: Likelihood, warm: Array) -> bool:
    """Whether earlier answers have settled what is noise: after much data, if all agree."""
    noisy = _is_noise(warm)
    enough = len(warm) >= _FEW and len(likelihood.data) >= _DECIDED
    return enough and bool(noisy.all() or not noisy.any())
