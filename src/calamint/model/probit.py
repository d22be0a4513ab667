"""Pass or fail: a Gaussian process behind a probit likelihood, made Gaussian by EP.

A function passes at x with probability Φ(c(x)). Every outcome becomes a site of the latent c(x_n),
as good as a measurement ỹ_n = ν_n/τ_n with the noise variance 1/τ_n: from then on the posterior is
an ordinary one (Rasmussen and Williams 2006, section 3.6). With K of latent values, S = diag(τ):

    B = I + S^½ K S^½,   cov = K − K S^½ B⁻¹ S^½ K,   mean = m + cov (ν − τ m)

At convergence the derivative of log Z in θ is that of a Gaussian likelihood with fixed sites.

| symbol | code | shape | meaning |
|---|---|---|---|
| τ, ν | `precision`, `shift` | (m, N) | natural parameters of the sites |
| K | `prior` | (m, N, N) | covariance of the latent values |
| m | `centre` | (m, 1) | prior mean |
| B | `inner` | (m, N, N) | |
| log Z | `log_evidence` | (m,) | EP's approximation of the marginal likelihood |
"""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.linalg import lapack
from scipy.special import log_ndtr

from calamint.arrays import Array, Index, Mask
from calamint.model.data import Data
from calamint.model.hyperparameters import amplitude_squared, constant_mean, lengthscales
from calamint.model.interval_probability import hazard
from calamint.model.kernels import Kernel
from calamint.model.likelihood import GaussianLikelihood
from calamint.model.posterior import GPPosterior
from calamint.model.transforms import OutcomeTransform

# One more outcome is at most as informative as a measurement with this noise variance.
OUTCOME_NOISE = np.pi / 2
_MOST_SWEEPS = 60
_TOLERANCE = 1e-6
# log Z hardly moves near convergence: with this its error is 1e-5.
_ROUGHLY = 1e-3
_STEP = 0.9
_SMALLEST_PRECISION = 1e-8


@final
@dataclass(frozen=True)
class ProbitSites:
    """Under m hyper-parameter samples: precision τ, shift ν (m, N) each, and log Z (m,)."""

    precision: Array
    shift: Array
    log_evidence: Array


@final
@dataclass(frozen=True)
class ProbitLikelihood:
    """Outcomes: pass (1) or fail (0).

    parameter_index  (D,) which parameter, and so which length-scale, each column of the inputs has
    """

    kernel: Kernel
    data: Data
    parameter_index: Index

    @cached_property
    def _latent(self) -> GaussianLikelihood:
        """As if latent values had been measured: for their covariance and its derivatives."""
        return GaussianLikelihood(self.kernel, self.data, OutcomeTransform(), self.parameter_index)

    @cached_property
    def signs(self) -> Array:
        """(N,) +1 for pass, −1 for fail"""
        return np.where(self.data.values > 0.5, 1.0, -1.0)

    def _covariance(self, theta: Array) -> Array:
        """(m, P + 3) -> (m, N, N) of the latent values"""
        count = len(self.data)
        squared = lengthscales(theta) ** -2.0 @ self._latent.squares
        values = self.kernel.value(squared) * amplitude_squared(theta)[:, None]
        return values.reshape(len(theta), count, count)

    def sites(self, theta: Array, tolerance: float = _TOLERANCE) -> ProbitSites:
        """Expectation propagation for every θ (m, P + 3) at once."""
        prior, centre = self._covariance(theta), constant_mean(theta)[:, None]
        precision, shift = (np.full((len(theta), len(self.data)), v) for v in (1e-2, 0.0))
        shift = precision * centre
        going: Mask = np.ones(len(theta), dtype=bool)
        log_evidence = np.zeros(len(theta))
        for _ in range(_MOST_SWEEPS):
            at = np.flatnonzero(going)
            if len(at) == 0:
                break
            mean, variance, half_log = _posterior(prior[at], centre[at], precision[at], shift[at])
            left = 1 - precision[at] * variance
            cavity = variance / left
            cavity_mean = (mean - variance * shift[at]) / left
            spread = np.sqrt(1 + cavity)
            z = self.signs * cavity_mean / spread
            ratio = hazard(-z)  # φ(z)/Φ(z)
            curvature = ratio * (z + ratio) / (1 + cavity)
            new_precision = np.maximum(curvature / (1 - cavity * curvature), _SMALLEST_PRECISION)
            derivative = self.signs * ratio / spread
            new_shift = (derivative + curvature * cavity_mean) / (1 - cavity * curvature)
            log_evidence[at] = half_log + _log_evidence(
                z, cavity, cavity_mean, precision[at], shift[at], mean, centre[at]
            )
            change = np.maximum(
                np.abs(new_precision - precision[at]), np.abs(new_shift - shift[at])
            ).max(axis=1, initial=0.0)
            precision[at] += _STEP * (new_precision - precision[at])
            shift[at] += _STEP * (new_shift - shift[at])
            going[at] = change > tolerance
        return ProbitSites(precision, shift, log_evidence)

    def log_likelihood(self, theta: Array) -> Array:
        """(m, P + 3) -> (m,) of all outcomes"""
        return self.sites(theta, _ROUGHLY).log_evidence

    def log_likelihood_gradient(self, theta: Array) -> tuple[float, Array]:
        """(P + 3,) -> value and (P + 3,) gradient, at one θ."""
        if len(self.data) == 0:
            return 0.0, np.zeros(len(theta))
        sites = self.sites(theta[None])
        noise = 1 / sites.precision[0]
        targets = sites.shift[0] * noise
        none = np.zeros(len(noise), dtype=bool)
        _, gradient = self._latent.gaussian(theta, targets, noise, none)
        return float(sites.log_evidence[0]), gradient

    def posterior(self, theta: Array) -> GPPosterior:
        """Conditioned on the outcomes, under each θ (m, P + 3)."""
        sites = self.sites(theta)
        noise = 1 / sites.precision
        each = []
        for index in range(len(theta)):
            data = Data(self.data.inputs, sites.shift[index] * noise[index], noise[index])
            sites_as_data = GaussianLikelihood(
                self.kernel, data, OutcomeTransform(), self.parameter_index
            )
            each.append(sites_as_data.posterior(theta[index : index + 1]))
        return GPPosterior.stacked(each, np.full(len(theta), OUTCOME_NOISE))


