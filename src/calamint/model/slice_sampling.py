"""Drawing hyper-parameters from their posterior: elliptical slice sampling, many chains at once.

The posterior is close to normal in log space near each of its modes, but narrower than the prior in
some directions by orders of magnitude, and often has a second mode (the data are noise, or they are
signal). So steps take turns between ellipses: those of a Student t fitted at each mode, which move
far within it, and those of the prior, which move between them (Nishihara, Murray, Adams, 2014:
generalised elliptical slice sampling). Every one of them leaves the posterior itself as the
stationary distribution, and needs a few likelihoods a step, in any dimension.

| symbol | code | shape | meaning |
|---|---|---|---|
| θ | `chains`, `free` | (m, F) | free entries of the hyper-parameters, one row for each chain |
| log p(θ given y) | `level`, `log_density` | (m,) | log posterior, up to a constant |
| c + R w | `Ellipse` | (F,), (F, F) | centre and root of a Student t; w is `white` |
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.arrays import Array
from calamint.model.cholesky import factorise
from calamint.model.hyperparameters import Prior
from calamint.model.likelihood import Likelihood
from calamint.model.map_estimate import local_optima, log_posterior

# After little new data, after more, and from nowhere. Consecutive decisions' draws then have
# correlations of 0.1 to 0.6 in what the data determine.
FEW_STEPS = 4
WARM_STEPS = 10
COLD_STEPS = 20

_DEGREES = 6.0
_MOST_SHRINKS = 20
_JUMP_SHRINKS = 6
_POOL = 60


@final
@dataclass(frozen=True)
class Ellipse:
    """A Student t over the free entries of θ: centre + root·w, with w standard."""

    centre: Array
    root: Array

    def unwhiten(self, white: Array) -> Array:
        """(m, F) w -> (m, F) free θ"""
        return self.centre + white @ self.root.T

    def whiten(self, free: Array) -> Array:
        return np.asarray(np.linalg.solve(self.root, (free - self.centre).T).T, dtype=float)

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """(count, F)"""
        stretch = np.sqrt(_DEGREES / rng.chisquare(_DEGREES, (count, 1)))
        return self.unwhiten(stretch * rng.standard_normal((count, len(self.centre))))

    def log_density(self, free: Array) -> Array:
        """(m, F) -> (m,) up to a constant that all ellipses share"""
        return self.log_density_white(self.whiten(free)) - np.linalg.slogdet(self.root)[1]

    def log_density_white(self, white: Array) -> Array:
        """The same in standard coordinates, up to a constant of this ellipse."""
        exponent = 0.5 * (_DEGREES + white.shape[1])
        return -exponent * np.log1p((white**2).sum(-1) / _DEGREES)


def ellipse_at(likelihood: Likelihood, prior: Prior, mode: Array) -> Ellipse:
    """The curvature of the log posterior at its mode, never wider than the prior."""
    free = np.flatnonzero(prior.free)
    hessian = np.zeros((len(free), len(free)))
    step = 1e-3
    for row, entry in enumerate(free):
        shift = np.zeros_like(mode)
        shift[entry] = step
        _, above = likelihood.log_likelihood_gradient(mode + shift)
        _, below = likelihood.log_likelihood_gradient(mode - shift)
        hessian[row] = -(above - below)[free] / (2 * step)
    spread = prior.spread[free]
    # In units of the prior's spread the prior adds the identity; directions in which the
    # likelihood curves upwards keep the prior's width.
    scaled = 0.5 * (hessian + hessian.T) * np.outer(spread, spread)
    values, vectors = np.linalg.eigh(np.nan_to_num(scaled))
    widths = 1 / np.sqrt(1 + np.maximum(values, 0.0))
    return Ellipse(mode[free], spread[:, None] * vectors * widths)


def draw_samples(
    likelihood: Likelihood,
    prior: Prior,
    count: int,
    rng: np.random.Generator,
    warm: Array | None = None,
    steps: int | None = None,
) -> Array:
    """(count, P + 3) draws from the posterior, each from a chain of its own.

    Chains start at `warm` (m, P + 3), the last draws; without them, at draws weighted by
    importance, and then they run longer.
    """
    if not prior.free.any():
        return np.repeat(prior.fixed[None], count, axis=0)
    if len(likelihood.data) == 0:
        return prior.draw(count, rng)
    modes = local_optima(likelihood, prior, rng, warm, roughly=warm is not None)
    ellipses = [ellipse_at(likelihood, prior, mode) for mode in modes]
    wide = Ellipse(prior.centre[prior.free], np.diag(prior.spread[prior.free]))

    def log_density(free: Array) -> Array:
        """(m, F) -> (m,) log posterior"""
        return log_posterior(likelihood, prior, prior.complete(free))

    if warm is not None and len(warm):
        chains = warm[np.arange(count) % len(warm)][:, prior.free]
        level = log_density(chains)
        # A chain outside the bounds has no log_density to stay above: move it to the mode.
        chains[~np.isfinite(level)] = modes[0][prior.free]
        steps = WARM_STEPS if steps is None else steps
    else:
        chains, bulk = _weighted_draws(log_density, [*ellipses, wide], count, rng)
        ellipses.append(bulk)
        steps = COLD_STEPS if steps is None else steps
    level = log_density(chains)
    jumps = True
    for step in range(steps):
        if jumps and step % 2:
            before = chains
            chains, level = _step(chains, level, wide, log_density, rng, _JUMP_SHRINKS)
            # Where the data determine so much that few chains can jump, jumps are not tried.
            jumps = bool(np.mean(np.any(chains != before, axis=1)) >= 0.5)
        else:
            ellipse = ellipses[step % len(ellipses)]
            chains, level = _step(chains, level, ellipse, log_density, rng, _MOST_SHRINKS)
    return prior.complete(chains)


def _weighted_draws(
    log_density: Callable[[Array], Array],
    ellipses: list[Ellipse],
    count: int,
    rng: np.random.Generator,
) -> tuple[Array, Ellipse]:
    """(count, F) draws in proportion to the posterior, by importance, and an ellipse of its bulk.

    The highest mode need not hold most of the mass. So a first pool, from all ellipses, finds where
    it is, and a second one is drawn there.
    """
    size = max(_POOL, count)
    pool = np.vstack([ellipse.draw(size, rng) for ellipse in ellipses])
    log_densities = log_density(pool)
    # Square roots of weights: a few draws that happen to be good must not make the ellipse thin.
    weights = np.sqrt(_importance(pool, log_densities, ellipses))
    weights /= weights.sum()
    centre = weights @ pool
    covariance = (pool - centre).T @ ((pool - centre) * weights[:, None])
    floor = 1e-3 * (ellipses[0].root @ ellipses[0].root.T)
    if not np.all(np.isfinite(covariance)):
        return pool[rng.choice(len(pool), count)], ellipses[-1]
    bulk = Ellipse(centre, factorise(covariance + floor)[0])
    more = bulk.draw(size, rng)
    pool, log_densities = np.vstack([pool, more]), np.append(log_densities, log_density(more))
    weights = _importance(pool, log_densities, [*ellipses, bulk])
    return pool[rng.choice(len(pool), count, p=weights)], bulk


def _importance(pool: Array, log_densities: Array, ellipses: list[Ellipse]) -> Array:
    """(k, F), (k,) -> (k,) posterior over the mixture of the ellipses, normalised."""
    log_weights = log_densities - np.logaddexp.reduce([e.log_density(pool) for e in ellipses])
    highest = np.max(log_weights)
    if not np.isfinite(highest):
        return np.full(len(pool), 1 / len(pool))
    weights = np.exp(log_weights - highest)
    return weights / weights.sum()


def _step(
    chains: Array,
    level: Array,
    ellipse: Ellipse,
    log_density: Callable[[Array], Array],
    rng: np.random.Generator,
    shrinks: int,
) -> tuple[Array, Array]:
    """One update of every chain: (m, F) and the log posterior there (m,), in and out.

    A chain that finds nothing within `shrinks` proposals stays: shrinking brackets are the same
    seen from either end, so giving up after a fixed number keeps the balance.
    """
    count, size = chains.shape
    white = ellipse.whiten(chains)
    stretch = 0.5 * (_DEGREES + (white**2).sum(-1)) / rng.gamma(0.5 * (_DEGREES + size), size=count)
    partner = np.sqrt(stretch)[:, None] * rng.standard_normal((count, size))
    # Slices are taken of the posterior over the ellipse's own density.
    threshold = level - ellipse.log_density_white(white) - rng.exponential(size=count)
    angle: Array = np.asarray(2 * np.pi * rng.random(count))
    left, right = angle - 2 * np.pi, angle.copy()
    moved, moved_level = chains.copy(), level.copy()
    waiting = np.arange(count)
    for _ in range(shrinks):
        turn = angle[waiting, None]
        turned = white[waiting] * np.cos(turn) + partner[waiting] * np.sin(turn)
        proposal = ellipse.unwhiten(turned)
        proposed = log_density(proposal)
        accepted = proposed - ellipse.log_density_white(turned) > threshold[waiting]
        moved[waiting[accepted]] = proposal[accepted]
        moved_level[waiting[accepted]] = proposed[accepted]
        waiting = waiting[~accepted]
        if len(waiting) == 0:
            break
        behind = angle[waiting] < 0
        left[waiting[behind]] = angle[waiting[behind]]
        right[waiting[~behind]] = angle[waiting[~behind]]
        angle[waiting] = rng.uniform(left[waiting], right[waiting])
    return moved, moved_level
