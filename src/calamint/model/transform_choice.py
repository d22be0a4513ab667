"""Choosing the scale of a function by the marginal likelihood of its values.

    score(T) = max over θ of log p(T(y) | θ) + log p(θ), plus Σ log T'(y_n)

of each candidate T; identity and the plain logarithm are preferred by a few nats, and a choice is
changed only if another is better by as many, unless both are logarithms of the objective. Each is
offered with values far away as they are, and compressed: an objective much worse than most, and a
constraint far from its limits, need no resolution, and a penalty of 1e6 must not define the scale.

| symbol | code | meaning |
|---|---|---|
| T | `Candidate` | a transform that may be chosen |
| y_n | `values` | measured values |
| spread | `Sample.spread` | a robust standard deviation |
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.arrays import Array, Index
from calamint.model.data import Data
from calamint.model.hyperparameters import Hyperparameters, Prior
from calamint.model.kernels import Kernel
from calamint.model.likelihood import GaussianLikelihood
from calamint.model.map_estimate import log_posterior, refined
from calamint.model.subset import squared_distances
from calamint.model.transforms import Compression, OutcomeTransform, Warp, standardise

_PREFERENCE = 3.0  # in nats
# A logarithm whose origin is this close to the best values, in spreads, sharpens their minimum.
_CLOSE_TO_BEST = 0.1
# Values that span less may as well become negative where nothing was measured yet.
_MIN_RATIO = 10.0
_MIN_DISTINCT = 8
# Past this many measurements the choice is made by as many of them, evenly spaced by rank.
_SUBSET = 64
_SCREENED = 12
# Of the likelihood, for every candidate, and then for the best.
_FIRST_EVALUATIONS, _EVALUATIONS = 10, 25
_FINALISTS = 2
# Beyond these magnitudes differences and squares overflow; identity copes with them.
_LARGEST, _SMALLEST = 1e150, 1e-150
_MARGINS = (0.03, 0.3)  # distance of a shifted logarithm's origin from the data, in spreads
_ASINH_WIDTH = 0.3  # in spreads
_KNEE = 3.0  # in spreads
# Before a scale is chosen, only values this far away are compressed, in widths of the compression.
_PENALTY = 100.0
# Where the logarithm that a user asks for becomes a straight line, relative to the smallest value.
_CLOSE_TO_ZERO = 1e-6
# The same for one that is chosen, in spreads: a minimum of zero is no singularity.
_NEGLIGIBLE = 1e-4
# Standard errors between a value and the origin of its logarithm: closer ones are not log-normal.
_STANDARD_ERRORS = 5.0
_NEIGHBOURHOOD, _CLUSTER = 0.5, 0.2  # in distances between points of a regular grid


@final
@dataclass(frozen=True)
class Target:
    """What the scale of a function depends on besides its values.

    Attributes:
        low: The lower limit of a constraint.
        high: The upper limit of a constraint.
        sign: −1 for an objective that is maximised.
        objective: Whether it is the objective.
    """

    low: float
    high: float
    sign: float
    objective: bool

    @property
    def finite_limits(self) -> list[float]:
        return [limit for limit in (self.low, self.high) if math.isfinite(limit)]

    def with_limits(self, values: Array) -> Array:
        """The values, followed by the finite limits."""
        return np.concatenate([values, self.finite_limits])


@final
@dataclass(frozen=True)
class Sample:
    """Values (N,) with weights (N,) that count a cluster of inputs once.

    A search clusters where it expects the optimum. Quantiles of its values would be those of the
    cluster; weighted, they are about those of the space.
    """

    values: Array
    weights: Array

    @staticmethod
    def of(data: Data) -> "Sample":
        radius = _NEIGHBOURHOOD * _grid_distance(data.inputs)
        close = squared_distances(data.inputs, data.inputs) <= radius**2
        return Sample(data.values, 1 / np.sum(close, axis=1, initial=1e-9))

    def quantiles(self, levels: Array, values: Array | None = None) -> Array:
        """Weighted quantiles of the values, or of others at the same inputs."""
        values = self.values if values is None else values
        order = np.argsort(values, kind="stable")
        weights = self.weights[order]
        at = (np.cumsum(weights) - 0.5 * weights) / weights.sum()
        return np.interp(levels, at, values[order])

    def spread(self) -> float:
        """A standard deviation that outliers do not define; positive."""
        quartiles = self.quantiles(np.array([0.25, 0.75]))
        spread = float(quartiles[1] - quartiles[0]) / 1.349
        if spread <= 0:
            spread = float(np.std(self.values))
        if spread > 0 and math.isfinite(spread):
            return spread
        return max(abs(float(self.values[0])), 1.0)


@final
@dataclass(frozen=True)
class Candidate:
    """A transform that may be chosen.

    Attributes:
        transform: What it is.
        preference: Nats by which it is preferred.
        family: Those of one family replace each other as soon as one is better.
    """

    transform: OutcomeTransform
    preference: float
    family: str


def fixed_transform(name: str, data: Data, target: Target) -> OutcomeTransform:
    """The transform that the user named: "none", "log", "logit" or "asinh"."""
    warp = _named_warp(name, data, target)
    return standardise(data.values, target.low, target.high, target.sign, warp)


def _named_warp(name: str, data: Data, target: Target) -> Warp:
    every, sem = target.with_limits(data.values), _largest_sem(data)
    if name == "log":
        positive = every[every > 0]
        least = float(positive.min()) if len(positive) else 1.0
        # Zeros, if there are any, are not much smaller than the smallest positive value.
        width = _CLOSE_TO_ZERO * least if len(positive) == len(every) else least
        return Warp("log", 0.0, max(width, sem))
    if name == "logit":
        inside = every[(every > 0) & (every < 1)]
        margin = float(np.min([inside, 1 - inside])) if len(inside) else 0.25
        margin *= _CLOSE_TO_ZERO if len(inside) == len(every) else 1.0
        return Warp("logit", 0.0, min(max(margin, sem, 1e-12), 0.25))
    if name == "asinh" and len(data):
        return _asinh(Sample.of(data), target)
    return Warp()


def choose_transform(
    kernel: Kernel,
    data: Data,
    parameter_index: Index,
    prior: Prior,
    target: Target,
    before: Hyperparameters | None,
    rng: np.random.Generator,
) -> tuple[OutcomeTransform, tuple[str, int]]:
    """The transform, with its name and the number of measurements when it was last chosen.

    Args:
        before: What the last fit found, and chose.
    """
    chosen_at = 0 if before is None else before.chosen_at
    # A scale that was only assumed, for want of measurements, has nothing to defend.
    name = before.transform if before is not None and chosen_at else None
    count, sample = len(data), Sample.of(data)
    if _is_extreme(sample, target) or len(np.unique(data.values)) < _MIN_DISTINCT:
        compression = _compression(Warp(), sample, target)
        if compression is not None and not compression.reaches(data.values, _PENALTY):
            compression = None
        return _standardised(Warp(), compression, sample, target), ("none", 0)
    candidates = _candidates(data, sample, target)
    if name not in candidates or count - chosen_at > count // 10:
        warm = None if before is None else before.theta
        name = _best(kernel, data, parameter_index, prior, candidates, name, warm, rng)
        chosen_at = count
    assert name is not None
    return candidates[name].transform, (name, chosen_at)


def _best(
    kernel: Kernel,
    data: Data,
    parameter_index: Index,
    prior: Prior,
    candidates: dict[str, Candidate],
    current: str | None,
    warm: Array | None,
    rng: np.random.Generator,
) -> str:
    """The name of the best candidate, or the current one if none is better by enough."""
    rows = _subset(data)
    subset = data.take(rows)
    pool = [prior.complete(prior.centre[prior.free])[None], prior.draw(_SCREENED, rng)]
    if warm is not None:
        pool.append(np.clip(warm[:4], prior.low, prior.high))
    thetas = np.where(prior.free, np.vstack(pool), prior.fixed)
    likelihoods, best, scores, bonus = {}, {}, {}, {}
    for name, candidate in candidates.items():
        transform = candidate.transform
        likelihoods[name] = GaussianLikelihood(kernel, subset, transform, parameter_index)
        bonus[name] = float(transform.log_jacobian(subset.values).sum()) + candidate.preference
        best[name] = thetas[int(np.argmax(log_posterior(likelihoods[name], prior, thetas)))]

    def refine(names: Iterable[str], evaluations: int) -> None:
        for name in names:
            value, best[name] = refined(likelihoods[name], prior, best[name], evaluations)
            scores[name] = value + bonus[name]

    reference = current if current in candidates else "none"
    others = [name for name in candidates if name != reference]
    refine(others, _FIRST_EVALUATIONS)
    others = sorted(others, key=scores.__getitem__)[-_FINALISTS:]
    refine([reference, *others], _EVALUATIONS)
    challenger = max(others, key=scores.__getitem__)
    alike = candidates[challenger].family == candidates[reference].family
    needed = 0.0 if alike or current not in candidates else _PREFERENCE
    return challenger if scores[challenger] > scores[reference] + needed else reference


def _subset(data: Data) -> Index:
    """Indices of the measurements to choose by: one of each cluster, and no more than are needed.

    A search repeats itself where it converges. Each repetition would reward the scale that has the
    finest resolution there, far beyond what matters.
    """
    radius = _CLUSTER * _grid_distance(data.inputs)
    close = squared_distances(data.inputs, data.inputs) <= radius**2
    rows = np.flatnonzero(~np.any(np.tril(close, -1), axis=1))
    if len(rows) <= _SUBSET:
        return rows
    order = rows[np.argsort(data.values[rows], kind="stable")]
    return np.sort(order[np.linspace(0, len(rows) - 1, _SUBSET).round().astype(int)])


def _grid_distance(inputs: Array) -> float:
    """Between neighbours, if so many inputs were a regular grid."""
    count, dimension = inputs.shape
    return float(max(count, 1) ** (-1 / dimension))


def _is_extreme(sample: Sample, target: Target) -> bool:
    values = sample.values
    if len(values) == 0:
        return False
    largest = float(np.abs(target.with_limits(values)).max())
    spread = float(np.max(values) / 2 - np.min(values) / 2)
    if largest > _LARGEST or spread < _SMALLEST:
        return True
    return largest > _LARGEST * sample.spread()


def _candidates(data: Data, sample: Sample, target: Target) -> dict[str, Candidate]:
    """Candidates by name, each with values far away as they are, and compressed."""
    found = {}
    for name, warp in _warps(data, sample, target).items():
        # How sharp the minimum of an objective is shows only when it has been found.
        family = "log" if target.objective and warp.kind == "log" else None
        nats = _preference(name, sample, target)
        found[name] = Candidate(_standardised(warp, None, sample, target), nats, family or name)
        compression = None if name == "asinh" else _compression(warp, sample, target)
        if compression is not None:
            compressed = f"{name}, compressed"
            transform = _standardised(warp, compression, sample, target)
            nats = 0.0 if name == "none" else nats
            found[compressed] = Candidate(transform, nats, family or compressed)
    return found


def _preference(name: str, sample: Sample, target: Target) -> float:
    """In nats: of values as they are, and of the logarithm of values that are positive by nature.

    Not of one that makes a minimum sharp: the data have to ask for it.
    """
    if name == "log" and target.objective and target.sign > 0:
        close = _CLOSE_TO_BEST * sample.spread()
        return _PREFERENCE if float(sample.values.min()) >= close else 0.0
    return _PREFERENCE if name in ("none", "log") else 0.0


def _warps(data: Data, sample: Sample, target: Target) -> dict[str, Warp]:
    values = data.values
    every = target.with_limits(values)
    low, high, spread = float(every.min()), float(every.max()), sample.spread()
    clear = _STANDARD_ERRORS * _largest_sem(data)
    resolution = float(np.min(np.diff(np.unique(values))))
    least = max(clear, resolution)
    warps = {"none": Warp()}
    if not target.objective:
        warps["asinh"] = _asinh(sample, target)
    if low > clear and high > _MIN_RATIO * low:
        warps["log"] = Warp("log", 0.0, max(_NEGLIGIBLE * spread, clear))
    for share in _MARGINS:
        margin = max(share * spread, least)
        # Most values of an objective are bad. A scale that spreads them out suits them, but takes
        # resolution from the few good ones, which is where the optimum is.
        if not target.objective or target.sign > 0:
            warps[f"log {share:g}"] = Warp("log", low - margin, margin)
        if not target.objective or target.sign < 0:
            warps[f"reflected {share:g}"] = Warp("reflected", high + margin, margin)
    return warps


def _largest_sem(data: Data) -> float:
    """Of the standard errors that were told; zero without any."""
    known = data.noise_variance[np.isfinite(data.noise_variance)]
    return float(np.sqrt(known.max(initial=0.0)))


def _asinh(sample: Sample, target: Target) -> Warp:
    limits = target.finite_limits
    middle = sum(limits) / len(limits) if limits else float(sample.quantiles(np.array(0.5)))
    return Warp("asinh", middle, _ASINH_WIDTH * sample.spread())


def _standardised(
    warp: Warp, compression: Compression | None, sample: Sample, target: Target
) -> OutcomeTransform:
    return standardise(sample.values, target.low, target.high, target.sign, warp, compression)


def _compression(warp: Warp, sample: Sample, target: Target) -> Compression | None:
    """Where values lie far away on the warp's scale, if there are any."""
    values = sample.values
    if len(np.unique(values)) < 3 or float(np.max(np.abs(values))) >= 1e307:
        return None
    warped = Sample(warp.forward(values), sample.weights)
    if target.objective:
        return _compress_worse(warped, target.sign)
    if not target.finite_limits:
        return None
    ends = [float(warp.forward(np.array(limit))) for limit in target.finite_limits]
    return _compress_far(warped, min(ends), max(ends))


def _compress_worse(sample: Sample, sign: float) -> Compression | None:
    """Of an objective: beyond three spreads of the better half, counted from within it.

    Quantiles of 10 and 40 % are those of good values even if half of all are penalties.
    """
    signed = sign * sample.values
    better, usual = sample.quantiles(np.array([0.1, 0.4]), signed)
    spread = float(usual - better) / 1.028  # of a normal distribution, one
    knee = float(usual) + _KNEE * spread
    if not spread > 0 or not np.any(signed > knee):
        return None
    return Compression(high=knee, width=spread) if sign > 0 else Compression(-knee, width=spread)


def _compress_far(sample: Sample, low: float, high: float) -> Compression | None:
    """Of a constraint: beyond three spreads on the outer side of its limits, on either side."""
    values = sample.values
    distance = np.minimum(np.abs(values - low), np.abs(values - high))
    # Of a half-normal distribution, one.
    spread = float(sample.quantiles(np.array(0.25), distance)) / 0.319
    low, high = low - _KNEE * spread, high + _KNEE * spread
    if not spread > 0 or not np.any((values < low) | (values > high)):
        return None
    return Compression(low, high, spread)