def _posterior(
    prior: Array, centre: Array, precision: Array, shift: Array
) -> tuple[Array, Array, Array]:
    """Mean and variance (m, N) of the latent values, and −½ log|B| (m,)."""
    root = np.sqrt(precision)
    inner = np.eye(prior.shape[-1]) + root[:, :, None] * prior * root[:, None, :]
    half, half_log = np.empty(prior.shape), np.zeros(len(prior))
    for index, matrix in enumerate(inner if prior.shape[-1] else ()):  # LAPACK wants some
        lower, _ = lapack.dpotrf(matrix, lower=1)
        half[index], _ = lapack.dtrtrs(lower, root[index, :, None] * prior[index], lower=1)
        half_log[index] = -np.log(np.diagonal(lower)).sum()
    variance = np.diagonal(prior, axis1=-2, axis2=-1) - (half**2).sum(-2)
    difference = shift - precision * centre
    moved = (prior @ difference[..., None])[..., 0]
    moved -= (np.swapaxes(half, -1, -2) @ (half @ difference[..., None]))[..., 0]
    return centre + moved, np.maximum(variance, 1e-12), half_log


def _log_evidence(
    z: Array,
    cavity: Array,
    cavity_mean: Array,
    precision: Array,
    shift: Array,
    mean: Array,
    centre: Array,
) -> Array:
    """log Z but for −½ log|B|, (m,).

    With everything relative to m: Σ log Φ(z) + ½ Σ log(1 + τ v) − ½ ν̃ (ν̃/τ − μ) + ½ Σ (τ c − ν̃)²
    / (τ (1 + τ v)), v and c the cavities' variances and means; ν̃ᵀν̃/τ cancels.
    """
    relative = shift - precision * centre
    cavity_mean, mean = cavity_mean - centre, mean - centre
    total = 1 + precision * cavity
    each = log_ndtr(z) + 0.5 * np.log(total) + 0.5 * relative * mean
    # ½ (τ c − ν̃)²/(τ total) − ½ ν̃²/τ, without dividing by a τ that may be nothing
    each += 0.5 * (precision * cavity_mean**2 - 2 * cavity_mean * relative) / total
    each -= 0.5 * cavity * relative**2 / total
    return each.sum(-1)
