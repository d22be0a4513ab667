"""EP in difference space: Gaussian sites that stand for "x* is the solution" (Hernández-Lobato
et al. 2016, appendices A and B).

The factor Ψ(z) touches the objective only through g = f(z) − f(x*), so its site is a scalar on g.
The constraints have scalar sites on c_k(z) and, for Γ, on c_k(x*). Every block is then "Gaussian
times diagonal sites", the shape of EP for classification:

    V = L T⁻¹ Lᵀ,   T = I + Lᵀ diag(a) L,   m = μ + V (b − a∘μ),   G = L Lᵀ

| symbol | code | shape | meaning |
|---|---|---|---|
| J | | | solutions drawn |
| S, K | | | site points, constraints |
| G, μ | `covariance`, `mean` | (J, 1 + K, B, B), (J, 1 + K, B) | prior of a block, B = S + 1 |
| a, b | `precision`, `shift` | (J, 1 + K, B) | natural parameters of the sites |

Block 0 is the objective's (its last entry is unused), block k that of c_k (its last entry is x*).
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.acquire.pesc.factors import Limits, gamma, psi
from calamint.arrays import Array, Index, Mask

_TOLERANCE = 1e-4
_MOST_SWEEPS = 200
_SMALLEST_STEP = 1e-4
_CLEAR = 1e-2


@final
@dataclass(frozen=True)
class Blocks:
    """What is believed of the site variables before conditioning on x*.

    active  (J, S) False where a site point coincides with x*, and says nothing
    """

    mean: Array
    covariance: Array
    limits: Limits
    active: Mask


@final
@dataclass(frozen=True)
class Sites:
    """The converged sites, the posterior of the blocks under them, and how it went.

    mean (J, 1 + K, B), covariance (J, 1 + K, B, B); sweeps (J,), converged (J,)
    """

    precision: Array
    shift: Array
    mean: Array
    covariance: Array
    sweeps: "np.ndarray[tuple[int, ...], np.dtype[np.int_]]"
    converged: Mask


def widened(last: Sites, count: int) -> tuple[Array, Array]:
    """Precisions and shifts of the last sites for more site points, which start at zero."""
    more = count + 1 - last.precision.shape[-1]
    padding = [(0, 0), (0, 0), (0, more)]
    wide = [np.pad(last.precision, padding), np.pad(last.shift, padding)]
    for array in wide:
        # The last entry is that of x*, behind all site points.
        array[..., -1] = array[..., -1 - more]
        if more:
            array[..., -1 - more] = 0.0
    return wide[0], wide[1]


def propagate(
    blocks: Blocks, start: tuple[Array, Array] | None = None, most_sweeps: int = _MOST_SWEEPS
) -> Sites:
    """Run EP on every solution at once; each converges, is damped and gives up on its own.

    `start` gives precisions and shifts to begin from, such as those of the last decision; where
    they are not proper, that solution begins anew. A solution that runs into improper cavities, as
    negative precisions close to x* can make them, is done again with precisions that are not
    negative.
    """
    sites = _run(blocks, start, -np.inf, most_sweeps)
    if most_sweeps < _MOST_SWEEPS:
        return sites
    stuck = np.flatnonzero(~sites.converged)
    if len(stuck) == 0:
        return sites
    again = _run(_take(blocks, stuck), None, 0.0, most_sweeps)
    better = again.converged
    merged = {}
    for name in ("precision", "shift", "mean", "covariance", "sweeps", "converged"):
        merged[name] = getattr(sites, name).copy()
        merged[name][stuck[better]] = getattr(again, name)[better]
    merged["sweeps"][stuck] = sites.sweeps[stuck] + again.sweeps
    return Sites(**merged)


def _run(
    blocks: Blocks, start: tuple[Array, Array] | None, lowest: float, most_sweeps: int
) -> Sites:
    count = len(blocks.mean)
    root = _root(blocks.covariance)
    precision, shift = np.zeros_like(blocks.mean), np.zeros_like(blocks.mean)
    mean, covariance = blocks.mean.copy(), blocks.covariance.copy()
    most = np.full(count, _MOST_SWEEPS)
    if start is not None:
        good, new_mean, new_covariance = _refresh(blocks.mean, root, *start)
        good &= _proper(start[0], new_covariance)
        most[good] = most_sweeps
        for old, new in zip(
            (precision, shift, mean, covariance), (*start, new_mean, new_covariance), strict=True
        ):
            old[good] = new[good]
    step = np.ones(count)
    last = np.full(count, np.inf)
    sweeps = np.zeros(count, dtype=int)
    converged = np.zeros(count, dtype=bool)
    waiting: Index = np.arange(count)
    while True:
        waiting = waiting[sweeps[waiting] < most[waiting]]
        if len(waiting) == 0:
            break
        at = waiting
        new_precision, new_shift, residual = _tilt(
            _take(blocks, at), precision[at], shift[at], mean[at], covariance[at], lowest
        )
        sweeps[at] += 1
        done = residual < _TOLERANCE
        converged[at[done]] = True
        # A residual that grows means that the step overshoots; one that falls, that it may grow.
        grows = residual > last[at]
        step[at] = np.where(
            grows, np.maximum(0.5 * step[at], 0.05), np.minimum(1.15 * step[at], 1.0)
        )
        last[at] = residual
        keep = ~done & np.isfinite(residual)
        at = at[keep]
        if len(at) == 0:
            waiting = at
            continue
        waiting = _move(
            blocks,
            root,
            at,
            (new_precision[keep], new_shift[keep]),
            (precision, shift, mean, covariance),
            step,
        )
    return Sites(precision, shift, mean, covariance, sweeps, converged)


def _move(
    blocks: Blocks,
    root: Array,
    at: Index,
    target: tuple[Array, Array],
    state: tuple[Array, Array, Array, Array],
    step: Array,
) -> Index:
    """Step towards the target sites, halving the step where the posterior would be improper.

    Returns which solutions can go on; the others keep their last proper state.
    """
    precision, shift, mean, covariance = state
    left = np.arange(len(at))
    going = []
    while len(left):
        where = at[left]
        share = step[where][:, None, None]
        trial_precision = share * target[0][left] + (1 - share) * precision[where]
        trial_shift = share * target[1][left] + (1 - share) * shift[where]
        good, trial_mean, trial_covariance = _refresh(
            blocks.mean[where], root[where], trial_precision, trial_shift
        )
        good &= _proper(trial_precision, trial_covariance)
        moved = where[good]
        precision[moved], shift[moved] = trial_precision[good], trial_shift[good]
        mean[moved], covariance[moved] = trial_mean[good], trial_covariance[good]
        going.append(moved)
        step[where[~good]] *= 0.5
        left = left[~good]
        left = left[step[at[left]] >= _SMALLEST_STEP]
    return np.sort(np.concatenate(going)) if going else at[:0]


def _take(blocks: Blocks, at: Index) -> Blocks:
    return Blocks(blocks.mean[at], blocks.covariance[at], blocks.limits, blocks.active[at])


def _root(covariance: Array) -> Array:
    """(…, B, B) any L with L Lᵀ = G, also of a singular G."""
    try:
        return np.asarray(np.linalg.cholesky(covariance), dtype=float)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]


def _refresh(
    prior_mean: Array, root: Array, precision: Array, shift: Array
) -> tuple[Mask, Array, Array]:
    """GPPosterior of every block under the sites; (J,) whether it is proper, mean, covariance."""
    transposed = np.swapaxes(root, -1, -2)
    inner = transposed @ (precision[..., None] * root)
    inner += np.eye(inner.shape[-1])
    inner = np.nan_to_num(inner, nan=-1.0, posinf=-1.0, neginf=-1.0)
    try:
        np.linalg.cholesky(inner)
        good = np.ones(len(inner), dtype=bool)
    except np.linalg.LinAlgError:  # which of them it was
        good = np.linalg.eigvalsh(inner)[..., 0].min(-1) > 1e-10
        inner[~good] = np.eye(inner.shape[-1])
    covariance = root @ np.linalg.solve(inner, transposed)
    change = (covariance @ (shift - precision * prior_mean)[..., None])[..., 0]
    mean = prior_mean + change
    good &= np.all(np.isfinite(mean), axis=(-1, -2))
    return good, mean, covariance


def _proper(precision: Array, covariance: Array) -> Mask:
    """(J,) whether every cavity has positive variance."""
    variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    return np.all(1 - precision * variance > _CLEAR, axis=(-1, -2))


def _tilt(
    blocks: Blocks,
    precision: Array,
    shift: Array,
    mean: Array,
    covariance: Array,
    lowest: float,
) -> tuple[Array, Array, Array]:
    """New sites by moment matching, and the undamped residual (J,) in means and variances.

    Where a precision would be below `lowest`, the site matches the mean alone.
    """
    variance = np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 1e-300)
    left = 1 - precision * variance
    cavity_var = variance / left
    cavity_mean = (mean - variance * shift) / left
    factor = psi(
        cavity_mean[:, 0, :-1],
        cavity_var[:, 0, :-1],
        np.moveaxis(cavity_mean[:, 1:, :-1], 1, -1),
        np.moveaxis(cavity_var[:, 1:, :-1], 1, -1),
        blocks.limits,
    )
    rho, kappa = np.zeros_like(mean), np.zeros_like(mean)
    rho[:, 0, :-1], kappa[:, 0, :-1] = factor.rho_f, factor.kappa_f
    rho[:, 1:, :-1] = np.moveaxis(factor.rho_c, -1, 1)
    kappa[:, 1:, :-1] = np.moveaxis(factor.kappa_c, -1, 1)
    silent = ~blocks.active[:, None, :] & np.ones((1, mean.shape[1], 1), dtype=bool)
    rho[:, :, :-1][silent] = kappa[:, :, :-1][silent] = 0.0
    rho[:, 1:, -1], kappa[:, 1:, -1] = gamma(
        cavity_mean[:, 1:, -1], cavity_var[:, 1:, -1], blocks.limits
    )
    # Tilted over cavity variance; positive in exact arithmetic.
    ratio = np.maximum(1 - kappa * cavity_var, 1e-10)
    low = kappa / ratio < lowest
    kappa, ratio = np.where(low, lowest, kappa), np.where(low, 1.0, ratio)
    new_precision = kappa / ratio
    new_shift = (rho + kappa * cavity_mean) / ratio
    tilted_mean = cavity_mean + cavity_var * rho
    tilted_var = cavity_var * ratio
    # In units of what was believed before: late in a run everything is small.
    prior = np.maximum(np.diagonal(blocks.covariance, axis1=-2, axis2=-1), 1e-30)
    residual = np.maximum(
        np.abs(tilted_mean - mean) / np.sqrt(prior), np.abs(tilted_var - variance) / prior
    )
    residual[:, 0, -1] = 0.0
    return new_precision, new_shift, residual.max(axis=(-1, -2))
